"""The exit of a server whose client is gone while its event loop is blocked.

A running event loop sees the end of the input. A loop that a tool blocks does not, and such a server would run for
ever; so a daemon thread also watches the input.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from accord.transport.descriptors import blocks

_EXIT_CODE = 1
_PARTS = 20
"""Number of parts of the grace period: a process that was suspended, or got no processor time, misses only one of
them."""


def watch_hangup(
    fd: int,
    loop: asyncio.AbstractEventLoop,
    *,
    grace_seconds: float,
    exit_process: Callable[[int], None] = os._exit,
    on_hangup: Callable[[], None] = lambda: None,
) -> Callable[[], None]:
    """Exit the process if `fd` has hung up and the event loop does not react. Call it in the loop's thread.

    Returns a function that stops the watch. Only pipes and sockets hang up, and nothing does on Windows.
    """
    if blocks(fd):
        return lambda: None
    own, (stopped, stop) = os.dup(fd), os.pipe()
    watch = _HangupMonitor(own, stopped, loop, grace_seconds, exit_process, on_hangup)
    threading.Thread(target=watch.run, name="accord hang-up watch", daemon=True).start()
    return lambda: os.close(stop)


class _HangupMonitor:
    def __init__(
        self,
        fd: int,
        stopped: int,
        loop: asyncio.AbstractEventLoop,
        grace_seconds: float,
        exit_process: Callable[[int], None],
        on_hangup: Callable[[], None],
    ) -> None:
        self._fd = fd
        self._stopped = stopped
        self._loop = loop
        self._thread = threading.get_ident()
        self._grace = grace_seconds
        self._exit = exit_process
        self._on_hangup = on_hangup

    def run(self) -> None:
        try:
            if self._has_hung_up():
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._on_hangup)
                self._end_when_stuck()
        finally:
            os.close(self._fd)
            os.close(self._stopped)

    def _has_hung_up(self) -> bool:
        poll = select.poll()
        poll.register(self._fd, getattr(select, "POLLRDHUP", 0))  # POLLHUP is always reported
        poll.register(self._stopped, 0)
        return self._stopped not in dict(poll.poll())

    def _end_when_stuck(self) -> None:
        stop = select.poll()
        stop.register(self._stopped, 0)
        while not stop.poll(0):
            reacted = threading.Event()
            try:
                self._loop.call_soon_threadsafe(reacted.set)
            except RuntimeError:  # the loop is closed: the program is exiting
                return
            if not self._reacts(reacted) and not stop.poll(0):
                self._report()
                self._exit(_EXIT_CODE)
                return
            stop.poll(1000)

    def _reacts(self, reacted: threading.Event) -> bool:
        """Return whether the loop reacts within the grace period, of which only the time counts in which it could
        run."""
        return any(reacted.wait(self._grace / _PARTS) for _ in range(_PARTS))

    def _report(self) -> None:
        write_stderr_nowait(
            f"accord: the client is gone and the event loop did not react for {self._grace:g} s, "
            f"blocked at {current_line_of(self._thread)}; the process ends\n"
        )


def write_stderr_nowait(text: str) -> None:
    """Write to stderr; if that is a full pipe without a reader, the message is lost, so that the exit is not
    blocked."""
    with suppress(OSError):
        if select.select([], [2], [], 0)[1]:
            os.write(2, text.encode())


def current_line_of(thread: int) -> str:
    """Return the file and the line that the thread with this identifier executes."""
    frame = sys._current_frames().get(thread)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "an unknown place"
