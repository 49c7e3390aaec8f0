"""Warns when a function of the program blocks the event loop, so that the server cannot answer other requests.

One daemon thread checks the event loops of all servers four times a second. It suspects a loop whose thread is inside a
function of the program, and schedules a callback on it; if the callback has not run a second later, the loop is
blocked. So a call costs nothing, and an idle loop is never woken.
"""

from __future__ import annotations

import asyncio
import linecache
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

from accord.server.core.per_loop import PerLoop
from accord.server.declare.parameters import relative_path

log: logging.Logger = logging.getLogger("accord.server")

HELD_SECONDS = 1.0
"""A loop is blocked if it runs nothing else for this long."""

_CHECK_SECONDS = 0.25
_MUTED_SECONDS = 60.0
"""Seconds before a line of code is reported again."""
_MAX_MUTED = 100

_ACCORD = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep
_CALLERS = (os.path.join(_ACCORD, "server", ""), os.path.join(_ACCORD, "transport", ""))
"""The folders of the code that calls functions of a program."""
_STDLIB = os.path.dirname(os.__file__) + os.sep
_PACKAGES = f"{os.sep}site-packages{os.sep}"


class LoopMonitor:
    """The monitor of one event loop, called from the watchdog thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        self.servers: int = 0
        """The number of servers on this loop."""
        self._loop = loop
        self._thread = thread
        self._pinged_at: float | None = None
        self._reported = False

    def check(self, now: float) -> str | None:
        """Return a warning if the loop has been blocked since a check at least `HELD_SECONDS` ago."""
        if self._pinged_at is None:
            if self._handler() is not None:
                self._ping(now)
            return None
        if self._reported or now - self._pinged_at < HELD_SECONDS or (frames := self._handler()) is None:
            return None
        self._reported = True
        return _warning(*frames)

    def location(self) -> tuple[str, int] | None:
        """Return the file and the line of the program's code that runs now."""
        frames = self._handler()
        return None if frames is None else (frames[1].f_code.co_filename, frames[1].f_lineno)

    def _ping(self, now: float) -> None:
        self._pinged_at, self._reported = now, False
        try:
            self._loop.call_soon_threadsafe(self._pong)
        except RuntimeError:  # the loop is closed
            self._pinged_at = None

    def _pong(self) -> None:
        self._pinged_at = None

    def _handler(self) -> tuple[FrameType, FrameType] | None:
        """Return the frame of the function that accord called, and the innermost frame of the program in it."""
        innermost: FrameType | None = None
        for frame, outer in _pairs(sys._current_frames().get(self._thread)):
            if innermost is None and not _is_library(frame):
                innermost = frame
            if not _is_ours(frame) and outer.f_code.co_filename.startswith(_CALLERS):
                return frame, innermost or frame
        return None


def _pairs(frame: FrameType | None) -> Iterator[tuple[FrameType, FrameType]]:
    """Yield each frame of a stack, from the inside, and its caller; without those of the standard library."""
    while frame is not None:
        outer = frame.f_back
        while outer is not None and _is_stdlib(outer):
            outer = outer.f_back
        if outer is None:
            return
        if not _is_stdlib(frame):
            yield frame, outer
        frame = outer


def _is_stdlib(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return name.startswith("<frozen") or (name.startswith(_STDLIB) and _PACKAGES not in name)


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_ACCORD)


def _is_library(frame: FrameType) -> bool:
    return _is_ours(frame) or _PACKAGES in frame.f_code.co_filename


def _warning(handler: FrameType, inner: FrameType) -> str:
    name, code = handler.f_code.co_qualname.rpartition("<locals>.")[2], inner.f_code
    line = linecache.getline(code.co_filename, inner.f_lineno).strip()
    return (
        f"{name}() blocked the event loop for more than {HELD_SECONDS:g} s "
        f"at {relative_path(code.co_filename)}:{inner.f_lineno}"
        + (f" ({line:.80})" if line else "")
        + "; the server answers no other request meanwhile: declare it with `def`, so that it runs in a thread, "
        "or await asyncio.to_thread(...)"
    )


class Watchdog:
    """The thread that checks the event loops, while there are any."""

    def __init__(self) -> None:
        self._monitors: PerLoop[LoopMonitor] = PerLoop()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._muted: dict[tuple[str, int], float] = {}

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch the loop of this thread; pair each call with `leave`."""
        with self._lock:
            monitor = self._monitors.setdefault(loop, LoopMonitor(loop, threading.get_ident()))
            monitor.servers += 1
            if self._thread is None or not self._thread.is_alive():  # not alive: this is a forked process
                self._stop = threading.Event()
                self._thread = threading.Thread(
                    target=self._run, args=(self._stop,), name="accord-watchdog", daemon=True
                )
                self._thread.start()

    def leave(self, loop: asyncio.AbstractEventLoop) -> None:
        """Count one server less on this loop; the thread ends with the last loop."""
        with self._lock:
            monitor = self._monitors.get(loop)
            if monitor is not None:
                monitor.servers -= 1
                if not monitor.servers:
                    del self._monitors[loop]
                    self._stop_if_idle()

    def _stop_if_idle(self) -> None:
        if not self._monitors:
            self._thread = None
            self._stop.set()

    def _run(self, stop: threading.Event) -> None:
        while not stop.wait(_CHECK_SECONDS):
            with self._lock:
                self._monitors.drop_closed()  # without calls of `leave`
                self._stop_if_idle()
                monitors = list(self._monitors.values())
            for monitor in monitors:
                self._report(monitor, time.monotonic())

    def _report(self, monitor: LoopMonitor, now: float) -> None:
        warning = monitor.check(now)
        if warning is None:
            return
        place = monitor.location()
        if place is not None and now < self._muted.get(place, 0.0):
            return
        if place is not None:
            if len(self._muted) >= _MAX_MUTED:
                self._muted.clear()
            self._muted[place] = now + _MUTED_SECONDS
        log.warning("accord: %s", warning)


WATCHDOG = Watchdog()
"""The watchdog of this process."""
