"""A clock that the tests move."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest

from accord.server.asking import runs, state


class Clock:
    """The time of the loop and of the asking machinery, which moves on when it is told to."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    def time(self) -> float:
        return time.time() + self.ahead

    async def jump(self, seconds: float) -> None:
        """Move on, and let happen what is due then."""
        asyncio.get_running_loop().time = self.monotonic  # type: ignore[method-assign]
        self.ahead += seconds
        for _ in range(10):
            await asyncio.sleep(0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock to move."""
    made = Clock()
    for module in (runs, state):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=made.time, monotonic=made.monotonic))
    return made
