"""Leader and follower: await a handler in the reader's own task, and hand the reading on when it first waits.

Most handlers never wait, and a task for each costs more than they do. So the task that reads awaits the handler
itself; at its first real suspension `suspended` is called, once, to let another task read on. The handler still runs
inside a task, so that `asyncio.timeout`, task groups and cancellation work, and in a context of its own, so that a
context variable it sets is not seen by the next call.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from types import coroutine
from typing import Any, TypeVar

from accord.transport.deadlines import resume

T = TypeVar("T")


@coroutine
def run_eagerly(handler: Coroutine[Any, Any, T], suspended: Callable[[], None]) -> Generator[Any, Any, T]:
    """Await `handler`; call `suspended` when it waits for the first time. Raises what it raises."""
    run = copy_context().run
    try:
        waits_for = run(handler.send, None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    suspended()
    return (yield from resume(handler, waits_for, run))
