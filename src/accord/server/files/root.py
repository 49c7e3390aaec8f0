"""A folder that nothing leads out of: each name on the way is opened in the folder before it, and none is a link.

A check of a path, and then its use, are two moments between which a folder can become a link to anywhere. So there is
no check: the kernel is asked for one name after the other (`openat`), is told to follow no link, and what is open is
what is judged: `fstat` says whether it is a regular file, and how large it is. Whoever changes the tree meanwhile
changes what is found in it, never where it is looked for.

What this cannot tell apart: a hard link is the file itself, and a file system that is mounted inside is inside.

The same as `root` for systems that cannot open a name in an open folder: Windows.

A path is resolved, compared with the root, opened, and what is open compared with what was resolved. Between these
steps a folder can become a link: who may write to the tree while it is served can win that race. Serve there only what
nobody else writes to. Short names (`PROGRA~1`), streams (`a.txt:b`), devices (`NUL`) and other spellings of a name are
refused, since a name has to be one that its folder shows.
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
"""What the system says where there is nothing that may be read: no such name, or a link."""


class DirectoryEntry(NamedTuple):
    """A file or a folder, as its folder shows it."""

    name: str
    is_folder: bool
    size: int
    """In bytes."""
    changed: int
    """In nanoseconds since 1970."""


class FileTooLarge(Exception):
    """A file has more bytes than are read."""


class ServedRoot:
    """A folder, and what stands below it. Paths are names from it, checked by `names.split`; errors are `OSError`."""

    def __init__(self, path: str | os.PathLike[str], *, exact: bool = sys.platform in ("darwin", "cygwin")) -> None:
        self.path: str = os.path.realpath(path)
        """Where it is. The way to it is the author's, and may have links; the folder itself may not become one."""
        self._exact = exact
        """Whether a name must be spelled as its folder spells it, where the system takes `.GIT` for `.git`."""

    def read(self, parts: Parts, most: int) -> bytes:
        """A regular file. Raises `FileTooLarge` where it has more than `most` bytes, however it grows meanwhile."""
        with self._folder(parts[:-1]) as above:
            self._check_spelling(parts[-1], above)
            check_regular(os.stat(parts[-1], dir_fd=above, follow_symlinks=False))  # a device notices being opened
            file = os.open(parts[-1], _FILE | os.O_RDONLY, dir_fd=above)
        try:
            return read_regular(file, most)
        finally:
            os.close(file)

    def entries(self, parts: Parts) -> Iterator[DirectoryEntry]:
        """The files and folders in a folder, in no order; links, devices and whatever else there is are left out."""
        with self._folder(parts) as folder, os.scandir(folder) as found:
            yield from entries(found)

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


def entries(found: Iterator[os.DirEntry[str]]) -> Iterator[DirectoryEntry]:
    """What `os.scandir` found, as far as it is files and folders; what is gone meanwhile is left out."""
    for entry in found:
        try:
            about = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        if stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode):
            yield DirectoryEntry(entry.name, stat.S_ISDIR(about.st_mode), about.st_size, about.st_mtime_ns)


def check_regular(about: os.stat_result) -> None:
    """Raise `OSError` for a folder, and for what is no file: a link, a pipe, a socket, a device."""
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(about.st_mode):
        raise FileNotFoundError(errno.ENOENT, "no regular file")


def read_file(path: str | os.PathLike[str], most: int) -> bytes:
    """The regular file at a path that the author chose, links and all. As `read_regular`; it never waits for a pipe."""
    file = os.open(path, (_FILE | os.O_RDONLY) & ~getattr(os, "O_NOFOLLOW", 0))
    try:
        return read_regular(file, most)
    except OSError as exc:
        exc.filename = os.fspath(path)
        raise
    finally:
        os.close(file)


def read_regular(file: int, most: int) -> bytes:
    """An open file to its end. Raises `OSError` for what is no regular file, `FileTooLarge` beyond `most` bytes."""
    about = os.fstat(file)
    check_regular(about)
    if about.st_size > most:
        raise FileTooLarge
    blocks, left = [], most + 1
    while left > 0 and (block := os.read(file, min(left, _BLOCK))):
        blocks.append(block)
        left -= len(block)
    if left <= 0:
        raise FileTooLarge
    return b"".join(blocks)


class ResolvedRoot:
    """As `ServedRoot`. Links are not followed here either."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: str = os.path.realpath(path)

    def read(self, parts: Parts, most: int) -> bytes:
        """A regular file. Raises `OSError`, and `FileTooLarge` beyond `most` bytes."""
        path = self._resolved(parts)
        before = os.lstat(path)
        check_regular(before)
        file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            if not os.path.samestat(before, os.fstat(file)):
                raise _missing(path)
            return read_regular(file, most)
        finally:
            os.close(file)

    def entries(self, parts: Parts) -> Iterator[DirectoryEntry]:
        """The files and folders in a folder. Raises `OSError`."""
        with os.scandir(self._resolved(parts)) as found:
            yield from entries(found)

    def _resolved(self, parts: Parts) -> str:
        """The path, if it is spelled as the folders on the way spell it, and leads through no link."""
        path = self.path
        for name in parts:
            if name not in os.listdir(path):
                raise _missing(name)
            path = os.path.join(path, name)
        if os.path.realpath(path) != path:
            raise _missing(path)
        return path


def _missing(name: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
