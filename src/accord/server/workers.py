"""Threads for plain `def` handlers: bounded, daemons, made when needed.

The pools of the standard library keep a process alive behind a thread that is stuck; these end with it. Results come
back to the loop in one wake-up, however many there are.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any

from accord.errors import InternalError
from accord.limits import DEFAULT_LIMITS, Limits

Outcome = tuple[bool, Any]
"""Whether it returned, and what; or what it raised."""


class Workers:
    """A pool for one event loop."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[tuple[asyncio.Future[Outcome], Callable[[], Any]]] = SimpleQueue()
        self._done: deque[tuple[asyncio.Future[Outcome], Outcome]] = deque()
        self._threads = 0
        self._busy = 0
        self._waking = False
        self._lock = threading.Lock()

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call `function` in a thread, in a copy of this context; what it returns or raises, whatever it is.

        Raises `InternalError` when all threads are busy and too many calls wait already.
        """
        if self._busy >= self._limits.workers + self._limits.worker_queue:
            raise InternalError(
                f"all {self._limits.workers} worker threads are busy and {self._limits.worker_queue} calls wait; "
                "try again later"
            )
        future: asyncio.Future[Outcome] = self._loop.create_future()
        context = copy_context()
        self._busy += 1
        self._jobs.put((future, lambda: context.run(function, *args, **kwargs)))
        if self._busy > self._threads < self._limits.workers:
            self._grow()
        returned, value = await future
        if returned:
            return value
        raise value

    def _grow(self) -> None:
        self._threads += 1
        threading.Thread(target=self._work, name=f"accord-worker-{self._threads}", daemon=True).start()

    def _work(self) -> None:
        while True:
            future, job = self._jobs.get()
            try:
                outcome = (True, None if future.cancelled() else job())
            except BaseException as exc:  # a handler may raise anything; the caller gets it
                outcome = (False, exc)
            self._hand_back(future, outcome)
            del future, job, outcome

    def _hand_back(self, future: asyncio.Future[Outcome], outcome: Outcome) -> None:
        with self._lock:
            self._done.append((future, outcome))
            if self._waking:
                return
            self._waking = True
        try:
            self._loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:  # the loop has closed: nobody waits any more
            self._done.clear()

    def _deliver(self) -> None:
        with self._lock:
            self._waking = False
            done, self._done = self._done, deque()
        for future, outcome in done:
            self._busy -= 1
            if not future.cancelled():
                future.set_result(outcome)
