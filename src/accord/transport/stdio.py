"""The server's side of stdio: the real stdin and stdout, reserved for the protocol.

While the transport is open, descriptor 0 is /dev/null and descriptor 1 is stderr, for this process and every child it
starts. Closing restores both.

`guard_streams` is the Python half: prints go to stderr with their place in the code, `input()` ends at once.
`StdioTransport` moves the descriptors themselves, so that output that bypasses `sys.stdout` (C code, child processes)
goes to stderr as well.
"""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from types import FrameType
from typing import Any, TextIO, cast

from accord.errors import ConnectError, ConnectionLost
from accord.limits import DEFAULT_LIMITS, Limits
from accord.transport.hangup import watch_hangup
from accord.transport.pipes import LineTransport

_STDLIB = os.path.dirname(os.__file__) + os.sep
_MOST_SITES = 1000


class GuardedStdout:
    """A replacement for `sys.stdout`: passes text to stderr, and reports each place that prints once."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, int]] = set()

    def write(self, text: str) -> int:
        target = sys.stderr
        if target is None:  # closed, or a program without a console
            return len(text)
        if site := self._new_site(sys._getframe(1)):
            target.write(f"accord: print() at {site} went to stderr; stdout belongs to the protocol\n")
        return target.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)

    def _new_site(self, frame: FrameType) -> str | None:
        # `logging`, `pprint` and similar modules print for their caller.
        while frame.f_back is not None and _is_stdlib(frame.f_code.co_filename):
            frame = frame.f_back
        site = (frame.f_code.co_filename, frame.f_lineno)
        if site in self._seen or len(self._seen) >= _MOST_SITES:
            return None
        self._seen.add(site)
        return f"{os.path.basename(site[0])}:{site[1]}"


def guard_streams() -> Callable[[], None]:
    """Replace `sys.stdout` and `sys.stdin`; return a function that restores them.

    Descriptor 0 must already be at its end (/dev/null): data that `sys.stdin` has buffered is not available to readers.
    """
    before = sys.stdin, sys.stdout
    empty = io.TextIOWrapper(io.FileIO(0, closefd=False)) if sys.stdin is not None else None
    guarded = cast(TextIO, GuardedStdout())
    sys.stdin, sys.stdout = cast(TextIO, empty), guarded

    def restore() -> None:
        if sys.stdout is guarded:  # otherwise another caller has redirected it since, and will restore it
            sys.stdout = before[1]
        if sys.stdin is empty:
            sys.stdin = before[0]

    return restore


def _is_stdlib(filename: str) -> bool:
    return filename.startswith(_STDLIB) and "site-packages" not in filename


if sys.platform != "win32":
    from fcntl import F_DUPFD_CLOEXEC, fcntl


class StdioTransport(LineTransport):
    """A transport over the stdin and stdout of this process.

    With `exit_when_stuck`, the process exits if the client is gone and the event loop has not reacted for
    `Limits.grace_seconds`.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, exit_when_stuck: bool = False) -> None:
        super().__init__("stdio", limits)
        self._exit_when_stuck = exit_when_stuck
        self._restore = ExitStack()

    async def open(self) -> None:
        """Take over stdin and stdout. A closed stdin counts as an input at its end; a closed stdout raises."""
        if not _is_open(1, sys.__stdout__):
            raise ConnectError("stdout is closed: no client can receive responses")
        with ExitStack() as undo:
            read_fd = _take_over(undo, 0, sys.__stdin__, os.open(os.devnull, os.O_RDONLY))
            write_fd = _take_over(undo, 1, sys.__stdout__, _stderr_or_null())
            undo.callback(guard_streams())
            if self._exit_when_stuck:
                loop, grace = asyncio.get_running_loop(), self._limits.grace_seconds
                undo.callback(watch_hangup(read_fd, loop, grace_seconds=grace, on_hangup=self._close_when_stalled))
            self._start(read_fd, write_fd)
            self._restore = undo.pop_all()

    def _close_when_stalled(self, before: int = -1) -> None:
        """Close the output if the client has closed its end of stdin and reads none of the pending bytes: it is
        gone."""
        writer = self._writer
        if writer is None or (self._inbox.ended and not writer.pending):
            return
        if writer.pending and writer.pending == before:
            writer.close()
            return
        asyncio.get_running_loop().call_later(self._limits.grace_seconds / 2, self._close_when_stalled, writer.pending)

    async def close(self) -> None:
        """Restore the streams, after the queued messages are sent."""
        try:
            await super().close()
        finally:
            self._restore.close()

    def lost(self) -> ConnectionLost:
        return ConnectionLost("the client has closed the connection")


def _take_over(undo: ExitStack, fd: int, stream: TextIO | None, replacement: int) -> int:
    """Replace descriptor `fd` by `stand_in` until `undo`; return the original as a private descriptor."""
    if not _is_open(fd, stream):
        return replacement
    original = _duplicate(fd)
    undo.callback(os.close, original)
    undo.callback(os.dup2, original, fd)
    os.dup2(replacement, fd)
    os.close(replacement)
    if stream is not None and stream.writable():
        # Text that was printed before, or is printed from now on, must not reach the client.
        _flush(stream)
        undo.callback(_flush, stream)
    return _duplicate(original)


def _flush(stream: TextIO) -> None:
    with suppress(OSError, ValueError):
        stream.flush()


def _duplicate(fd: int) -> int:
    """Return a duplicate that children do not inherit, and that is none of the three standard numbers."""
    return os.dup(fd) if sys.platform == "win32" else fcntl(fd, F_DUPFD_CLOEXEC, 3)


def _is_open(fd: int, stream: TextIO | None) -> bool:
    # Python saw it closed at its start: the number may belong to something else now.
    if stream is None:
        return False
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _stderr_or_null() -> int:
    return _duplicate(2) if _is_open(2, sys.__stderr__) else os.open(os.devnull, os.O_WRONLY)
