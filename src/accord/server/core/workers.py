"""Threads for plain `def` handlers: bounded, daemons, created when needed.

The pools of the standard library keep a process alive while a thread is stuck; these threads end with it. Passing calls
between threads is expensive, so calls that arrive together are passed to one thread together, once no more arrive, and
their results return to the loop together. Calls that still wait a moment later get threads of their own.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from types import CoroutineType
from typing import Any

from accord.errors import InternalError
from accord.limits import DEFAULT_LIMITS, Limits

Outcome = tuple[bool, Any]
"""Whether the call returned, and its value or its exception."""

_QUEUE_SECONDS = 0.001
"""Seconds that a call may wait behind others before it gets a thread of its own."""


class WorkerPool:
    """The worker threads of one event loop."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._jobs: deque[tuple[asyncio.Future[Outcome], Callable[[], Any]]] = deque()
        self._done: deque[tuple[asyncio.Future[Outcome], Outcome]] = deque()
        self._busy = 0  # calls that are waiting or running
        self._arrived = self._finished = 0
        self._finished_at_check = 0  # `_finished` at the last check
        self._start_scheduled = self._check_scheduled = self._delivery_scheduled = False
        self._threads = 0
        self._idle = 0
        self._closed = False
        self._wake_ups: SimpleQueue[None] = SimpleQueue()  # cheaper than a semaphore, which is Python code
        self._lock = threading.Lock()  # guards _idle, and the check for jobs before a thread becomes idle

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call `function` in a thread, in a copy of this context; return its value or raise its exception.

        A coroutine that it returns, as a plain wrapper around an `async def` does, is awaited on the loop.

        Raises `InternalError` when all threads are busy and too many calls wait already.
        """
        if self._busy >= self._limits.workers + self._limits.worker_queue:
            raise InternalError(
                f"all {self._limits.workers} worker threads are busy and {self._limits.worker_queue} calls wait "
                "(Limits.workers, worker_queue); try again later"
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
        """Stop the threads, each after its current call."""
        self._closed = True
        self._wake_threads(self._threads)

    # --- on the loop -------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Schedule the call that was just added."""
        if self._busy == 1:
            self._wake(1)
        elif not self._start_scheduled:
            self._start_scheduled = True
            self._loop.call_soon(self._start_when_quiet, self._arrived)

    def _start_when_quiet(self, seen: int) -> None:
        """Wake one thread for the added calls, once an iteration of the loop has added no more."""
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
        """Deliver results, and wake more threads for waiting calls if the running ones are stuck."""
        self._check_scheduled = False
        self._deliver()
        moves, self._finished_at_check = self._finished != self._finished_at_check, self._finished
        self._wake(min(1, len(self._jobs)) if moves else len(self._jobs))
        self._schedule_check()

    def _wake(self, calls: int) -> None:
        """Wake or create as many threads as there are calls, within the limit."""
        with self._lock:
            woken = min(calls, self._idle)
            self._idle -= woken
        self._wake_threads(woken)
        for _ in range(min(calls - woken, self._limits.workers - self._threads)):
            self._threads += 1
            threading.Thread(target=self._work, name=f"accord-worker-{self._threads}", daemon=True).start()

    def _wake_threads(self, count: int) -> None:
        for _ in range(count):
            self._wake_ups.put(None)

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
            self._wake_ups.get()

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
        if (
            not self._jobs and not self._delivery_scheduled
        ):  # otherwise the thread of the last job schedules it, or `_check` delivers
            self._delivery_scheduled = True
            self._schedule_delivery()

    def _schedule_delivery(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._deliver_scheduled)
        except RuntimeError:  # the loop has closed: no caller waits
            self._done.clear()
