"""All that a client has subscribed to, on whichever connection it has just then.

When the connection dies and is opened again, every subscription is made anew ("the client MUST re-send
`subscriptions/listen`"), in the way of the revision that holds now, and its reader gets a `Missed`.

The two ways to subscribe.

`SharedSubscriptions`, through 2025-11-25: each URI is a `resources/subscribe`, shared by all subscriptions that want
it; lists are told of unasked; and all of it comes on the connection, for whom it may concern. `ListenSubscriptions`,
from 2026-07-28 on: one subscription is one `subscriptions/listen`, a request that stays open, and what belongs to it
carries its id.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from accord.client.cache import is_part
from accord.client.notifications import Notice, NotificationRouter
from accord.client.retry import Backoff, Reconnect
from accord.client.subscription import ListChanged, Missed, ResourceUpdated, Subscription, event_of
from accord.errors import (
    AccordError,
    ConnectionLost,
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
"""Requests to unsubscribe in flight: a server takes only so many."""

_PARTS = 10
"""Parts that a wait is made of: time in which the event loop did not run counts as one of them."""


class SharedSubscriptions:
    """Subscriptions of one connection with a handshake. `seconds` bounds each request, `None` does not."""

    def __init__(self, connection: Connection, notices: NotificationRouter, seconds: float | None) -> None:
        self._connection = connection
        self._timeout = seconds
        self._unsubscribe_timeout = notices.limits.close_seconds if seconds is None else seconds
        self._uris_of: dict[Subscription, list[str]] = {}
        self._shared: Counter[str] = Counter()
        self._unsubscribing: dict[str, asyncio.Task[None]] = {}
        self._lock = asyncio.Lock()

    async def subscribe(self, subscription: Subscription) -> None:
        """Subscribe. Raises `NotSupported` when the server offers nothing of it, and what it answers."""
        subscription.granted = _check_granted(self._offered(subscription.wish))
        held = self._uris_of[subscription] = []  # before the answer: what follows that at once is for it already
        try:
            async with self._lock:
                for uri in subscription.uris:
                    await self._add(uri)
                    held.append(uri)
                    if subscription not in self._uris_of:  # its reader has left meanwhile
                        self._uris_of[subscription] = [uri]
                        raise NotConnected("the subscription was ended before it had begun")
        except BaseException:
            await self.unsubscribe(subscription)
            raise

    def _offered(self, wish: SubscriptionFilter) -> SubscriptionFilter:
        peer = self._connection.session.peer_info

        def offers(path: str) -> bool:
            return peer is None or peer.declares(path)

        return SubscriptionFilter(
            tools_list_changed=(wish.tools_list_changed and offers("tools.list_changed")) or None,
            prompts_list_changed=(wish.prompts_list_changed and offers("prompts.list_changed")) or None,
            resources_list_changed=(wish.resources_list_changed and offers("resources.list_changed")) or None,
            resource_subscriptions=wish.resource_subscriptions if offers("resources.subscribe") else None,
        )

    async def _add(self, uri: str) -> None:
        if (before := self._unsubscribing.get(uri)) is not None:  # else the server may take it after this
            await asyncio.wait([before])
        if not self._shared[uri]:
            await self._connection.request("resources/subscribe", SubscribeParams(uri=uri), timeout=self._timeout)
        self._shared[uri] += 1

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Unsubscribe from what nobody else here wants."""
        held = self._uris_of.pop(subscription, [])
        self._shared.subtract(held)
        alone = [uri for uri in held if not self._shared[uri]]
        if alone and not self._connection.ended.is_set():
            await self._unsubscribe(alone)

    async def _unsubscribe(self, uris: list[str]) -> None:
        """Side by side, in one bound: nobody waits for it, and what still comes is dropped."""
        few = asyncio.Semaphore(_MAX_CONCURRENT)
        tasks = {uri: asyncio.ensure_future(self._unsubscribe_one(uri, few)) for uri in uris}
        self._unsubscribing |= tasks
        try:
            for _ in range(_PARTS):
                _, late = await asyncio.wait(tasks.values(), timeout=self._unsubscribe_timeout / _PARTS)
                if not late:
                    return
        finally:
            for uri, task in tasks.items():
                task.cancel()
                if self._unsubscribing.get(uri) is task:
                    del self._unsubscribing[uri]
        name = self._connection.transport.name
        log.info("accord: %s did not answer resources/unsubscribe in %g s", name, self._unsubscribe_timeout)

    async def _unsubscribe_one(self, uri: str, few: asyncio.Semaphore) -> None:
        async with few:
            try:
                await self._connection.request("resources/unsubscribe", UnsubscribeParams(uri=uri))
            except AccordError as exc:
                log.info("accord: resources/unsubscribe of %s failed: %s", uri, log_line(exc))

    def on_notification(self, notice: Notice) -> None:
        """Pass on what the server tells to those who want it."""
        event = event_of(notice)
        if isinstance(event, ListChanged):
            concerned = [each for each in self._uris_of if each.wants(event.kind)]
        elif event is not None:
            concerned = self._recipients(event)
        else:
            return
        for subscription in concerned:
            subscription.tell(event)

    def _recipients(self, event: ResourceUpdated) -> list[Subscription]:
        """Who subscribed to a resource, or to a whole that it is a part of; when that is not to be seen, everybody."""
        with_uris = [each for each in self._uris_of if each.uris]
        exactly = [each for each in with_uris if any(is_part(event.uri, of) for of in each.uris)]
        return exactly or with_uris

    def close(self) -> None:
        """The connection is over."""
        self._uris_of.clear()


