"""The server's side of stdio: the real stdin and stdout, kept for the protocol alone.

While it is open, descriptor 0 is /dev/null and descriptor 1 is stderr, for this process and every
child it starts; `sys.stdout` says where a print stands (see `guard`). Closing puts all of it back.

Standard streams while stdout belongs to the protocol: prints go to stderr, `input()` ends at once.

This is the Python half, which can say where a print stands; the descriptors themselves are moved by
`stdio`, so that what bypasses `sys.stdout` (C code, child processes) lands on stderr as well.
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
    """Stands in for `sys.stdout`: passes text to stderr, and reports each place that prints once."""

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
        # `logging`, `pprint` and their like only print what someone asked them to.
        while frame.f_back is not None and _is_stdlib(frame.f_code.co_filename):
            frame = frame.f_back
        site = (frame.f_code.co_filename, frame.f_lineno)
        if site in self._seen or len(self._seen) >= _MOST_SITES:
            return None
        self._seen.add(site)
        return f"{os.path.basename(site[0])}:{site[1]}"


def guard_streams() -> Callable[[], None]:
    """Replace `sys.stdout` and `sys.stdin`; call what comes back to have them as they were.

    Descriptor 0 must be at its end already (/dev/null): what `sys.stdin` had read ahead is not given out.
    """
    before = sys.stdin, sys.stdout
    empty = io.TextIOWrapper(io.FileIO(0, closefd=False)) if sys.stdin is not None else None
    guarded = cast(TextIO, GuardedStdout())
    sys.stdin, sys.stdout = cast(TextIO, empty), guarded

    def restore() -> None:
        if sys.stdout is guarded:  # else someone has redirected it since, and puts back what they found
            sys.stdout = before[1]
        if sys.stdin is empty:
            sys.stdin = before[0]

    return restore


def _is_stdlib(filename: str) -> bool:
    return filename.startswith(_STDLIB) and "site-packages" not in filename


if sys.platform != "win32":
    from fcntl import F_DUPFD_CLOEXEC, fcntl


class StdioTransport(LineTransport):
    """Speaks over this process's stdin and stdout.

    With `exit_when_stuck`, the process ends when the client is gone and the event loop has not
    reacted for `Limits.grace_seconds`.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, exit_when_stuck: bool = False) -> None:
        super().__init__("stdio", limits)
        self._exit_when_stuck = exit_when_stuck
        self._restore = ExitStack()

    async def open(self) -> None:
        """Take over stdin and stdout. A closed stdin is an input at its end; a closed stdout raises."""
        if not _is_open(1, sys.__stdout__):
            raise ConnectError("stdout is closed: no client can receive responses")
        with ExitStack() as undo:
            read_fd = _take_over(undo, 0, sys.__stdin__, os.open(os.devnull, os.O_RDONLY))
            write_fd = _take_over(undo, 1, sys.__stdout__, _stderr_or_null())
            undo.callback(guard_streams())
            if self._exit_when_stuck:
                loop, grace = asyncio.get_running_loop(), self._limits.grace_seconds
                undo.callback(watch_hangup(read_fd, loop, grace_seconds=grace, on_hangup=self._give_up_when_stalled))
            self._start(read_fd, write_fd)
            self._restore = undo.pop_all()

    def _give_up_when_stalled(self, before: int = -1) -> None:
        """The client has closed our input: when it takes no byte of what we owe it either, it is gone."""
        writer = self._writer
        if writer is None or (self._inbox.ended and not writer.pending):
            return
        if writer.pending and writer.pending == before:
            writer.close()
            return
        asyncio.get_running_loop().call_later(
            self._limits.grace_seconds / 2, self._give_up_when_stalled, writer.pending
        )

    async def close(self) -> None:
        """Put everything back, after what was sent has gone out."""
        try:
            await super().close()
        finally:
            self._restore.close()

    def lost(self) -> ConnectionLost:
        return ConnectionLost("the client has closed the connection")


def _take_over(undo: ExitStack, fd: int, stream: TextIO | None, stand_in: int) -> int:
    """Put `stand_in` in the place of `fd` until `undo`; what was there comes back as a private descriptor."""
    if not _is_open(fd, stream):
        return stand_in
    kept = _duplicate(fd)
    undo.callback(os.close, kept)
    undo.callback(os.dup2, kept, fd)
    os.dup2(stand_in, fd)
    os.close(stand_in)
    if stream is not None and stream.writable():
        # What was printed before, and what is printed from now on, has no business on the wire.
        _flush(stream)
        undo.callback(_flush, stream)
    return _duplicate(kept)


def _flush(stream: TextIO) -> None:
    with suppress(OSError, ValueError):
        stream.flush()


def _duplicate(fd: int) -> int:
    """A duplicate no child inherits, and never one of the three standard numbers."""
    return os.dup(fd) if sys.platform == "win32" else fcntl(fd, F_DUPFD_CLOEXEC, 3)


def _is_open(fd: int, stream: TextIO | None) -> bool:
    # Python found it closed at its start: the number may belong to something else by now.
    if stream is None:
        return False
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _stderr_or_null() -> int:
    return _duplicate(2) if _is_open(2, sys.__stderr__) else os.open(os.devnull, os.O_WRONLY)
