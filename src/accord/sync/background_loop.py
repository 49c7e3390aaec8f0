"""An event loop on a thread of its own, for those who wait for what runs on it.

The thread is a daemon and lives only while it is wanted. The loop outlives it: what was made on it (locks, events) may
be used again when the next thread runs it. Whoever waits is never left waiting: when the thread ends, what still runs
is cancelled, and that is told.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar

from accord.errors import AccordError, LocalProtocolError, NotConnected

T = TypeVar("T")
P = ParamSpec("P")

log: logging.Logger = logging.getLogger("accord.client")

_CLEANUP_SECONDS = 1.0
"""Seconds that what is cancelled has to clean up."""

_JOIN_SECONDS = 5.0
"""Seconds to wait for the end of the thread; only a callback that blocks the loop makes it longer."""


class BackgroundLoop:
    """A loop that runs from `start` to `stop`, as often as is wished. From any thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._previous: threading.Thread | None = None
        self._discarded = False

    @property
    def is_running(self) -> bool:
        """Whether it runs."""
        return self._thread is not None

    @property
    def is_current_thread(self) -> bool:
        """Whether who asks is run by it: a callback."""
        return self._thread is threading.current_thread()

    def start(self) -> None:
        """Run the loop, if it does not run."""
        with self._lock:
            if self._thread is None:
                name = f"accord {self._name}"
                self._thread = threading.Thread(target=self._run_loop, args=(self._previous,), name=name, daemon=True)
                self._previous = self._thread
                self._thread.start()

    def stop(self) -> None:
        """End the thread: what still runs is cancelled, and those who wait for it get `NotConnected`."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_SECONDS)
            if thread.is_alive():
                log.warning("accord: %s: a callback holds up the end of the client's thread", self._name)

    def discard(self) -> None:
        """It is not wanted any more: give the loop back."""
        self._discarded = True
        self.stop()
        if not self._loop.is_running():
            self._loop.close()

    def _run_loop(self, before: threading.Thread | None) -> None:
        """What the thread does, when the one before it is over."""
        if before is not None:
            before.join()
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        except BaseException as exc:  # SystemExit in a callback goes through the loop: nothing there is whole any more
            log.error("accord: %s: its thread ends, as a callback raised %r", self._name, exc)
        with self._lock:
            if self._thread is threading.current_thread():
                self._thread = None
        self._cancel_all()
        asyncio.set_event_loop(None)
        if self._discarded:
            self._loop.close()

    def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=_CLEANUP_SECONDS))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())

    # --- work for it -------------------------------------------------------------------------------------------

    def run(self, coroutine: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
        """What the coroutine gives, or raises. Ctrl-C cancels it, lets it clean up, and is raised.

        Raises `NotConnected` where the loop does not run, or ends meanwhile, `LocalProtocolError` in a callback, and
        `TimeoutError` after `seconds`.
        """
        waiting: Future[T] = Future()
        tasks: list[asyncio.Task[T]] = []

        def begin() -> None:
            task = self._loop.create_task(coroutine, context=context)
            tasks.append(task)
            task.add_done_callback(lambda task: _settle(task, waiting))

        def give_up() -> None:
            if tasks:
                tasks[0].cancel()
            else:  # interrupted before it was handed over
                coroutine.close()
                waiting.cancel()

        context = copy_context()
        try:
            self._schedule(begin)
            return waiting.result(seconds)
        except (KeyboardInterrupt, TimeoutError):
            if not waiting.done():  # it is ours, not the coroutine's
                self._loop.call_soon_threadsafe(give_up)
                wait([waiting], _CLEANUP_SECONDS)
            raise
        except AccordError:
            coroutine.close()  # it was not handed over; or is over, which it does not mind
            raise

    def call(self, function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """What the function gives, called by the loop if it runs; else, and in a callback, at once."""

        async def called() -> T:
            return function(*args, **options)

        return self.run(called()) if self.is_running and not self.is_current_thread else function(*args, **options)

    def _schedule(self, begin: Callable[[], None]) -> None:
        if self.is_current_thread:
            raise LocalProtocolError(
                f"{self._name}: a callback of a blocking client cannot wait for that client, which waits for it; "
                "make the call elsewhere"
            )
        with self._lock:  # so that it does not end between the look and the call
            if self._thread is None:
                raise NotConnected("the client is not connected; use `with Client(...)` or `connect()`")
            self._loop.call_soon_threadsafe(begin)


def _settle(task: asyncio.Task[T], waiting: Future[T]) -> None:
    if task.cancelled():
        waiting.set_exception(NotConnected("the client was closed meanwhile"))
    elif (error := task.exception()) is not None:
        waiting.set_exception(error)
    else:
        waiting.set_result(task.result())
