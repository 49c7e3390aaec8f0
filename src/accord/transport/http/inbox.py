"""Messages on their way in, from several responses to the one who receives; who brings too many waits.

Bytes that were sent and not taken yet: who sends much waits for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from accord.limits import Limits
from accord.transport.base import Message
from accord.transport.inbox import Inbox


class HTTPInbox:
    """The inbox of a transport over HTTP."""

    def __init__(self, limits: Limits) -> None:
        self._inbox = Inbox(limits.pending_bytes, self._on_capacity)
        self._capacity = asyncio.Event()
        self.on_answer: Callable[[bytes], None] | None = None
        """Takes answers, where that is quicker than to be waited for."""

    def _on_capacity(self) -> None:
        self._capacity.set()

    def put_answer(self, message: bytes) -> None:
        """Hand on the answer to a request of ours: at once where somebody takes it, and nothing came before it."""
        if self.on_answer is not None and self._inbox.idle:
            self.on_answer(message)
        else:
            self.put(message)

    def put(self, message: Message) -> None:
        """Add one message. It is taken in any case: call `wait_capacity` before more is read."""
        self._inbox.put([message], len(message) if isinstance(message, bytes) else 0)

    async def wait_capacity(self) -> None:
        """Wait until what came before has been received, if it is much."""
        while self._inbox.full:
            self._capacity.clear()
            await self._capacity.wait()

    def receive(self) -> Coroutine[Any, Any, list[Message]]:
        """As `Transport.receive`."""
        return self._inbox.get()

    def end(self) -> None:
        """Nothing more will come."""
        self._inbox.end()

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self._inbox.ended


ANSWER_BYTES = 32 << 10
"""What an answer of ours takes until a server has taken it: a request over HTTP, with its task and its connection. A
server that asks and takes no answers would otherwise have a million of them, each of a few bytes."""


class Backlog:
    """How much of what was sent a server has not responded to."""

    def __init__(self) -> None:
        self._size = 0
        self._ended = False
        self._reduced: asyncio.Event | None = None  # while somebody waits

    def add(self, size: int) -> None:
        """So much was sent."""
        self._size += size

    def remove(self, size: int) -> None:
        """So much was taken, or given up."""
        self._size -= size
        self._wake()

    def end(self) -> None:
        """Nothing more will be taken."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._reduced is not None:
            self._reduced.set()

    async def wait_below(self, most: int) -> None:
        """Wait until it is less than `most`, or has ended."""
        await asyncio.sleep(0)  # what was begun to be sent in this turn is added in the next
        while self._size >= most and not self._ended:
            if self._reduced is None:
                self._reduced = asyncio.Event()
            self._reduced.clear()
            await self._reduced.wait()
