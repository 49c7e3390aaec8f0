"""A task of its own for a coroutine, which costs nothing if the coroutine never waits.

An asyncio task starts in a later iteration of its loop. Most handlers never wait, and for them the task and the
iteration cost more than the handler. So the first step of a coroutine runs at once, inside the step of the task that
starts it, but as a step of a spare task: the spare is `asyncio.current_task()` from the beginning, and everything that
remembers its task (timeouts, task groups, `asyncio.current_task().cancel()`) refers to the task that runs the rest. A
coroutine that ends in its first step leaves the spare unused for the next one.

`_enter_task` and `_leave_task` are the functions that asyncio offers for other implementations of tasks
(https://docs.python.org/3/library/asyncio-extending.html). Eager tasks of Python 3.12 are the same idea.
"""

from __future__ import annotations

import asyncio
from asyncio.tasks import _enter_task, _leave_task
from collections.abc import Awaitable, Coroutine, Generator
from contextvars import Context, copy_context
from types import coroutine
from typing import Any

from accord.transport.deadlines import resume


class EagerTask:
    """A task for one coroutine that waits, and for any number before it that do not."""

    __slots__ = ("_rest", "_waits_for", "_wakes", "task")

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._wakes: asyncio.Future[None] = loop.create_future()
        self._rest: Awaitable[None] | None = None
        self._waits_for: Any = None
        """What the coroutine that the task will run waits for."""
        run = self._run()
        run.send(None)  # a coroutine that has not begun could not catch its cancellation
        self.task: asyncio.Task[None] = loop.create_task(run, context=Context())  # not that of its first caller
        """The task; cancel it to release one that is unused."""

    def start(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run `work`, which raises nothing, in a copy of this context until it ends or first waits; the task runs the
        rest. Return whether it has ended; then the task can be used again, unless it was cancelled.
        """
        loop, outer, run = asyncio.get_running_loop(), asyncio.current_task(), copy_context().run
        assert outer is not None
        _leave_task(loop, outer)
        _enter_task(loop, self.task)
        try:
            waits_for = self._waits_for = run(work.send, None)
        except StopIteration:
            return True
        finally:
            _leave_task(loop, self.task)
            _enter_task(loop, outer)
        if asyncio.isfuture(waits_for):
            waits_for._asyncio_future_blocking = False  # until the task waits for it, other tasks may
        self._rest = resume(work, waits_for, run)
        if not self._wakes.done():
            self._wakes.set_result(None)
        return False

    async def _run(self) -> None:
        try:
            await _pause()
            await self._wakes
        except asyncio.CancelledError as exc:
            if self._rest is None:
                raise
            self.task.uncancel()
            self.task.cancel(*exc.args)  # now asyncio cancels what the work waits for
        assert self._rest is not None
        if asyncio.isfuture(self._waits_for):
            self._waits_for._asyncio_future_blocking = True
        self._waits_for = None
        await self._rest


@coroutine
def _pause() -> Generator[None, None, None]:
    yield
