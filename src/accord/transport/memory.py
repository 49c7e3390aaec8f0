"""Two connected transports in one process: messages are the same bytes objects on both ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from accord.errors import ConnectionLost, describe
from accord.limits import DEFAULT_LIMITS, Limits
from accord.transport.base import Message
from accord.transport.inbox import Inbox


class MemoryTransport:
    """One end of a pair; `pair()` creates both."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._capacity = asyncio.Event()
        self._inbox = Inbox(limits.pending_bytes, self._capacity.set)
        self._peer = self
        self._error: BaseException | None = None

    @property
    def name(self) -> str:
        return "memory"

    async def open(self) -> None:
        """Do nothing."""

    def receive(self) -> Coroutine[Any, Any, list[Message]]:
        return self._inbox.get()

    def send(self, message: bytes) -> None:
        self._peer._inbox.put([message], len(message))

    def flush(self) -> None:
        """Do nothing: `send` has delivered the messages."""

    async def drain(self) -> None:
        peer = self._peer
        while peer._inbox.full:
            peer._capacity.clear()
            await peer._capacity.wait()

    async def close(self) -> None:
        self._inbox.end()
        self._peer._inbox.end()

    def fail(self, error: BaseException) -> None:
        """End the connection with an error of this end, which the other end reports."""
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
    """Return two connected transports."""
    first, second = MemoryTransport(limits), MemoryTransport(limits)
    first._peer, second._peer = second, first
    return first, second
