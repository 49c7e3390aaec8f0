"""File descriptors that do not block, without making them non-blocking for anyone else.

O_NONBLOCK belongs to the open file description, which a dup shares, as do the shell and the other
programs on a terminal. So a pipe is opened anew through /proc/self/fd, and a socket is asked per
call (MSG_DONTWAIT). Where /proc is missing, a pipe's flag is set, and put back at the end.
Everything else (files, /dev/null, terminals, all of Windows) may block, and gets a thread.
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
"""What a pipe holds. A larger buffer comes from mmap and goes back to it, which costs more than the read itself."""

Buffer = bytes | memoryview


class ReadableDescriptor(NamedTuple):
    """Something to read from: `read()` gives b"" at the end, BlockingIOError when nothing is there yet."""

    fd: int
    read: Callable[[], bytes]
    close: Callable[[], None]


class WritableDescriptor(NamedTuple):
    """Something to write to: `write(buffers)` tells how many bytes it took."""

    fd: int
    write: Callable[[Sequence[Buffer]], int]
    close: Callable[[], None]


def blocks(fd: int) -> bool:
    """True for what can only be read or written by blocking."""
    mode = os.fstat(fd).st_mode
    return sys.platform == "win32" or not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


def open_readable(fd: int) -> ReadableDescriptor:
    """Take over a pipe or socket for reading without blocking."""
    if stat.S_ISSOCK(os.fstat(fd).st_mode):
        sock = socket.socket(fileno=fd)
        return ReadableDescriptor(fd, partial(sock.recv, READ_SIZE, socket.MSG_DONTWAIT), sock.close)
    fd, close = _own_pipe(fd, os.O_RDONLY)
    return ReadableDescriptor(fd, partial(os.read, fd, READ_SIZE), close)


def open_writable(fd: int) -> WritableDescriptor:
    """Take over a pipe or socket for writing without blocking."""
    if stat.S_ISSOCK(os.fstat(fd).st_mode):
        sock = socket.socket(fileno=fd)

        def send(buffers: Sequence[Buffer]) -> int:
            return sock.sendmsg(buffers, (), socket.MSG_DONTWAIT)

        def close_sock() -> None:
            _shut_for_writing(sock)
            sock.close()

        return WritableDescriptor(fd, send, close_sock)
    fd, close = _own_pipe(fd, os.O_WRONLY)
    return WritableDescriptor(fd, partial(os.writev, fd), close)


def _shut_for_writing(sock: socket.socket) -> None:
    # A socket may have been duplicated (stdin and stdout are one): the peer sees the end only so.
    try:
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        return  # not connected any more


def _own_pipe(fd: int, mode: int) -> tuple[int, Callable[[], None]]:
    try:
        # A pipe whose other end is gone cannot be opened anew (ENXIO); the first write will tell.
        own = os.open(f"/proc/self/fd/{fd}", mode | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return fd, _borrow_nonblocking(fd)
    os.close(fd)
    return own, partial(os.close, own)


def _borrow_nonblocking(fd: int) -> Callable[[], None]:
    was_blocking = os.get_blocking(fd)
    os.set_blocking(fd, False)

    def give_back() -> None:
        os.set_blocking(fd, was_blocking)
        os.close(fd)

    return give_back
