"""An event loop on a background thread, for callers that wait for its results.

The thread is a daemon and runs from `start` to `stop`. The loop outlives it: locks and events of the loop stay usable
when the next thread runs it. No caller waits forever: when the thread ends, pending tasks are cancelled, and their
callers receive an error.

A forked process has the loop without its thread, and shares the kernel's event queue with its parent. It leaves both
alone: its callers receive an error.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import selectors
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import cached_property
from typing import Any, ParamSpec, TypeVar
from weakref import WeakSet

from accord.errors import AccordError, LocalProtocolError, NotConnected

T = TypeVar("T")
P = ParamSpec("P")

log: logging.Logger = logging.getLogger("accord.client")

_CLEANUP_SECONDS = 1.0
"""The time for cancelled tasks to clean up."""

_JOIN_SECONDS = 5.0
"""The time to wait for the thread to end; it takes longer only if a callback blocks the loop."""


class BackgroundLoop:
    """An event loop that runs from `start` to `stop`, and may be restarted. Thread-safe."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._previous: threading.Thread | None = None
        self._discarded = False
        self._is_parents = False
        _background_loops.add(self)

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        """The event loop, created when it first starts, so that a process forked before has its own."""
        return asyncio.new_event_loop()

    @property
    def _has_loop(self) -> bool:
        return "_loop" in self.__dict__

    @property
    def is_running(self) -> bool:
        """Return whether the loop runs."""
        return self._thread is not None

    @property
    def is_current_thread(self) -> bool:
        """Return whether the caller runs on the loop's thread, in a callback."""
        return self._thread is threading.current_thread()

    def start(self) -> None:
        """Start the loop unless it runs. Raises `NotConnected` in a fork of the process that first started it."""
        with self._lock:
            if self._is_parents:
                raise self._not_running()
            if self._thread is None:
                name = f"accord {self._name}"
                self._thread = threading.Thread(target=self._run_loop, args=(self._previous,), name=name, daemon=True)
                self._previous = self._thread
                self._thread.start()

    def stop(self) -> None:
        """End the thread: pending tasks are cancelled, and their callers receive `NotConnected`."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_SECONDS)
            if thread.is_alive():
                log.warning("accord: %s: a callback holds up the end of the client's thread", self._name)

    def discard(self) -> None:
        """Stop the loop for good and close it."""
        self._discarded = True
        self.stop()
        if self._has_loop and not self._is_parents and not self._loop.is_running():
            self._loop.close()

    def leave_to_parent(self) -> None:
        """Forget the thread of the parent process. Called in a process that was just forked."""
        if not self._has_loop:
            return
        self._lock = threading.Lock()
        self._thread = None
        self._is_parents = True
        selector = getattr(self._loop, "_selector", None)
        if isinstance(selector, selectors.EpollSelector):  # closing the loop must not remove files from the parent's
            with select.epoll() as empty:
                os.dup2(empty.fileno(), selector.fileno(), inheritable=False)

    def _run_loop(self, previous: threading.Thread | None) -> None:
        """Run the loop on this thread, after the previous thread has ended."""
        if previous is not None:
            previous.join()
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        except BaseException as exc:  # such as SystemExit, which leaves the loop in an unknown state
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

    # --- calls -------------------------------------------------------------------------------------------------

    def run(self, coroutine: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
        """Return the result of a coroutine, or raise its error. Ctrl-C, and whatever else a signal handler raises,
        cancels it, waits for its clean-up, and is raised.

        Raises `NotConnected` if the loop does not run or ends meanwhile, `LocalProtocolError` in a callback, and
        `TimeoutError` after `seconds`.
        """
        future: Future[T] = Future()
        tasks: list[asyncio.Task[T]] = []

        def start() -> None:
            task = self._loop.create_task(coroutine, context=context)
            tasks.append(task)
            task.add_done_callback(lambda task: _settle(task, future))

        def cancel() -> None:
            if tasks:
                tasks[0].cancel()
            else:  # interrupted before the loop received it
                coroutine.close()
                future.cancel()

        context = copy_context()
        try:
            self._schedule(start)
            return future.result(seconds)
        except AccordError:
            coroutine.close()  # the loop never received it, or it has ended, when close() does nothing
            raise
        except BaseException:
            if not future.done():  # raised by the wait, not by the coroutine
                self._loop.call_soon_threadsafe(cancel)
                wait([future], _CLEANUP_SECONDS)
            raise

    def call(self, function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Return the result of a function, called by the loop if it runs; otherwise, and in a callback, directly."""

        async def call() -> T:
            return function(*args, **options)

        return self.run(call()) if self.is_running and not self.is_current_thread else function(*args, **options)

    def _schedule(self, start: Callable[[], None]) -> None:
        if self.is_current_thread:
            raise LocalProtocolError(
                f"{self._name}: a callback of a blocking client cannot wait for that client, which waits for it; "
                "make the call elsewhere"
            )
        with self._lock:  # the loop must not end between the check and the call
            if self._thread is None:
                raise self._not_running()
            self._loop.call_soon_threadsafe(start)

    def _not_running(self) -> NotConnected:
        if self._is_parents:
            return NotConnected(
                "the client was opened before this process was forked; make another one in this process"
            )
        return NotConnected("the client is not connected; use `with Client(...)` or `connect()`")


def _settle(task: asyncio.Task[T], future: Future[T]) -> None:
    if task.cancelled():
        future.set_exception(NotConnected("the client was closed meanwhile"))
    elif (error := task.exception()) is not None:
        future.set_exception(error)
    else:
        future.set_result(task.result())


_background_loops: WeakSet[BackgroundLoop] = WeakSet()


def _leave_to_parent() -> None:
    for each in _background_loops:
        each.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
