"""Who is told of changes, and how: untagged after a handshake, tagged for a subscription.

A client that does not read is told no more until it does, and then each change once: changes have no order that
matters between them, and nothing is said by a repetition.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING

from msgspec import Raw

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
"""Bytes of a notification beside its params, about."""

NO_PARAMS = b"{}"
"""Params that say no more than the method does."""

QueuedNotification = tuple["Subscriber", str, bytes]
"""Who is told, the method, and the params."""


class NotificationQueue:
    """The way to one client, shared by its listeners."""

    def __init__(self, peer: Peer) -> None:
        self.peer: Peer = peer
        self.channel: PeerChannel = peer.channel
        self.principal: str = peer.principal
        """Who the client is, or an empty string."""
        self.uris: int = 0
        """Resources that its listeners want to be told of, in all."""
        self.bytes: int = 0
        """Memory for that, about."""
        self._limits = self.channel.session.limits
        self._sent = 0  # bytes, about, since it was last known to read
        self._queue: OrderedDict[QueuedNotification, None] = OrderedDict()
        self._draining: asyncio.Task[None] | None = None
        self._dropped = 0

    def send(self, listener: Subscriber, method: str, params: bytes) -> None:
        """Send, or keep for when the client reads again."""
        if self._draining is not None:
            self._enqueue((listener, method, params))
            return
        self.channel.notify(method, listener.tagged(params), rules=listener.rules)
        self._sent += _ENVELOPE + len(params)
        if self._sent >= self._limits.pending_bytes:
            self._draining = asyncio.get_running_loop().create_task(self._drain())

    def _enqueue(self, notice: QueuedNotification) -> None:
        self._queue[notice] = None
        if len(self._queue) > self._limits.subscriptions:
            self._queue.popitem(last=False)
            self._dropped += 1
            if self._dropped == 1:
                log.warning("accord: a client does not read: the oldest changes that it is owed are not told")

    async def _drain(self) -> None:
        await self.channel.sink.drain()
        self._sent, self._draining = 0, None
        while self._queue and self._draining is None:
            notice, _ = self._queue.popitem(last=False)
            if notice[0].open:
                self.send(*notice)

    def close(self) -> None:
        """The client is gone."""
        if self._draining is not None:
            self._draining.cancel()
        if self._dropped:
            log.warning("accord: %d changes were not told to a client that did not read", self._dropped)


class Subscriber:
    """One who is told of something."""

    rules: Rules | None = None

    def __init__(self, outlet: NotificationQueue) -> None:
        self.queue: NotificationQueue = outlet
        self.uris: set[str] = set()
        """Resources that it wants to be told of."""
        self.open: bool = True

    def tagged(self, params: bytes) -> Raw | None:
        """Params as it gets them."""
        return None if params == NO_PARAMS else Raw(params)

    def notify(self, method: str, params: bytes) -> None:
        """Send a notification that it wants."""
        self.queue.send(self, method, params)


class ListenSubscriber(Subscriber):
    """A `subscriptions/listen`: "all notifications delivered on the stream carry" the id of that request."""

    def __init__(self, outlet: NotificationQueue, exchange: PendingRequest) -> None:
        super().__init__(outlet)
        self.rules: Rules | None = exchange.rules
        self._meta = codec.encode({SUBSCRIPTION_ID: exchange.id})

    def tagged(self, params: bytes) -> Raw:
        """With its tag."""
        return Raw(codec.with_meta(params, self._meta))


class SessionSubscriber(Subscriber):
    """A client by itself: it is told only after a handshake, and of no lists that it was not promised to be."""

    def __init__(self, outlet: NotificationQueue) -> None:
        super().__init__(outlet)
        self._announced: PeerInfo | None = None
        self._deferred: dict[str, None] = {}
        self._deferral: asyncio.Task[None] | None = None

    def update_server_info(self, profile: PeerInfo) -> None:
        """The server says something else of itself from now on; what the opening said is what was promised."""
        session = self.queue.channel.session
        if self._announced is None and session.phase is not Phase.NEW:
            self._announced = session.local_info
        session.local_info = profile

    def notify(self, method: str, params: bytes) -> None:
        """Send it; a change of a list when the client is ready, and not at all where there was no handshake."""
        phase = self.queue.channel.session.phase
        if params != NO_PARAMS:
            super().notify(method, params)
        elif phase is Phase.INITIALIZING:
            self._defer(method)
        elif phase is Phase.OPEN and self._is_announced(method):
            super().notify(method, params)

    def _is_announced(self, method: str) -> bool:
        promised = self._announced or self.queue.channel.session.local_info
        what = method.split("/")[1]
        return promised.declares(f"{what}.list_changed")

    def _defer(self, method: str) -> None:
        self._deferred[method] = None
        if self._deferral is None:
            self._deferral = asyncio.get_running_loop().create_task(self._when_ready())

    async def _when_ready(self) -> None:
        await self.queue.channel.ready.wait()
        owed, self._deferred, self._deferral = self._deferred, {}, None
        for method in owed:
            self.notify(method, NO_PARAMS)

    def restart(self) -> None:
        """The client begins anew: its next handshake says what it is promised."""
        self._announced = None
        self._deferred.clear()

    def close(self) -> None:
        """The client is gone."""
        self.queue.close()
        if self._deferral is not None:
            self._deferral.cancel()
