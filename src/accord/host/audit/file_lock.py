"""A lock on an open file, between processes and between threads of one process."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_SECONDS = 10.0
_POLL_SECONDS = 0.002
_PLACE = 1 << 40
"""The byte that is locked on Windows, behind all content: others may read the file."""


@contextmanager
def locked(fd: int) -> Iterator[None]:
    """Hold the lock of an open file. Raises `TimeoutError` if another process holds it for ten seconds."""
    deadline = time.monotonic() + _SECONDS
    while not _lock(fd):
        if time.monotonic() > deadline:
            raise TimeoutError(f"another process has held its lock for {_SECONDS:g} s")
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        _unlock(fd)


if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> bool:
        os.lseek(fd, _PLACE, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(fd: int) -> None:
        os.lseek(fd, _PLACE, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)


def sync(fd: int) -> None:
    """Wait until the content of an open file is on the disk."""
    if sys.platform == "darwin":
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # there, fsync leaves the data in the cache of the drive
    elif sys.platform == "win32":
        os.fsync(fd)
    else:
        os.fdatasync(fd)
