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
    from accord.server.peer import Line, Peer
    from accord.session.exchange import Exchange
    from accord.session.profile import Profile

log: logging.Logger = logging.getLogger("accord.server")

_ENVELOPE = 150
"""Bytes of a notification beside its params, about."""

NOTHING = b"{}"
"""Params that say no more than the method does."""

Notice = tuple["Listener", str, bytes]
"""Who is told, the method, and the params."""


class Outlet:
    """The way to one client, shared by its listeners."""

    def __init__(self, peer: Peer) -> None:
        self.peer: Peer = peer
        self.line: Line = peer.line
        self.principal: str = peer.principal
        """Who the client is, or an empty string."""
        self.uris: int = 0
        """Resources that its listeners want to be told of, in all."""
        self.bytes: int = 0
        """Memory for that, about."""
        self._limits = self.line.session.limits
        self._sent = 0  # bytes, about, since it was last known to read
        self._held: OrderedDict[Notice, None] = OrderedDict()
        self._draining: asyncio.Task[None] | None = None
        self._dropped = 0

    def send(self, listener: Listener, method: str, params: bytes) -> None:
        """Send, or keep for when the client reads again."""
        if self._draining is not None:
            self._hold((listener, method, params))
            return
        self.line.notify(method, listener.tagged(params), rules=listener.rules)
        self._sent += _ENVELOPE + len(params)
        if self._sent >= self._limits.pending_bytes:
            self._draining = asyncio.get_running_loop().create_task(self._drain())

    def _hold(self, notice: Notice) -> None:
        self._held[notice] = None
        if len(self._held) > self._limits.subscriptions:
            self._held.popitem(last=False)
            self._dropped += 1
            if self._dropped == 1:
                log.warning("accord: a client does not read: the oldest changes that it is owed are not told")

    async def _drain(self) -> None:
        await self.line.way.drain()
        self._sent, self._draining = 0, None
        while self._held and self._draining is None:
            notice, _ = self._held.popitem(last=False)
            if notice[0].open:
                self.send(*notice)

    def close(self) -> None:
        """The client is gone."""
        if self._draining is not None:
            self._draining.cancel()
        if self._dropped:
            log.warning("accord: %d changes were not told to a client that did not read", self._dropped)


class Listener:
    """One who is told of something."""

    rules: Rules | None = None

    def __init__(self, outlet: Outlet) -> None:
        self.outlet: Outlet = outlet
        self.uris: set[str] = set()
        """Resources that it wants to be told of."""
        self.open: bool = True

    def tagged(self, params: bytes) -> Raw | None:
        """Params as it gets them."""
        return None if params == NOTHING else Raw(params)

    def tell(self, method: str, params: bytes) -> None:
        """Send a notification that it wants."""
        self.outlet.send(self, method, params)


class Listen(Listener):
    """A `subscriptions/listen`: "all notifications delivered on the stream carry" the id of that request."""

    def __init__(self, outlet: Outlet, exchange: Exchange) -> None:
        super().__init__(outlet)
        self.rules: Rules | None = exchange.rules
        self._meta = codec.encode({SUBSCRIPTION_ID: exchange.id})

    def tagged(self, params: bytes) -> Raw:
        """With its tag."""
        return Raw(codec.with_meta(params, self._meta))


class Client(Listener):
    """A client by itself: it is told only after a handshake, and of no lists that it was not promised to be."""

    def __init__(self, outlet: Outlet) -> None:
        super().__init__(outlet)
        self._promised: Profile | None = None
        self._owed: dict[str, None] = {}
        self._waiting: asyncio.Task[None] | None = None

    def renew(self, profile: Profile) -> None:
        """The server says something else of itself from now on; what the opening said is what was promised."""
        session = self.outlet.line.session
        if self._promised is None and session.phase is not Phase.NEW:
            self._promised = session.profile
        session.profile = profile

    def tell(self, method: str, params: bytes) -> None:
        """Send it; a change of a list when the client is ready, and not at all where there was no handshake."""
        phase = self.outlet.line.session.phase
        if params != NOTHING:
            super().tell(method, params)
        elif phase is Phase.SHAKING:
            self._owe(method)
        elif phase is Phase.OPEN and self._is_promised(method):
            super().tell(method, params)

    def _is_promised(self, method: str) -> bool:
        promised = self._promised or self.outlet.line.session.profile
        what = method.split("/")[1]
        return promised.declares(f"{what}.list_changed")

    def _owe(self, method: str) -> None:
        self._owed[method] = None
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_task(self._when_ready())

    async def _when_ready(self) -> None:
        await self.outlet.line.ready.wait()
        owed, self._owed, self._waiting = self._owed, {}, None
        for method in owed:
            self.tell(method, NOTHING)

    def restart(self) -> None:
        """The client begins anew: its next handshake says what it is promised."""
        self._promised = None
        self._owed.clear()

    def close(self) -> None:
        """The client is gone."""
        self.outlet.close()
        if self._waiting is not None:
            self._waiting.cancel()
