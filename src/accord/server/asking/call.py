"""One logical call: what its handler, its context and its questions share, through all of its requests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from accord.server.asking.asker import Asker
from accord.server.asking.questions import Question, Roots
from accord.server.peer import Peer
from accord.server.roots import RootList
from accord.session.exchange import Exchange


class Call:
    """A call at work. "A resumed run belongs to the retry": then `exchange` and `peer` are those of the retry."""

    __slots__ = ("_asking", "_left", "_roots", "asker", "exchange", "filled", "limit", "peer")

    def __init__(self, exchange: Exchange, peer: Peer) -> None:
        self.exchange: Exchange = exchange
        self.peer: Peer = peer
        self.asker: Asker
        self.filled: dict[str, Any] | None = None
        """What was asked for the handler before it began."""
        self.limit: asyncio.Timeout | None = None
        """The time that the handler has; it stands still while an answer is awaited."""
        self._roots: RootList | None = None
        self._asking = 0
        self._left = 0.0

    def rebind(self, retry: Call) -> None:
        """Go on on behalf of another request."""
        self.exchange, self.peer = retry.exchange, retry.peer

    async def ask(self, questions: Sequence[Question[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """The answers, in order; the time they take is not the handler's. Raises what `Asker.ask` raises."""
        self._pause()
        try:
            return await self.asker.ask(questions, keys)
        finally:
            self._go_on()

    async def roots(self) -> RootList:
        """The client's roots: asked for once in a call, and once in a connection that tells when they change."""
        if self._roots is None:
            self._roots = self.peer.roots
        if self._roots is None:
            (self._roots,) = await self.ask((Roots(),))
            self.peer.learn_roots(self.exchange, self._roots)
        return self._roots

    def _pause(self) -> None:
        self._asking += 1
        if self.limit is not None and self._asking == 1:
            self._left = (self.limit.when() or 0.0) - asyncio.get_running_loop().time()
            self.limit.reschedule(None)

    def _go_on(self) -> None:
        self._asking -= 1
        if self.limit is not None and not self._asking:
            self.limit.reschedule(asyncio.get_running_loop().time() + self._left)
