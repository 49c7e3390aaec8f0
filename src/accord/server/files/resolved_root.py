"""The same as `root` for systems that cannot open a name in an open folder: Windows.

A path is resolved, compared with the root, opened, and what is open compared with what was resolved. Between these
steps a folder can become a link: who may write to the tree while it is served can win that race. Serve there only what
nobody else writes to. Short names (`PROGRA~1`), streams (`a.txt:b`), devices (`NUL`) and other spellings of a name are
refused, since a name has to be one that its folder shows.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from accord.server.files.names import Parts
from accord.server.files.root import DirectoryEntry, check_regular, entries, read_regular


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
