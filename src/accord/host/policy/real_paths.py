"""Real paths: where a path leads once its symbolic links are followed. The only module of the policy with I/O."""

from __future__ import annotations

import errno
import os
import sys
from typing import Protocol

_MAX_LINKS = 40
"""As in Linux: longer chains of symbolic links are loops."""
_MAX_LOOKUPS = 4_000
"""Limit of the questions to the file system in one decision."""
_NO_LINK = (errno.EINVAL, errno.ENOENT, errno.ENOTDIR)


class PathSystem(Protocol):
    """The file system on which the servers of a host work."""

    windows: bool
    """Whether paths have the form of Windows."""
    ignores_case: bool
    """Whether names that differ only in case, or in the composition of characters, are the same file."""
    home: str
    """The folder that `~` stands for."""

    def real_path(self, path: str) -> str:
        """Return an absolute path without `..` and symbolic links; parts that do not exist stay. Raises `OSError`."""
        ...

    def identity(self, path: str) -> object | None:
        """Return a value that is equal for two paths of the same file, or None if there is no such file."""
        ...


class LocalPaths:
    """The file system of this machine. One object serves one decision: it remembers what it has read."""

    windows: bool = sys.platform == "win32"
    ignores_case: bool = sys.platform in ("win32", "darwin")

    def __init__(self) -> None:
        self.home: str = os.path.expanduser("~")
        self._links: dict[str, str | None] = {}
        self._identities: dict[str, object | None] = {}

    def real_path(self, path: str) -> str:
        """See `PathSystem.real_path`."""
        if self.windows:
            return os.path.realpath(path).removeprefix("\\\\?\\")
        real, rest, links = "", path.split("/")[::-1], 0
        while rest:
            name = rest.pop()
            if name == "..":
                real = real.rpartition("/")[0]
            if name in ("", ".", ".."):
                continue
            target = self._link(f"{real}/{name}")
            if target is None:
                real = f"{real}/{name}"
                continue
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, "too many symbolic links")
            real = "" if target.startswith("/") else real
            rest.extend(target.split("/")[::-1])
        return real or "/"

    def identity(self, path: str) -> object | None:
        """See `PathSystem.identity`."""
        if path not in self._identities:
            self._count()
            try:
                found = os.stat(path)
            except (OSError, ValueError):
                self._identities[path] = None
            else:
                self._identities[path] = (found.st_dev, found.st_ino)
        return self._identities[path]

    def _link(self, path: str) -> str | None:
        """Return the target of a symbolic link, or None for anything else. Raises `OSError` if it cannot be read."""
        if path not in self._links:
            self._count()
            self._links[path] = _read_link(path)
        return self._links[path]

    def _count(self) -> None:
        if len(self._links) + len(self._identities) >= _MAX_LOOKUPS:
            raise OSError(errno.E2BIG, "too many paths in one call")


def _read_link(path: str) -> str | None:
    try:
        target = os.readlink(path)
    except OSError as exc:
        if exc.errno in _NO_LINK:
            return None
        raise
    if path.startswith("/proc/"):  # another place for each process
        raise OSError(errno.EINVAL, "a link of /proc")
    return target
