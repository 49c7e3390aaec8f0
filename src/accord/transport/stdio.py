"""The server's side of stdio: the real stdin and stdout, kept for the protocol alone.

While it is open, descriptor 0 is /dev/null and descriptor 1 is stderr, for this process and every
child it starts; `sys.stdout` says where a print stands (see `guard`). Closing puts all of it back.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import ExitStack, suppress
from typing import TextIO

from accord.errors import ConnectError, ConnectionLost
from accord.limits import DEFAULT_LIMITS, Limits
from accord.transport.guard import guard_streams
from accord.transport.hangup import watch_hangup
from accord.transport.pipes import LineTransport

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
            raise ConnectError("stdout is closed: there is nobody to answer to")
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
