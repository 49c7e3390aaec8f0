"""The subscriptions of a client, on its current connection.

After a reconnect, every subscription is made again ("the client MUST re-send `subscriptions/listen`"), in the way of
the new revision, and its reader receives a `Missed`.

The two ways to subscribe: `SharedSubscriptions`, through 2025-11-25, sends a `resources/subscribe` per URI, which all
subscriptions share; list changes need no request; and all notifications arrive on the connection without an id.
`ListenSubscriptions`, from 2026-07-28 on, sends one `subscriptions/listen` per subscription, a request that stays
open, and its notifications carry its id.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from accord.client.notifications import Notice, NotificationRouter
from accord.client.retry import Backoff, Reconnect
from accord.client.subscription import ListChanged, Missed, ResourceUpdated, Subscription, event_of
from accord.client.uri_index import is_part
from accord.errors import (
    AccordError,
    ConnectionLost,
    LoginNeeded,
    NotConnected,
    NotSupported,
    RemoteProtocolError,
    RequestTimeout,
    log_line,
)
from accord.messages.methods import table
from accord.messages.notifications import ListenParams, SubscriptionFilter, SubscriptionsAcknowledgedParams
from accord.messages.resources import SubscribeParams, UnsubscribeParams
from accord.session.events import NotificationReceived
from accord.transport.base import is_lossy
from accord.transport.connection import Connection

log: logging.Logger = logging.getLogger("accord.client")

_MAX_CONCURRENT = 64
"""The maximum number of concurrent unsubscribe requests, because servers limit them."""

_PARTS = 10
"""The parts of a wait: time in which the event loop did not run counts as one of them."""


class SharedSubscriptions:
    """The subscriptions of one connection with a handshake. `seconds` is the timeout of each request, or `None`."""

    def __init__(self, connection: Connection, notices: NotificationRouter, seconds: float | None) -> None:
        self._connection = connection
        self._timeout = seconds
        self._unsubscribe_timeout = notices.limits.close_seconds if seconds is None else seconds
        self._uris_of: dict[Subscription, list[str]] = {}
        self._shared: Counter[str] = Counter()
        self._unsubscribing: dict[str, asyncio.Task[None]] = {}
        self._lock = asyncio.Lock()

    async def subscribe(self, subscription: Subscription) -> None:
        """Subscribe. Raises `NotSupported` when the server supports nothing of it, and errors of the server."""
        subscription.granted = _check_granted(self._offered(subscription.wish))
        uris = self._uris_of[subscription] = []  # before the response, because notifications may follow it at once
        try:
            async with self._lock:
                for uri in subscription.uris:
                    await self._add(uri)
                    uris.append(uri)
                    if subscription not in self._uris_of:  # its reader has left meanwhile
                        self._uris_of[subscription] = [uri]
                        raise NotConnected("the subscription was ended before it had begun")
        except BaseException:
            await self.unsubscribe(subscription)
            raise

    def _offered(self, requested: SubscriptionFilter) -> SubscriptionFilter:
        peer = self._connection.session.peer_info

        def offers(path: str) -> bool:
            return peer is None or peer.declares(path)

        return SubscriptionFilter(
            tools_list_changed=(requested.tools_list_changed and offers("tools.list_changed")) or None,
            prompts_list_changed=(requested.prompts_list_changed and offers("prompts.list_changed")) or None,
            resources_list_changed=(requested.resources_list_changed and offers("resources.list_changed")) or None,
            resource_subscriptions=requested.resource_subscriptions if offers("resources.subscribe") else None,
        )

    async def _add(self, uri: str) -> None:
        # Wait, because the server may execute the unsubscribe request after the new subscribe request.
        if (unsubscribing := self._unsubscribing.get(uri)) is not None:
            await asyncio.wait([unsubscribing])
        if not self._shared[uri]:
            await self._connection.request("resources/subscribe", SubscribeParams(uri=uri), timeout=self._timeout)
        self._shared[uri] += 1

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Unsubscribe from the resources that no other subscription uses."""
        uris = self._uris_of.pop(subscription, [])
        self._shared.subtract(uris)
        unused = [uri for uri in uris if not self._shared[uri]]
        if unused and not self._connection.ended.is_set():
            await self._unsubscribe(unused)

    async def _unsubscribe(self, uris: list[str]) -> None:
        """Send unsubscribe requests concurrently, with one timeout; late notifications are dropped."""
        semaphore = asyncio.Semaphore(_MAX_CONCURRENT)
        tasks = {uri: asyncio.ensure_future(self._unsubscribe_one(uri, semaphore)) for uri in uris}
        self._unsubscribing |= tasks
        try:
            for _ in range(_PARTS):
                _, running = await asyncio.wait(tasks.values(), timeout=self._unsubscribe_timeout / _PARTS)
                if not running:
                    return
        finally:
            for uri, task in tasks.items():
                task.cancel()
                if self._unsubscribing.get(uri) is task:
                    del self._unsubscribing[uri]
        name = self._connection.transport.name
        log.info("accord: %s did not answer resources/unsubscribe in %g s", name, self._unsubscribe_timeout)

    async def _unsubscribe_one(self, uri: str, semaphore: asyncio.Semaphore) -> None:
        async with semaphore:
            try:
                await self._connection.request("resources/unsubscribe", UnsubscribeParams(uri=uri))
            except AccordError as exc:
                log.info("accord: resources/unsubscribe of %s failed: %s", uri, log_line(exc))

    def on_notification(self, notice: Notice) -> None:
        """Pass a notification to its subscriptions."""
        event = event_of(notice)
        if isinstance(event, ListChanged):
            recipients = [subscription for subscription in self._uris_of if subscription.wants(event.kind)]
        elif event is not None:
            recipients = self._recipients(event)
        else:
            return
        for subscription in recipients:
            subscription.add(event)

    def _recipients(self, event: ResourceUpdated) -> list[Subscription]:
        """Return the subscriptions of a resource or of one that contains it; if none match, all with URIs."""
        with_uris = [subscription for subscription in self._uris_of if subscription.uris]
        matching = [
            subscription
            for subscription in with_uris
            if any(is_part(event.uri, subscribed) for subscribed in subscription.uris)
        ]
        return matching or with_uris

    def close(self) -> None:
        """Drop the subscriptions of the lost connection."""
        self._uris_of.clear()


