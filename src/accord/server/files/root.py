"""Read access to a folder and nothing outside it, in two implementations.

`ServedRoot` opens each name of a path in the folder before it (`openat`), without following links, and checks the open
file: `fstat` tells whether it is a regular file, and its size. A check of the path before its use would leave a moment
in which a folder can become a link. A program that changes the tree can change what is found in it, but not the place
that is searched. Two cases cannot be detected: a hard link is the file itself, and a file system mounted inside the
root is part of it.

`ResolvedRoot` is for systems without `openat`: Windows. It resolves a path, compares it with the root, opens it, and
compares the open file with the resolved one. Between these steps a folder can become a link: a program that may write
to the tree while it is served can win that race. There, serve only folders that no untrusted program writes to. Short
names (`PROGRA~1`), streams (`a.txt:b`), devices (`NUL`) and other spellings of a name are refused, since a name has to
be one that its folder lists.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from accord.server.files.names import Parts

_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_FILE |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

_BLOCK = 1 << 20

MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EMLINK, errno.ENAMETOOLONG})
"""The errors of the system for a path that must not be read: no such name, or a link."""


class DirectoryEntry(NamedTuple):
    """A file or folder, as listed by its parent folder."""

    name: str
    is_folder: bool
    size: int
    """In bytes."""
    changed: int
    """In nanoseconds since 1970."""


class FileTooLarge(Exception):
    """Raised for a file with more bytes than the limit."""


class ServedRoot:
    """A folder and its contents. Paths are tuples of names, validated by `names.split`; errors are `OSError`."""

    def __init__(self, path: str | os.PathLike[str], *, exact: bool = sys.platform in ("darwin", "cygwin")) -> None:
        self.path: str = os.path.realpath(path)
        """The real path of the folder. The author's path to it may contain links; the folder itself must not become a
        link.
        """
        self._exact = exact
        """Whether a name must be spelled as in its folder, on systems that accept `.GIT` for `.git`."""

    def read(self, parts: Parts, most: int) -> bytes:
        """Return the content of a regular file. Raises `FileTooLarge` for more than `most` bytes, even if it grows
        meanwhile.
        """
        with self._folder(parts[:-1]) as parent:
            self._check_spelling(parts[-1], parent)
            # before opening, which affects a device
            check_regular(os.stat(parts[-1], dir_fd=parent, follow_symlinks=False))
            file = os.open(parts[-1], _FILE | os.O_RDONLY, dir_fd=parent)
        try:
            return read_regular(file, most)
        finally:
            os.close(file)

    def entries(self, parts: Parts) -> Iterator[DirectoryEntry]:
        """Yield the files and folders in a folder, in no order; links, devices and other entries are left out."""
        with self._folder(parts) as folder, os.scandir(folder) as scan:
            yield from entries(scan)

    @contextmanager
    def _folder(self, parts: Parts) -> Iterator[int]:
        folder = os.open(self.path, _FOLDER | os.O_RDONLY)
        try:
            for name in parts:
                self._check_spelling(name, folder)
                inner = os.open(name, _FOLDER | os.O_RDONLY, dir_fd=folder)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)

    def _check_spelling(self, name: str, folder: int) -> None:
        if self._exact and name not in os.listdir(folder):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def entries(scan: Iterator[os.DirEntry[str]]) -> Iterator[DirectoryEntry]:
    """Yield the files and folders of `os.scandir`; an entry that was removed meanwhile is left out."""
    for entry in scan:
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
            yield DirectoryEntry(entry.name, stat.S_ISDIR(status.st_mode), status.st_size, status.st_mtime_ns)


def check_regular(status: os.stat_result) -> None:
    """Raise `OSError` for a folder, and for a link, pipe, socket or device."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(errno.ENOENT, "no regular file")


def read_file(path: str | os.PathLike[str], most: int) -> bytes:
    """Return the content of a regular file at a path of the author, links followed; see `read_regular`. Never waits for
    a pipe.
    """
    file = os.open(path, (_FILE | os.O_RDONLY) & ~getattr(os, "O_NOFOLLOW", 0))
    try:
        return read_regular(file, most)
    except OSError as exc:
        exc.filename = os.fspath(path)
        raise
    finally:
        os.close(file)


def read_regular(file: int, most: int) -> bytes:
    """Return the content of an open file. Raises `OSError` for an irregular file, `FileTooLarge` beyond
    `most` bytes.
    """
    status = os.fstat(file)
    check_regular(status)
    if status.st_size > most:
        raise FileTooLarge
    blocks, left = [], most + 1
    while left > 0 and (block := os.read(file, min(left, _BLOCK))):
        blocks.append(block)
        left -= len(block)
    if left <= 0:
        raise FileTooLarge
    return b"".join(blocks)


class ResolvedRoot:
    """A folder like `ServedRoot`, for systems without `openat`. Links are not followed either."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: str = os.path.realpath(path)

    def read(self, parts: Parts, most: int) -> bytes:
        """Return the content of a regular file. Raises `OSError`, and `FileTooLarge` beyond `most` bytes."""
        path = self._resolve(parts)
        status = os.lstat(path)
        check_regular(status)
        file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            if not os.path.samestat(status, os.fstat(file)):
                raise _not_found(path)
            return read_regular(file, most)
        finally:
            os.close(file)

    def entries(self, parts: Parts) -> Iterator[DirectoryEntry]:
        """Yield the files and folders in a folder. Raises `OSError`."""
        with os.scandir(self._resolve(parts)) as scan:
            yield from entries(scan)

    def _resolve(self, parts: Parts) -> str:
        """Return the path if its names are spelled as in their folders, and none of them is a link."""
        path = self.path
        for name in parts:
            if name not in os.listdir(path):
                raise _not_found(name)
            path = os.path.join(path, name)
        if os.path.realpath(path) != path:
            raise _not_found(path)
        return path


def _not_found(name: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
