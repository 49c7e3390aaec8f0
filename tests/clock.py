"""A clock that the tests move: what waits for minutes is due at once, and nothing because the machine is slow."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any, TypeVar
from unittest.mock import patch

T = TypeVar("T")


_monotonic = time.monotonic


class Clock:
    """The time of an event loop, which moves on when it is told to."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        """Return the monotonic time in seconds, with all jumps."""
        return _monotonic() + self.ahead

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


def run_without_waiting(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a loop of its own, whose time jumps to the next timer as soon as there is nothing to do.

    `time.monotonic` jumps with it. Work in threads and other processes counts as nothing to do: have none.
    """
    clock = Clock()
    with patch("time.monotonic", clock.monotonic), asyncio.Runner(loop_factory=lambda: _loop(clock)) as runner:
        return runner.run(work)


def _loop(clock: Clock) -> asyncio.AbstractEventLoop:
    return asyncio.SelectorEventLoop(_JumpingSelector(clock))


class _JumpingSelector(selectors.DefaultSelector):  # type: ignore[valid-type,misc]
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> Any:
        events = super().select(None if timeout is None else 0)
        if timeout is not None and not events:
            self._clock.ahead += max(timeout, 0)
        return events
