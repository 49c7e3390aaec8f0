"""A queue of received messages, delivered in one list, and limited by size and number."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from accord.transport.base import Message

_EACH = 256
"""Bytes that a message counts in addition to its own, for work and memory."""
_MOST_AT_ONCE = 128
"""Messages that are received in one step of the event loop: each costs some 10 to 50 µs, in which nothing else runs."""


class Inbox:
    """Messages that have arrived and are not received yet.

    `on_room` is called when a full inbox was emptied, and when it has ended.
    """

    def __init__(self, bound: int, on_room: Callable[[], None]) -> None:
        self._bound = bound
        self._on_capacity = on_room
        self._messages: list[Message] = []
        self._size = 0
        self._ended = False
        self._is_divided = False
        """Whether the last messages were only a part of those that had arrived."""
        self._waiter: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.full: bool = False
        """True if the waiting messages have reached the limit."""
        self.is_processing: bool = False
        """Whether the receiver still processes the last messages: it has not called `get` again."""

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def idle(self) -> bool:
        """Return whether a receiver waits and there is no message: the next message would be the first in order."""
        return self._waiter is not None and not self._waiter.done()

    def put(self, messages: Sequence[Message], size: int) -> None:
        """Add messages of `size` bytes together; messages after the end are dropped."""
        if not self._ended:
            self._messages += messages
            self._size += size + _EACH * len(messages)
            self.full = self._size >= self._bound
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)

    def end(self) -> None:
        """End the inbox: no more messages will arrive. Those in it can still be received."""
        if not self._ended:
            self.put((), 0)  # wakes the receiver
            self._ended, self.full = True, False
            self._on_capacity()

    async def get(self) -> list[Message]:
        """Return messages, and wait for at least one; `[]` after the end. Of many, the rest follows in later steps of
        the event loop.
        """
        self.is_processing = False
        if self._messages and self._is_divided:
            await asyncio.sleep(0)
        while not self._messages and not self._ended:
            if self._waiter is not None and not self._waiter.done():
                raise RuntimeError("receive() is already waiting in another task")
            if self._loop is None:
                self._loop = asyncio.get_running_loop()
            self._waiter = self._loop.create_future()
            await self._waiter
        messages, self._messages = self._messages, []
        self.is_processing = bool(messages)
        self._is_divided = len(messages) > _MOST_AT_ONCE
        if self._is_divided:
            self._messages = messages[_MOST_AT_ONCE:]
            return messages[:_MOST_AT_ONCE]
        self._size = 0
        if self.full:
            self.full = False
            self._on_capacity()
        return messages
