"""Non-blocking file descriptors, without making them non-blocking for other processes.

O_NONBLOCK belongs to the open file description, which is shared by duplicates, by the shell and by the other programs
on a terminal. So a pipe is reopened through /proc/self/fd, and a socket uses a flag per call (MSG_DONTWAIT). Without
/proc, a pipe's flag is set, and restored at the end. Everything else (files, /dev/null, terminals, all of Windows) may
block, and gets a thread.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

READ_SIZE = 64 << 10
"""The capacity of a pipe. A larger buffer comes from mmap and is returned to it, which costs more than the read
itself."""

Buffer = bytes | memoryview


class ReadableDescriptor(NamedTuple):
    """A descriptor to read: `read()` returns b"" at the end, and raises BlockingIOError if there is no data yet."""

    fd: int
    read: Callable[[], bytes]
    close: Callable[[], None]


class WritableDescriptor(NamedTuple):
    """A descriptor to write: `write(buffers)` returns the number of written bytes."""

    fd: int
    write: Callable[[Sequence[Buffer]], int]
    close: Callable[[], None]


def blocks(fd: int) -> bool:
    """Return whether a descriptor can only be read or written by blocking."""
    mode = os.fstat(fd).st_mode
    return sys.platform == "win32" or not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


def open_readable(fd: int) -> ReadableDescriptor:
    """Take ownership of a pipe or socket for non-blocking reads."""
    if stat.S_ISSOCK(os.fstat(fd).st_mode):
        sock = socket.socket(fileno=fd)
        return ReadableDescriptor(fd, partial(sock.recv, READ_SIZE, socket.MSG_DONTWAIT), sock.close)
    fd, close = _reopen_pipe(fd, os.O_RDONLY)
    return ReadableDescriptor(fd, partial(os.read, fd, READ_SIZE), close)


def open_writable(fd: int) -> WritableDescriptor:
    """Take ownership of a pipe or socket for non-blocking writes."""
    if stat.S_ISSOCK(os.fstat(fd).st_mode):
        sock = socket.socket(fileno=fd)

        def send(buffers: Sequence[Buffer]) -> int:
            return sock.sendmsg(buffers, (), socket.MSG_DONTWAIT)

        def close_sock() -> None:
            _shut_for_writing(sock)
            sock.close()

        return WritableDescriptor(fd, send, close_sock)
    fd, close = _reopen_pipe(fd, os.O_WRONLY)
    return WritableDescriptor(fd, partial(os.writev, fd), close)


def _shut_for_writing(sock: socket.socket) -> None:
    # A socket may have a duplicate (stdin and stdout are one): without this the peer would not see the end.
    try:
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        return  # no longer connected


def _reopen_pipe(fd: int, mode: int) -> tuple[int, Callable[[], None]]:
    try:
        # A pipe whose other end is closed cannot be reopened (ENXIO); the first write reports it.
        reopened = os.open(f"/proc/self/fd/{fd}", mode | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return fd, _set_nonblocking(fd)
    os.close(fd)
    return reopened, partial(os.close, reopened)


def _set_nonblocking(fd: int) -> Callable[[], None]:
    was_blocking = os.get_blocking(fd)
    os.set_blocking(fd, False)

    def restore() -> None:
        os.set_blocking(fd, was_blocking)
        os.close(fd)

    return restore
