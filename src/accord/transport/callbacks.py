"""A function of the user's, called for one thing after the other: in order, whether it is plain or async.

A plain one is called at once. An async one is awaited before it is called again; what happens meanwhile waits, and at
the bound the oldest is dropped and counted. What a callback raises is logged and harms nobody.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

log: logging.Logger = logging.getLogger("accord")


class Callback:
    """One callback, of which at most `most` calls wait. Use it in one event loop."""

    def __init__(self, function: Callable[..., Any], most: int) -> None:
        self._function = function
        self._waiting: deque[tuple[Any, ...]] = deque(maxlen=most)
        self._task: asyncio.Task[None] | None = None
        self.dropped: int = 0
        """Calls that were not made, because too many waited."""

    @property
    def is_running(self) -> bool:
        """Whether something that it was called for is not done with."""
        return self._task is not None

    def call(self, *args: Any) -> None:
        """Call it now, or when what it was called for before is done with."""
        if self._task is not None:
            self._wait(args)
            return
        first = self._begin(args)
        if first is not None:
            self._task = asyncio.get_running_loop().create_task(self._go_on(first))
            self._task.add_done_callback(lambda _: _close(first))

    async def finish(self, seconds: float) -> None:
        """Wait until nothing waits any more, at most so long; then whatever is left is cancelled."""
        task = self._task
        if task is not None and task is not asyncio.current_task():
            await asyncio.wait([task], timeout=seconds)
            if not task.done():
                log.warning("accord: callback %r took longer than %g s and was cancelled", self._function, seconds)
            self.cancel()

    def cancel(self) -> None:
        """Drop what waits, and cancel what runs."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _wait(self, args: tuple[Any, ...]) -> None:
        if len(self._waiting) == self._waiting.maxlen:
            self.dropped += 1
            if self.dropped == 1:
                log.warning("accord: callback %r is too slow: the oldest of its calls are dropped", self._function)
        self._waiting.append(args)

    def _begin(self, args: tuple[Any, ...]) -> Awaitable[Any] | None:
        """Call it; what is to be awaited, if it is async."""
        try:
            returned = self._function(*args)
        except Exception:
            log.exception("accord: a callback failed")
            return None
        return returned if isinstance(returned, Awaitable) else None

    async def _go_on(self, awaited: Awaitable[Any] | None) -> None:
        """Await one after the other, until nothing waits."""
        while True:
            try:
                if awaited is not None:
                    await awaited
            except (Exception, asyncio.CancelledError) as exc:
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise
                log.error("accord: a callback failed", exc_info=exc)
            if not self._waiting:
                self._task = None
                return
            awaited = self._begin(self._waiting.popleft())


def _close(awaitable: Awaitable[Any]) -> None:
    """A coroutine that was never begun, because its task was cancelled before, is no mistake."""
    if asyncio.iscoroutine(awaitable):
        awaitable.close()
