"""`SingleFlight`: concurrent requests for one thing share one operation."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable
from contextvars import Context
from typing import Any, Generic, TypeVar

Outcome = TypeVar("Outcome")


class SingleFlight(Generic[Outcome]):
    """The operations in progress, by event loop and key.

    An operation has no context variables of the request that starts it, and goes on if that is cancelled; if all its
    requests are cancelled, it goes on unless it is `cancellable`.
    """

    def __init__(self, *, cancellable: bool = False) -> None:
        self._tasks: dict[tuple[asyncio.AbstractEventLoop, Hashable], asyncio.Task[Outcome]] = {}
        self._waiting = Counter[asyncio.Task[Outcome]]()
        self._cancellable = cancellable

    async def run(self, key: Hashable, operation: Callable[[], Coroutine[Any, Any, Outcome]]) -> Outcome:
        """Return the outcome of the operation with this key, which is started unless it is in progress.

        Raises what it raises.
        """
        task = self.start(key, operation)
        self._waiting[task] += 1
        try:
            return await asyncio.shield(task)
        finally:
            self._leave(key, task)

    def _leave(self, key: Hashable, task: asyncio.Task[Outcome]) -> None:
        self._waiting[task] -= 1
        if self._waiting[task]:
            return
        del self._waiting[task]
        if self._cancellable and not task.done():
            del self._tasks[asyncio.get_running_loop(), key]
            task.cancel()

    def start(self, key: Hashable, operation: Callable[[], Coroutine[Any, Any, Outcome]]) -> asyncio.Task[Outcome]:
        """Return the task of the operation with this key, started unless it is in progress."""
        place = asyncio.get_running_loop(), key
        task = self._tasks.get(place)
        if task is None:
            task = self._tasks[place] = asyncio.create_task(operation(), context=Context())
            task.add_done_callback(lambda done: self._end(place, done))
        return task

    def is_running(self, key: Hashable) -> bool:
        """Return whether the operation with this key is in progress on this event loop."""
        return (asyncio.get_running_loop(), key) in self._tasks

    def _end(self, place: tuple[asyncio.AbstractEventLoop, Hashable], task: asyncio.Task[Outcome]) -> None:
        if self._tasks.get(place) is task:
            del self._tasks[place]
        if not task.cancelled():
            task.exception()  # requests that waited have it; without any, it is not unexpected
