"""Received messages of several responses, for one receiver; responses wait beyond the limit.

`Backlog` counts the sent bytes that the server has not accepted; the sender waits beyond a limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from accord.limits import Limits
from accord.transport.base import Message
from accord.transport.inbox import Inbox


class HTTPInbox:
    """The inbox of an HTTP transport."""

    def __init__(self, limits: Limits) -> None:
        self._inbox = Inbox(limits.pending_bytes, self._on_capacity)
        self._capacity = asyncio.Event()
        self.on_answer: Callable[[bytes], None] | None = None
        """Called with responses, if that is faster than `receive`."""

    def _on_capacity(self) -> None:
        self._capacity.set()

    def put_answer(self, message: bytes) -> None:
        """Deliver the response to a request: at once if `on_answer` is set and no earlier message waits."""
        if self.on_answer is not None and self._inbox.idle:
            self.on_answer(message)
        else:
            self.put(message)

    def put(self, message: Message) -> None:
        """Add one message, in any case: call `wait_capacity` before the next read."""
        self._inbox.put([message], len(message) if isinstance(message, bytes) else 0)

    async def wait_capacity(self) -> None:
        """Wait until earlier messages have been received, if there are many."""
        while self._inbox.full:
            self._capacity.clear()
            await self._capacity.wait()

    def receive(self) -> Coroutine[Any, Any, list[Message]]:
        """See `Transport.receive`."""
        return self._inbox.get()

    def end(self) -> None:
        """End the inbox: no more messages will arrive."""
        self._inbox.end()

    @property
    def ended(self) -> bool:
        """Return whether the inbox has ended."""
        return self._inbox.ended


ANSWER_BYTES = 32 << 10
"""Memory of a response of this client until the server has accepted it: an HTTP request, with its task and its
connection. A server that sends requests and accepts no responses could otherwise cause a million of them, each of a few
bytes."""


class Backlog:
    """Counter of sent bytes to which the server has not responded."""

    def __init__(self) -> None:
        self._size = 0
        self._ended = False
        self._reduced: asyncio.Event | None = None  # while a task waits

    def add(self, size: int) -> None:
        """Count sent bytes."""
        self._size += size

    def remove(self, size: int) -> None:
        """Discount bytes that were accepted or abandoned."""
        self._size -= size
        self._wake()

    def end(self) -> None:
        """End all waits: nothing more will be accepted."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._reduced is not None:
            self._reduced.set()

    async def wait_below(self, most: int) -> None:
        """Wait until the count is less than `most`, or the backlog has ended."""
        await asyncio.sleep(0)  # messages of this step of the loop are counted in the next
        while self._size >= most and not self._ended:
            if self._reduced is None:
                self._reduced = asyncio.Event()
            self._reduced.clear()
            await self._reduced.wait()
