"""A function of the user, called for one item after the other: in order, whether it is plain or async.

A plain one is called at once. An async one is awaited before the next call; items wait in the meantime, and beyond the
limit the oldest is dropped and counted. Exceptions of a callback are logged and have no other effect: in one line for
each type of exception, and once with a traceback, because the peer that causes the calls may cause any number of
failures.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from accord.errors import describe, log_line

log: logging.Logger = logging.getLogger("accord")


class Callback:
    """One callback with at most `most` waiting calls, of at most `most_bytes` together. Use it in one event loop."""

    def __init__(self, function: Callable[..., Any], most: int, most_bytes: int | None = None) -> None:
        self._function = function
        self._most = most
        self._most_bytes = most_bytes
        self._waiting: deque[tuple[tuple[Any, ...], int]] = deque()
        self._bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._failures: set[type[BaseException]] = set()
        self.dropped: int = 0
        """Number of calls that were dropped, because too many waited."""

    @property
    def is_running(self) -> bool:
        """Return whether a call is unfinished."""
        return self._task is not None

    def call(self, *args: Any, size: int = 0) -> None:
        """Call the function now, or after the unfinished calls; `size` is that of the arguments, in bytes."""
        if self._task is not None:
            self._wait(args, size)
            return
        first = self._call(args)
        if first is not None:
            self._task = asyncio.get_running_loop().create_task(self._drain(first))
            self._task.add_done_callback(lambda _: _close(first))

    async def finish(self, seconds: float) -> None:
        """Wait until all calls are finished, at most `seconds`; then cancel the rest."""
        task = self._task
        if task is not None and task is not asyncio.current_task():
            await asyncio.wait([task], timeout=seconds)
            if not task.done():
                log.warning("accord: callback %r took longer than %g s and was cancelled", self._function, seconds)
            self.cancel()

    def cancel(self) -> None:
        """Drop the waiting calls, and cancel the running one."""
        self._waiting.clear()
        self._bytes = 0
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _wait(self, args: tuple[Any, ...], size: int) -> None:
        while self._waiting and self._is_full(size):
            self._pop()
            self.dropped += 1
            if self.dropped == 1:
                log.warning("accord: callback %r is too slow: the oldest of its calls are dropped", self._function)
        self._waiting.append((args, size))
        self._bytes += size

    def _is_full(self, size: int) -> bool:
        too_large = self._most_bytes is not None and self._bytes + size > self._most_bytes
        return too_large or len(self._waiting) >= self._most

    def _pop(self) -> tuple[Any, ...]:
        args, size = self._waiting.popleft()
        self._bytes -= size
        return args

    def _call(self, args: tuple[Any, ...]) -> Awaitable[Any] | None:
        """Call the function; return the awaitable if it is async."""
        try:
            returned = self._function(*args)
        except Exception as exc:
            self._log_failure(exc)
            return None
        return returned if isinstance(returned, Awaitable) else None

    def _log_failure(self, exc: BaseException) -> None:
        level = logging.DEBUG if type(exc) in self._failures else logging.ERROR
        trace = exc if level == logging.DEBUG or not self._failures else None
        self._failures.add(type(exc))
        log.log(level, "accord: a callback failed: %s", log_line(describe(exc)), exc_info=trace)

    async def _drain(self, awaited: Awaitable[Any] | None) -> None:
        """Await one call after the other, until none waits."""
        while True:
            try:
                if awaited is not None:
                    await awaited
            except (Exception, asyncio.CancelledError) as exc:
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise
                self._log_failure(exc)
            if not self._waiting:
                self._task = None
                return
            awaited = self._call(self._pop())


def _close(awaitable: Awaitable[Any]) -> None:
    """Close a coroutine whose task was cancelled before it started, so that Python does not warn."""
    if asyncio.iscoroutine(awaitable):
        awaitable.close()
