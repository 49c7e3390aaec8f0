"""Who is told of changes, and how: untagged after a handshake, tagged for a subscription.

A client that does not read is told no more until it does, and then each change once: changes have no order that
matters between them, and nothing is said by a repetition.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from accord.messages.meta import SUBSCRIPTION_ID
from accord.session.states import Phase

if TYPE_CHECKING:
    from accord.messages.resources import ResourceUpdatedParams
    from accord.messages.revision import Rules
    from accord.server.peer import Line
    from accord.session.exchange import Exchange
    from accord.session.profile import Profile

log: logging.Logger = logging.getLogger("accord.server")

_AT_ONCE = 1_000
"""Notifications that are sent to one client before a look at whether it reads."""

Change = tuple["Listener", str, "ResourceUpdatedParams | None"]


class Outlet:
    """The way to one client, shared by its listeners."""

    def __init__(self, line: Line, limit: int) -> None:
        self.line: Line = line
        self.uris: int = 0
        """Resources that its listeners want to be told of, in all."""
        self._limit = limit
        self._sent = 0
        self._held: OrderedDict[tuple[Listener, str, str], Change] = OrderedDict()
        self._draining: asyncio.Task[None] | None = None

    def send(self, listener: Listener, method: str, params: ResourceUpdatedParams | None) -> None:
        """Send, or keep for when the client reads again."""
        if self._draining is not None:
            self._hold(listener, method, params)
            return
        self.line.notify(method, params, meta=listener.meta, rules=listener.rules)
        self._sent += 1
        if self._sent >= _AT_ONCE:
            self._draining = asyncio.get_running_loop().create_task(self._drain())

    def _hold(self, listener: Listener, method: str, params: ResourceUpdatedParams | None) -> None:
        self._held[listener, method, "" if params is None else params.uri] = (listener, method, params)
        if len(self._held) > max(self._limit, _AT_ONCE):
            self._held.popitem(last=False)
            log.warning("accord: a client does not read; the oldest of %d changes was not told", self._limit)

    async def _drain(self) -> None:
        await self.line.transport.drain()
        self._sent, self._draining = 0, None
        while self._held and self._draining is None:
            listener, method, params = self._held.popitem(last=False)[1]
            if listener.open:
                self.send(listener, method, params)

    def close(self) -> None:
        """The client is gone."""
        if self._draining is not None:
            self._draining.cancel()


class Listener:
    """One who is told of something."""

    def __init__(self, outlet: Outlet, meta: dict[str, Any] | None = None, rules: Rules | None = None) -> None:
        self.outlet: Outlet = outlet
        self.meta: dict[str, Any] | None = meta
        self.rules: Rules | None = rules
        self.uris: set[str] = set()
        """Resources that it wants to be told of."""
        self.open: bool = True

    def tell(self, method: str, params: ResourceUpdatedParams | None) -> None:
        """Send a notification that it wants."""
        self.outlet.send(self, method, params)


class Listen(Listener):
    """A `subscriptions/listen`: "all notifications delivered on the stream carry" the id of that request."""

    def __init__(self, outlet: Outlet, exchange: Exchange) -> None:
        super().__init__(outlet, {SUBSCRIPTION_ID: exchange.id}, exchange.rules)


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

    def tell(self, method: str, params: ResourceUpdatedParams | None) -> None:
        """Send it now, or when the client is ready; not at all where there was no handshake."""
        phase = self.outlet.line.session.phase
        if params is not None:
            super().tell(method, params)
        elif phase is Phase.SHAKING:
            self._owe(method)
        elif phase is Phase.OPEN and self._is_promised(method):
            super().tell(method, None)

    def _is_promised(self, method: str) -> bool:
        promised = self._promised or self.outlet.line.session.profile
        return promised.declares(method.split("/")[1] + ".list_changed")

    def _owe(self, method: str) -> None:
        """ "Our own [messages] wait for `initialized`" """
        self._owed[method] = None
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_task(self._when_ready())

    async def _when_ready(self) -> None:
        await self.outlet.line.ready.wait()
        owed, self._owed, self._waiting = self._owed, {}, None
        for method in owed:
            self.tell(method, None)

    def close(self) -> None:
        """The client is gone."""
        self.outlet.close()
        if self._waiting is not None:
            self._waiting.cancel()