class ListenSubscriptions:
    """Subscriptions of one connection without a handshake."""

    def __init__(self, connection: Connection, notices: NotificationRouter, seconds: float | None) -> None:
        self._connection = connection
        self._notices = notices
        self._timeout = seconds
        self._listen_tasks: dict[Subscription, asyncio.Task[AccordError | None]] = {}

    async def subscribe(self, subscription: Subscription) -> None:
        """Subscribe; return when the server has said what it grants. Raises as `SharedSubscriptions.subscribe`,
        `RequestTimeout`."""
        acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asking = asyncio.get_running_loop().create_task(self._listen(subscription, acknowledged))
        self._listen_tasks[subscription] = asking
        try:
            first: list[asyncio.Future[Any]] = [asking, acknowledged]
            await asyncio.wait(first, timeout=self._timeout, return_when=asyncio.FIRST_COMPLETED)
            if not acknowledged.done():
                raise self._unacknowledged(asking)
            _check_granted(subscription.granted)
        except BaseException:
            await self.unsubscribe(subscription)
            raise

    async def _listen(self, subscription: Subscription, acknowledged: asyncio.Future[None]) -> AccordError | None:
        """One `subscriptions/listen`, from beginning to end: how it failed, if it did."""

        def told(event: NotificationReceived) -> None:
            notice = self._notices.read(event)
            if notice is not None:
                _deliver(subscription, acknowledged, notice)

        params = ListenParams(notifications=subscription.wish)
        backoff = Backoff(Reconnect())
        time = asyncio.get_running_loop().time
        while True:
            began = time()
            try:
                await self._connection.request("subscriptions/listen", params, on_notification=told)
            except (ConnectionLost, NotConnected) as exc:
                pause = backoff.after(time() - began) if acknowledged.done() else None
                if self._connection.ended.is_set() or pause is None:  # what becomes of it then is not decided here
                    return self._give_up(subscription, acknowledged, exc)
                # Its own stream broke, the connection goes on: "the client MUST re-send `subscriptions/listen`"
                subscription.tell(Missed(f"its stream broke: {exc}"))
                await asyncio.sleep(pause)
            except AccordError as exc:
                subscription.end(exc)
                return exc
            else:
                subscription.end()  # "signals that the subscription ended gracefully"
                return None

    def _give_up(
        self, subscription: Subscription, acknowledged: asyncio.Future[None], error: AccordError
    ) -> AccordError:
        """It is not asked for again: on a connection that goes on, its reader has nobody else to hear that from."""
        if acknowledged.done() and not self._connection.ended.is_set():
            subscription.end(error)
        return error

    def _unacknowledged(self, asking: asyncio.Task[AccordError | None]) -> AccordError:
        name = self._connection.transport.name
        if not asking.done():
            return RequestTimeout(f"{name} did not acknowledge subscriptions/listen in {self._timeout:g} s")
        if asking.cancelled():
            return NotConnected("the subscription was ended before it had begun")
        # "The server MUST send notifications/subscriptions/acknowledged as the first message"
        return asking.result() or RemoteProtocolError(f"{name} ended a subscription without having acknowledged it")

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Unsubscribe: the request is cancelled."""
        asking = self._listen_tasks.pop(subscription, None)
        if asking is not None:
            asking.cancel()
            await asyncio.wait([asking])

    def close(self) -> None:
        """The connection is over."""
        for asking in self._listen_tasks.values():
            asking.cancel()


def _deliver(subscription: Subscription, acknowledged: asyncio.Future[None], notice: Notice) -> None:
    if isinstance(notice.params, SubscriptionsAcknowledgedParams):
        if not acknowledged.done():
            subscription.granted = notice.params.notifications
            acknowledged.set_result(None)
    elif (event := event_of(notice)) is not None:
        subscription.tell(event)


def _check_granted(granted: SubscriptionFilter) -> SubscriptionFilter:
    """What is granted. Raises `NotSupported` when that is nothing: one would wait for it for ever."""
    lists = (granted.tools_list_changed, granted.prompts_list_changed, granted.resources_list_changed)
    if not any(lists) and not granted.resource_subscriptions:
        raise NotSupported("the server does not support these notifications, by its capabilities or its response")
    return granted


Ready = Callable[[float | None], Awaitable[Connection]]
"""The connection, once there is one; it takes the seconds to wait."""


class SubscriptionManager:
    """The subscriptions of one client. `seconds` is the time for each answer, `None` for any.

    `forget` is called where something may have been missed, though the connection goes on.
    """

    def __init__(
        self, ready: Ready, notices: NotificationRouter, seconds: float | None, forget: Callable[[], None]
    ) -> None:
        self._ready = ready
        self._notices = notices
        self._timeout = seconds
        self._invalidate = forget
        self._backend: SharedSubscriptions | ListenSubscriptions | None = None
        self._open: dict[Subscription, SharedSubscriptions | ListenSubscriptions] = {}

    async def use(self, connection: Connection) -> None:
        """Subscribe anew on this connection. Raises `ConnectionLost` when it dies meanwhile."""
        listens = "subscriptions/listen" in table(connection.revision, "client")
        self._backend = (ListenSubscriptions if listens else SharedSubscriptions)(
            connection, self._notices, self._timeout
        )
        if is_lossy(connection.transport):
            connection.transport.on_missed = self._on_gap
        self._open = {each: way for each, way in self._open.items() if not each.ended}
        for subscription in list(self._open):
            if subscription not in self._open:  # its reader has left while another was made anew
                continue
            subscription.tell(Missed("the connection was lost and opened again"))
            await self._resubscribe(subscription, self._backend)

    async def _resubscribe(self, subscription: Subscription, way: SharedSubscriptions | ListenSubscriptions) -> None:
        self._open[subscription] = way
        try:
            await way.subscribe(subscription)
        except ConnectionLost:
            raise
        except AccordError as exc:  # the others may fare better; its own reader is told
            self._open.pop(subscription, None)
            subscription.end(exc)

    async def subscribe(self, subscription: Subscription) -> None:
        """Subscribe. Raises `NotConnected`, `NotSupported` when nothing is granted, and what the server answers."""
        while True:
            connection = await self._ready(self._timeout)
            try:
                return await self._subscribe(subscription)
            except ConnectionLost:
                if await self._ready(self._timeout) is connection:  # there is no other
                    raise

    async def _subscribe(self, subscription: Subscription) -> None:
        way = self._backend
        assert way is not None, "a connection is ready when `use` is done with it"
        await way.subscribe(subscription)
        self._open[subscription] = way

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Unsubscribe."""
        subscription.end()
        way = self._open.pop(subscription, None)
        if way is not None and way is self._backend:
            await way.unsubscribe(subscription)

    def on_notification(self, notice: Notice) -> None:
        """Pass on what the server tells on the connection; a subscription that has an id hears by itself."""
        if isinstance(self._backend, SharedSubscriptions):
            self._backend.on_notification(notice)

    def _on_gap(self, why: str) -> None:
        self._invalidate()
        for subscription in self._open:
            subscription.tell(Missed(why))

    def close(self, error: ConnectionLost | None = None) -> None:
        """There is no connection any more; the readers are told, by an error if there is one."""
        for subscription in self._open:
            subscription.end(error)
        self._open.clear()
        if self._backend is not None:
            self._backend.close()
