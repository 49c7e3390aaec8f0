"""A clock that the tests move: what waits for minutes is due at once, and nothing because the machine is slow."""

from __future__ import annotations

import asyncio
import functools
import selectors
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, ParamSpec
from unittest.mock import patch

P = ParamSpec("P")


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


def without_waiting(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test in a loop whose time, with `time.monotonic`, jumps to the next timer when there is nothing to do.

    Threads that the test starts do something: while they are there, the time does not jump. Of processes and sockets
    the loop knows nothing: have none.
    """

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        clock = Clock()
        factory = partial(asyncio.SelectorEventLoop, _JumpingSelector(clock))
        with patch("time.monotonic", clock.monotonic), asyncio.Runner(loop_factory=factory) as runner:
            runner.run(test(*args, **kwargs))

    return run


class _JumpingSelector(selectors.DefaultSelector):  # type: ignore[valid-type,misc]
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._threads = _threads()

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None or _threads() > self._threads:
            return super().select(timeout)
        events = super().select(0)
        if not events:
            self._clock.ahead += max(timeout, 0)
        return events


def _threads() -> int:
    """Those that run, but for one that only watches a loop."""
    return sum(thread.name != "accord-watchdog" for thread in threading.enumerate())
