"""Subscribers, which receive notifications of changes: untagged after a handshake, tagged for a subscription.

A client that does not read receives no more until it does, and then each change once: the order of changes does not
matter, and repetitions add nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Raw

from accord.errors import NotSupported
from accord.messages import codec
from accord.messages.meta import SUBSCRIPTION_ID
from accord.session.states import Phase

if TYPE_CHECKING:
    from accord.messages.revision import Rules
    from accord.server.core.peer import Peer, PeerChannel
    from accord.session.peer_info import PeerInfo
    from accord.session.pending_request import PendingRequest

log: logging.Logger = logging.getLogger("accord.server")

_ENVELOPE = 150
"""Approximate bytes of a notification besides its params."""

NO_PARAMS = b"{}"
"""The params of notifications without content."""

QueuedNotification = tuple["Subscriber", str, bytes]
"""The subscriber, the method, and the params; or instead of params that are loaded later, what identifies them."""

LoadParams = Callable[[], Awaitable[bytes | None]]
"""Loads the params of a queued notification; None if there is nothing to send."""


class NotificationQueue:
    """The notifications to one client, a queue that its subscribers share."""

    def __init__(self, peer: Peer) -> None:
        self.peer: Peer = peer
        self.channel: PeerChannel = peer.channel
        self.principal: str = peer.principal
        """The id of the principal, or an empty string."""
        self.uris: int = 0
        """The number of resources that its subscribers subscribe to."""
        self.bytes: int = 0
        """The approximate memory of these subscriptions."""
        self._limits = self.channel.session.limits
        self._sent = 0  # approximate bytes since the client last read
        self._queue: OrderedDict[QueuedNotification, LoadParams | None] = OrderedDict()
        self._draining: asyncio.Task[None] | None = None
        self._dropped = 0

    @property
    def is_waiting(self) -> bool:
        """Return whether the client does not read at present, so that notifications are queued."""
        return self._draining is not None

    def send(self, subscriber: Subscriber, method: str, params: bytes) -> None:
        """Send a notification, or queue it until the client reads again."""
        if self._draining is not None:
            self._enqueue((subscriber, method, params))
            return
        self._send(subscriber, method, params)
        if self._sent >= self._limits.pending_bytes:
            self._draining = asyncio.get_running_loop().create_task(self._drain())

    def send_later(self, subscriber: Subscriber, method: str, key: bytes, load: LoadParams) -> None:
        """Queue a notification with large params for a client that does not read: they are loaded once it reads again,
        and the queue has only their key.
        """
        self._enqueue((subscriber, method, key), load)

    def _send(self, subscriber: Subscriber, method: str, params: bytes) -> None:
        with suppress(NotSupported):  # the session was opened again meanwhile, in another revision
            self.channel.notify(method, subscriber.tagged(params), rules=subscriber.rules)
        self._sent += _ENVELOPE + len(params)

    def _enqueue(self, notification: QueuedNotification, load: LoadParams | None = None) -> None:
        self._queue[notification] = load
        if len(self._queue) > self._limits.subscriptions:
            # not one that is loaded later: there are few, and the end of a task comes once
            del self._queue[next((each for each, later in self._queue.items() if later is None), notification)]
            self._dropped += 1
            if self._dropped == 1:
                log.warning("accord: a client does not read its messages: the oldest change notifications are dropped")

    async def wait_drained(self) -> None:
        """Wait until notifications are sent and not queued, or the client has disconnected."""
        while self._draining is not None and not self._draining.done():
            await asyncio.wait((self._draining,))

    async def _drain(self) -> None:
        """Send the queued notifications as the client reads."""
        try:
            await self._wait_read()
            while self._queue:
                await self._send_next()
                if self._sent >= self._limits.pending_bytes:
                    await self._wait_read()
        finally:
            self._draining = None

    async def _wait_read(self) -> None:
        await self.channel.sink.drain()
        self._sent = 0

    async def _send_next(self) -> None:
        (subscriber, method, params), load = self._queue.popitem(last=False)
        if not subscriber.open:
            return
        loaded = params if load is None else await load()
        if loaded is not None and subscriber.open:
            self._send(subscriber, method, loaded)

    def close(self) -> None:
        """Stop sending after the client has disconnected."""
        self._queue.clear()
        if self._draining is not None:
            self._draining.cancel()
        if self._dropped:
            log.warning(
                "accord: %d change notifications to a client that did not read its messages were dropped", self._dropped
            )


class Subscriber:
    """A receiver of notifications."""

    rules: Rules | None = None

    def __init__(self, queue: NotificationQueue) -> None:
        self.queue: NotificationQueue = queue
        self.uris: set[str] = set()
        """The resources that it subscribes to."""
        self.open: bool = True

    def tagged(self, params: bytes) -> Raw | None:
        """Return the params as this subscriber receives them."""
        return None if params == NO_PARAMS else Raw(params)

    def notify(self, method: str, params: bytes) -> None:
        """Send a notification that the subscriber requested."""
        self.queue.send(self, method, params)


class ListenSubscriber(Subscriber):
    """A `subscriptions/listen` request: "all notifications delivered on the stream carry" its id."""

    def __init__(self, queue: NotificationQueue, pending: PendingRequest) -> None:
        super().__init__(queue)
        self.rules: Rules | None = pending.rules
        self._meta = codec.encode({SUBSCRIPTION_ID: pending.id})

    def tagged(self, params: bytes) -> Raw:
        """Return the params with the subscription's id."""
        return Raw(codec.with_meta(params, self._meta))


class SessionSubscriber(Subscriber):
    """The session of a client: it receives notifications only after a handshake, and only of lists whose `listChanged`
    was declared.
    """

    def __init__(self, queue: NotificationQueue) -> None:
        super().__init__(queue)
        self._announced: PeerInfo | None = None
        self._deferred: dict[str, None] = {}
        self._deferral: asyncio.Task[None] | None = None

    def update_server_info(self, profile: PeerInfo) -> None:
        """Set the current capabilities of the server; those declared in the handshake determine the notifications."""
        session = self.queue.channel.session
        if self._announced is None and session.phase is not Phase.NEW:
            self._announced = session.local_info
        session.local_info = profile

    def notify(self, method: str, params: bytes) -> None:
        """Send a notification; a change of a list when the client is ready, and not at all without a handshake."""
        phase = self.queue.channel.session.phase
        if params != NO_PARAMS:
            super().notify(method, params)
        elif phase is Phase.INITIALIZING:
            self._defer(method)
        elif phase is Phase.OPEN and self._is_announced(method):
            super().notify(method, params)

    def _is_announced(self, method: str) -> bool:
        declared = self._announced or self.queue.channel.session.local_info
        what = method.split("/")[1]
        return declared.declares(f"{what}.list_changed")

    def _defer(self, method: str) -> None:
        self._deferred[method] = None
        if self._deferral is None:
            self._deferral = asyncio.get_running_loop().create_task(self._when_ready())

    async def _when_ready(self) -> None:
        await self.queue.channel.ready.wait()
        methods, self._deferred, self._deferral = self._deferred, {}, None
        for method in methods:
            self.notify(method, NO_PARAMS)

    def restart(self) -> None:
        """Discard the declared capabilities; the next handshake declares new ones."""
        self._announced = None
        self._deferred.clear()

    def close(self) -> None:
        """Stop sending after the client has disconnected."""
        self.queue.close()
        if self._deferral is not None:
            self._deferral.cancel()
