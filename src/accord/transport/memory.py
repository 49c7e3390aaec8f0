"""Two ends in one process: what one sends, the other receives as the very same bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from accord.errors import ConnectionLost, describe
from accord.limits import DEFAULT_LIMITS, Limits
from accord.transport.base import Message
from accord.transport.inbox import Inbox


class MemoryTransport:
    """One end of a pair; `pair()` makes both."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._capacity = asyncio.Event()
        self._inbox = Inbox(limits.pending_bytes, self._capacity.set)
        self._peer = self
        self._error: BaseException | None = None

    @property
    def name(self) -> str:
        return "memory"

    async def open(self) -> None:
        """Nothing to start."""

    def receive(self) -> Coroutine[Any, Any, list[Message]]:
        return self._inbox.get()

    def send(self, message: bytes) -> None:
        self._peer._inbox.put([message], len(message))

    def flush(self) -> None:
        """Nothing waits: `send` has handed it over."""

    async def drain(self) -> None:
        peer = self._peer
        while peer._inbox.full:
            peer._capacity.clear()
            await peer._capacity.wait()

    async def close(self) -> None:
        self._inbox.end()
        self._peer._inbox.end()

    def fail(self, error: BaseException) -> None:
        """Whoever has this end has failed: the other end is told why."""
        self._peer._error = error
        self._inbox.end()
        self._peer._inbox.end()

    def lost(self) -> ConnectionLost:
        if self._error is None:
            return ConnectionLost("the other end of the in-memory connection was closed")
        lost = ConnectionLost(f"the server in this process failed: {describe(self._error)}")
        lost.__cause__ = self._error
        return lost


def pair(limits: Limits = DEFAULT_LIMITS) -> tuple[MemoryTransport, MemoryTransport]:
    """Two connected ends."""
    here, there = MemoryTransport(limits), MemoryTransport(limits)
    here._peer, there._peer = there, here
    return here, there
