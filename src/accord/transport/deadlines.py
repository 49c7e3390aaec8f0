"""Deadlines without cost for work that does not wait.

Most work with a deadline finishes before it waits: a handler that computes, a body that has arrived. Therefore the
timeout starts at the first suspension, in the same task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import CoroutineType, coroutine
from typing import Any, TypeVar

from accord.errors import AccordError

T = TypeVar("T")


class OutOfTime(AccordError, TimeoutError):
    """The deadline of `with_deadline` itself, not one inside the work."""

    def __init__(self, seconds: float, limit: str = "") -> None:
        super().__init__(f"took longer than {seconds:g} s and was stopped{limit and f' ({limit})'}")


async def with_deadline(
    seconds: float | None,
    work: Awaitable[T],
    started: Callable[[asyncio.Timeout], None] | None = None,
    limit: str = "",
) -> T:
    """Await `work`, at most `seconds` from its first suspension. `started` gets the timeout, which it may reschedule.
    Raise `OutOfTime`, which names the `limit`, and the errors of `work`."""
    running: Coroutine[Any, Any, T] = work if type(work) is CoroutineType else _await_work(work)
    try:
        rest = resume(running, running.send(None))
    except StopIteration as stop:
        result: T = stop.value
        return result
    if seconds is None:
        return await rest
    try:
        async with asyncio.timeout(seconds) as timeout:
            if started is not None:
                started(timeout)
            return await rest
    except TimeoutError:
        if timeout.expired():
            raise OutOfTime(seconds, limit) from None
        raise


async def _await_work(work: Awaitable[T]) -> T:
    return await work


@coroutine
def resume(
    work: Coroutine[Any, Any, T], waits_for: Any, run: Callable[[Callable[[Any], Any], Any], Any] | None = None
) -> Generator[Any, Any, T]:
    """Await the rest of a coroutine that is already suspended; `run` executes each step, for instance in a context."""
    value: Any = None
    try:
        while True:
            step: Callable[[Any], Any] = work.send
            try:
                value = yield waits_for
            except BaseException as exc:
                step, value = work.throw, exc
            waits_for = step(value) if run is None else run(step, value)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        waits_for = value = None  # they may hold an error, whose traceback holds this frame


class HandlerAbandoned(BaseException):
    """Raised in a handler that has ignored its cancellation when the process ends."""


def is_cancelled(exc: BaseException) -> bool:
    """Return whether the exception is a cancellation of the current task, rather than an error that a handler
    raised."""
    if isinstance(exc, HandlerAbandoned):
        return True
    task = asyncio.current_task()
    return isinstance(exc, asyncio.CancelledError) and task is not None and task.cancelling() > 0
