"""A clock that the tests move: what waits for minutes is due at once, and nothing because the machine is slow."""

from __future__ import annotations

import asyncio
import time


class Clock:
    """The time of an event loop, which moves on when it is told to."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        """Return the monotonic time in seconds, with all jumps."""
        return time.monotonic() + self.ahead

    def time(self) -> float:
        """Return the time of the system in seconds, with all jumps."""
        return time.time() + self.ahead

    def move(self, seconds: float) -> None:
        """Move on the loop that runs; what is due then happens when the loop next runs."""
        asyncio.get_running_loop().time = self.monotonic  # type: ignore[method-assign]
        self.ahead += seconds

    async def jump(self, seconds: float) -> None:
        """Move on, and let happen what is due then."""
        self.move(seconds)
        for _ in range(10):
            await asyncio.sleep(0)