class ListenSubscriptions:
    """The subscriptions of one connection without a handshake."""

    def __init__(self, connection: Connection, notices: NotificationRouter, seconds: float | None) -> None:
        self._connection = connection
        self._notices = notices
        self._timeout = seconds
        self._listen_tasks: dict[Subscription, asyncio.Task[AccordError | None]] = {}

    async def subscribe(self, subscription: Subscription) -> None:
        """Subscribe, and return when the server has acknowledged. Raises the errors of
        `SharedSubscriptions.subscribe`, and `RequestTimeout`.
        """
        acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.get_running_loop().create_task(self._listen(subscription, acknowledged))
        self._listen_tasks[subscription] = task
        try:
            first: list[asyncio.Future[Any]] = [task, acknowledged]
            await asyncio.wait(first, timeout=self._timeout, return_when=asyncio.FIRST_COMPLETED)
            if not acknowledged.done():
                raise self._unacknowledged(task)
            _check_granted(subscription.granted)
        except BaseException:
            await self.unsubscribe(subscription)
            raise

    async def _listen(self, subscription: Subscription, acknowledged: asyncio.Future[None]) -> AccordError | None:
        """Run one `subscriptions/listen` to its end, and return its error, if any."""

        def on_notification(event: NotificationReceived) -> None:
            notice = self._notices.read(event)
            if notice is not None:
                _deliver(subscription, acknowledged, notice)

        params = ListenParams(notifications=subscription.wish)
        backoff = Backoff(Reconnect())
        time = asyncio.get_running_loop().time
        while True:
            started = time()
            try:
                await self._connection.request("subscriptions/listen", params, on_notification=on_notification)
            except (ConnectionLost, NotConnected) as exc:
                pause = backoff.after(time() - started) if acknowledged.done() else None
                if self._connection.ended.is_set() or pause is None:  # the manager decides about a lost connection
                    return self._give_up(subscription, acknowledged, exc)
                # Only the stream broke: "the client MUST re-send `subscriptions/listen`"
                subscription.add(Missed(f"its stream broke: {exc}"))
                await asyncio.sleep(pause)
            except AccordError as exc:
                if acknowledged.done() or not isinstance(exc, LoginNeeded):  # else it is sent again after a login
                    subscription.end(exc)
                return exc
            else:
                subscription.end()  # "signals that the subscription ended gracefully"
                return None

    def _give_up(
        self, subscription: Subscription, acknowledged: asyncio.Future[None], error: AccordError
    ) -> AccordError:
        """End a subscription that is not sent again; on a live connection, only this reports the error."""
        if acknowledged.done() and not self._connection.ended.is_set():
            subscription.end(error)
        return error

    def _unacknowledged(self, task: asyncio.Task[AccordError | None]) -> AccordError:
        name = self._connection.transport.name
        if not task.done():
            return RequestTimeout(f"{name} did not acknowledge subscriptions/listen in {self._timeout:g} s")
        if task.cancelled():
            return NotConnected("the subscription was ended before it had begun")
        # "The server MUST send notifications/subscriptions/acknowledged as the first message"
        return task.result() or RemoteProtocolError(f"{name} ended a subscription without having acknowledged it")

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Unsubscribe by cancelling the request."""
        task = self._listen_tasks.pop(subscription, None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def close(self) -> None:
        """Cancel the subscriptions of the lost connection."""
        for task in self._listen_tasks.values():
            task.cancel()


def _deliver(subscription: Subscription, acknowledged: asyncio.Future[None], notice: Notice) -> None:
    if isinstance(notice.params, SubscriptionsAcknowledgedParams):
        if not acknowledged.done():
            subscription.granted = notice.params.notifications
            acknowledged.set_result(None)
    elif (event := event_of(notice)) is not None:
        subscription.add(event)


def _check_granted(granted: SubscriptionFilter) -> SubscriptionFilter:
    """Return the granted filter. Raises `NotSupported` if it is empty, because the reader would wait forever."""
    lists = (granted.tools_list_changed, granted.prompts_list_changed, granted.resources_list_changed)
    if not any(lists) and not granted.resource_subscriptions:
        raise NotSupported("the server does not support these notifications, by its capabilities or its response")
    return granted


Ready = Callable[[float | None], Awaitable[Connection]]
"""Returns the connection, and waits for it up to a number of seconds."""
AfterLogin = Callable[[AccordError, Callable[[], Awaitable[None]]], Awaitable[None]]
"""Logs in after an error that needs a login, and runs an operation again; raises other errors."""


class SubscriptionManager:
    """The subscriptions of one client. `seconds` is the timeout of each request, or `None`.

    `invalidate` is called when notifications may have been missed on a live connection.
    """

    def __init__(
        self,
        ready: Ready,
        notices: NotificationRouter,
        seconds: float | None,
        invalidate: Callable[[], None],
        after_login: AfterLogin,
    ) -> None:
        self._ready = ready
        self._after_login = after_login
        self._notices = notices
        self._timeout = seconds
        self._invalidate = invalidate
        self._backend: SharedSubscriptions | ListenSubscriptions | None = None
        self._open: dict[Subscription, SharedSubscriptions | ListenSubscriptions] = {}

    async def use(self, connection: Connection) -> None:
        """Subscribe again on a new connection. Raises `ConnectionLost` when it dies meanwhile."""
        listens = "subscriptions/listen" in table(connection.revision, "client")
        self._backend = (ListenSubscriptions if listens else SharedSubscriptions)(
            connection, self._notices, self._timeout
        )
        if is_lossy(connection.transport):
            connection.transport.on_missed = self._on_gap
        self._open = {subscription: backend for subscription, backend in self._open.items() if not subscription.ended}
        for subscription in list(self._open):
            if subscription not in self._open:  # its reader has left during another subscribe request
                continue
            subscription.add(Missed("the connection was lost and opened again"))
            await self._resubscribe(subscription, self._backend)

    async def _resubscribe(
        self, subscription: Subscription, backend: SharedSubscriptions | ListenSubscriptions
    ) -> None:
        self._open[subscription] = backend
        try:
            await backend.subscribe(subscription)
        except ConnectionLost:
            raise
        except AccordError as exc:  # other subscriptions may succeed; the reader of this one receives the error
            self._open.pop(subscription, None)
            subscription.end(exc)

    async def subscribe(self, subscription: Subscription) -> None:
        """Subscribe. Raises `NotConnected`, `NotSupported` when nothing is granted, and errors of the server."""
        while True:
            connection = await self._ready(self._timeout)
            try:
                try:
                    return await self._subscribe(subscription)
                except LoginNeeded as exc:
                    return await self._after_login(exc, partial(self._subscribe, subscription))
            except ConnectionLost:
                if await self._ready(self._timeout) is connection:  # the connection has not been replaced
                    raise

    async def _subscribe(self, subscription: Subscription) -> None:
        backend = self._backend
        assert backend is not None, "a connection is ready when `use` is done with it"
        await backend.subscribe(subscription)
        self._open[subscription] = backend

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Unsubscribe."""
        subscription.end()
        backend = self._open.pop(subscription, None)
        if backend is not None and backend is self._backend:
            await backend.unsubscribe(subscription)

    def on_notification(self, notice: Notice) -> None:
        """Pass a notification of the connection to its subscriptions; those with an id receive their own."""
        if isinstance(self._backend, SharedSubscriptions):
            self._backend.on_notification(notice)

    def _on_gap(self, reason: str) -> None:
        self._invalidate()
        for subscription in self._open:
            subscription.add(Missed(reason))

    def close(self, error: ConnectionLost | None = None) -> None:
        """End all subscriptions, with an error if there is one."""
        for subscription in self._open:
            subscription.end(error)
        self._open.clear()
        if self._backend is not None:
            self._backend.close()
