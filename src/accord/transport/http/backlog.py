"""Bytes that were sent and not taken yet: who sends much waits for that."""

from __future__ import annotations

import asyncio

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
