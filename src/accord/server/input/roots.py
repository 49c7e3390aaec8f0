"""The roots of a client, and whether a path lies in one of them (client, Roots).

"Servers SHOULD respect root boundaries during operations, validate all paths against provided roots." A path is
resolved first: links, `..` and `//`, on both sides; for a path that does not exist, its nearest existing parent counts.
A path that cannot be resolved (a loop of links, control characters, a folder on another host) is outside.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote_to_bytes

from accord.messages.input_required import Root

_LONGEST = 4096
"""Maximum characters of a path, as in Linux (PATH_MAX): the time to resolve a path grows with the square of its
length.
"""

_MOST_NAMES = 10_000
"""Maximum names in the paths of all roots that are resolved: each takes a system call."""

_FILE = re.compile(r"file:(?://(?:localhost)?|(?!//))(/[^?#]*)", re.IGNORECASE)
"""A `file:` URI of this host (RFC 8089). A raw `?` or `#` would end the path: its meaning is unclear."""

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://|file:", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DRIVE = re.compile(r"/([A-Za-z])[:|](?=/|$)")


class RootList(tuple[Root, ...]):
    """The roots of a client, as `await ctx.list_roots()` returns them. An empty list contains nothing."""

    __slots__ = ()

    @property
    def paths(self) -> list[Path]:
        """The folders, as the client named them, without roots that are not a `file:` URI of this host."""
        return [Path(path) for path in self._local()]

    def contains(self, path: str | os.PathLike[str]) -> bool:
        """Return whether a path, or a `file:` URI, is or lies in one of these folders. Never raises for a string.

        Roots count in their order, up to 10,000 names in all of their paths together; later ones contain nothing.

        A relative path counts from the working directory. This is a check and not a lock: a process that can write
        there can replace a folder by a link before you open it, so open sensitive files with care (`O_NOFOLLOW`,
        `dir_fd`).
        """
        text = os.fspath(path)
        if isinstance(path, str) and _SCHEME.match(text):
            text = local_path(text) or ""
        real = _real(text)
        if real is None:
            return False
        return any(_is_inside(real, root) for root in map(_real, self._resolvable()) if root is not None)

    def _resolvable(self) -> Iterator[str]:
        """Yield the paths of the first roots, within `_MOST_NAMES`."""
        names = 0
        for path in self._local():
            names += path.count(os.sep)
            if names > _MOST_NAMES:
                return
            yield path

    def _local(self) -> list[str]:
        return [path for root in self if (path := local_path(root.uri)) is not None]


def local_path(uri: str, *, windows: bool = os.name == "nt") -> str | None:
    """Return the absolute path of a `file:` URI on this host, decoded once; None for any other text."""
    found = _FILE.fullmatch(uri) if len(uri) <= 4 * _LONGEST else None  # `%20` takes three for one
    if found is None:
        return None
    try:
        path = os.fsdecode(unquote_to_bytes(found[1]))
    except UnicodeError:  # a lone surrogate
        return None
    if _CONTROL.search(path):
        return None
    return _windows_path(path) if windows else path


def _windows_path(path: str) -> str | None:
    """Return a Windows path: `/C:/x` is `C:\\x`, and `//server/share/x` (four slashes in the URI) a share; None without
    a drive.
    """
    if _DRIVE.match(path):
        return _DRIVE.sub(r"\1:", path, count=1).replace("/", "\\").ljust(3, "\\")
    return path.replace("/", "\\") if path.startswith("//") else None


def _real(path: str) -> str | None:
    """Return the resolved path; None if it cannot be resolved."""
    if not path or len(path) > _LONGEST or _CONTROL.search(path):
        return None
    try:
        real = existing = os.path.realpath(path)
        while not os.path.lexists(existing):
            parent = os.path.dirname(existing)
            if parent == existing:
                return None
            existing = parent
        # `realpath` stops at a loop of links and leaves the rest as it is
        return real if os.path.realpath(existing, strict=True) == existing else None
    except (OSError, ValueError):  # the working directory is gone, a loop, a lone surrogate
        return None


def _is_inside(path: str, folder: str) -> bool:
    path, folder = os.path.normcase(path), os.path.normcase(folder)
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
