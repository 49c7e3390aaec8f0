"""Threads for plain `def` handlers: bounded, daemons, made when needed.

The pools of the standard library keep a process alive behind a thread that is stuck; these end with it. What makes
threads dear is handing over: so calls that come together are given to one thread together, once no more are coming,
and their results come back to the loop together. Calls that still wait a moment later get threads of their own.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from types import CoroutineType
from typing import Any

from accord.errors import InternalError
from accord.limits import DEFAULT_LIMITS, Limits

Outcome = tuple[bool, Any]
"""Whether it returned, and what; or what it raised."""

_QUEUE_SECONDS = 0.001
"""Seconds that a call may wait behind others before it gets a thread of its own."""


class WorkerPool:
    """A pool for one event loop."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._jobs: deque[tuple[asyncio.Future[Outcome], Callable[[], Any]]] = deque()
        self._done: deque[tuple[asyncio.Future[Outcome], Outcome]] = deque()
        self._busy = 0  # calls that are waiting or running
        self._arrived = self._finished = 0
        self._finished_at_check = 0  # how many had finished at the last look
        self._start_scheduled = self._check_scheduled = self._delivery_scheduled = False
        self._threads = 0
        self._idle = 0
        self._closed = False
        self._work_available = threading.Semaphore(0)
        self._lock = threading.Lock()  # guards _asleep, and whether there is work for those who fall asleep

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call `function` in a thread, in a copy of this context; what it returns or raises, whatever it is.

        A coroutine that it returns, as a plain wrapper around an `async def` does, is awaited on the loop.

        Raises `InternalError` when all threads are busy and too many calls wait already.
        """
        if self._busy >= self._limits.workers + self._limits.worker_queue:
            raise InternalError(
                f"all {self._limits.workers} worker threads are busy and {self._limits.worker_queue} calls wait; "
                "try again later"
            )
        future: asyncio.Future[Outcome] = self._loop.create_future()
        context = copy_context()
        self._jobs.append((future, lambda: context.run(function, *args, **kwargs)))
        self._busy += 1
        self._arrived += 1
        self._start()
        returned, value = await future
        if not returned:
            raise value
        return await value if type(value) is CoroutineType else value

    def close(self) -> None:
        """Let the threads go, each after the call it is at."""
        self._closed = True
        self._work_available.release(max(1, self._threads))

    # --- on the loop -------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """See that the call that has just come will run."""
        if self._busy == 1:
            self._wake(1)
        elif not self._start_scheduled:
            self._start_scheduled = True
            self._loop.call_soon(self._start_when_quiet, self._arrived)

    def _start_when_quiet(self, seen: int) -> None:
        """Once a turn of the loop has brought no more calls, let one thread begin with those that came."""
        if self._arrived != seen:
            self._loop.call_soon(self._start_when_quiet, self._arrived)
            return
        self._start_scheduled = False
        self._wake(1)
        self._schedule_check()

    def _schedule_check(self) -> None:
        if not self._check_scheduled and (self._jobs or self._done):
            self._check_scheduled = True
            self._loop.call_later(_QUEUE_SECONDS, self._check)

    def _check(self) -> None:
        """A moment later: what is done goes out, and what still waits gets more threads if those at work are stuck."""
        self._check_scheduled = False
        self._deliver()
        moves, self._finished_at_check = self._finished != self._finished_at_check, self._finished
        self._wake(min(1, len(self._jobs)) if moves else len(self._jobs))
        self._schedule_check()

    def _wake(self, calls: int) -> None:
        """Have as many threads at work as there are calls, within the limit."""
        with self._lock:
            woken = min(calls, self._idle)
            self._idle -= woken
        if woken:
            self._work_available.release(woken)
        for _ in range(min(calls - woken, self._limits.workers - self._threads)):
            self._threads += 1
            threading.Thread(target=self._work, name=f"accord-worker-{self._threads}", daemon=True).start()

    def _deliver_scheduled(self) -> None:
        self._delivery_scheduled = False
        self._deliver()

    def _deliver(self) -> None:
        done = self._done
        while done:
            future, outcome = done.popleft()
            self._busy -= 1
            self._finished += 1
            if not future.cancelled():
                future.set_result(outcome)

    # --- in the threads ----------------------------------------------------------------------------------------

    def _work(self) -> None:
        while not self._closed:
            while self._jobs:
                self._do_one()
            with self._lock:
                if self._jobs:
                    continue
                self._idle += 1
            self._work_available.acquire()

    def _do_one(self) -> None:
        try:
            future, job = self._jobs.popleft()
        except IndexError:  # another thread was faster
            return
        try:
            outcome = (True, None if future.cancelled() else job())
        except BaseException as exc:  # a handler may raise anything; the caller gets it
            outcome = (False, exc)
        self._done.append((future, outcome))
        if not self._jobs and not self._delivery_scheduled:  # else whoever does the last one rings, or the loop looks
            self._delivery_scheduled = True
            self._schedule_delivery()

    def _schedule_delivery(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._deliver_scheduled)
        except RuntimeError:  # the loop has closed: nobody waits any more
            self._done.clear()
