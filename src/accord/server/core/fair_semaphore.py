"""`FairSemaphore`: a limit on operations at once, whose free slots go to all accounts in turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSemaphore:
    """A semaphore with so many slots. An account with many waiting operations delays its own, not those of others.

    It belongs to one event loop.
    """

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # the account of the next turn first

    @asynccontextmanager
    async def slot(self, account: str) -> AsyncIterator[None]:
        """Wait for a slot, and hold it in the block."""
        await self._acquire(account)
        try:
            yield
        finally:
            self._release()

    async def _acquire(self, account: str) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(account, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the slot came at the same time
                self._release()
            raise

    def _release(self) -> None:
        while self._waiting:
            account = next(iter(self._waiting))
            turns = self._waiting.pop(account)
            turn = turns.popleft()
            if turns:
                self._waiting[account] = turns  # as the last one
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
