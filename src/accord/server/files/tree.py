"""The served files of a folder: listed, read and completed by path.

These functions block, so they are called in threads.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from accord.errors import DeclarationError, InternalError, ResourceNotFound
from accord.server.declare.media import MOST, File
from accord.server.files.listing import TreeListing, listing, served_entries
from accord.server.files.media_types import kind_of_name
from accord.server.files.names import Parts, PathFilter, split
from accord.server.files.root import MISSING, DirectoryEntry, FileTooLarge, ResolvedRoot, ServedRoot

log: logging.Logger = logging.getLogger("accord.server")

FOLDER = "inode/directory"
""" "Servers MAY identify `file://` resources with an XDG MIME type, like `inode/directory`" (server, Resources)."""

_FRESH = 0.5
"""The least seconds that a listing is cached: clients cannot make the server walk the tree more often."""
_SHARE = 10
"""The factor of the last walk's duration that a listing is cached, if that is longer."""

_FOLDERS = 16
"""The most folders that are cached, so that a completion does not scan a large folder for every key."""


class _Folder(NamedTuple):
    """The served entries of one folder, when they were read, and the duration, in seconds."""

    entries: list[DirectoryEntry]
    read_at: float
    seconds: float


class Tree:
    """The files in a folder that a filter selects.

    `max_bytes` is the most bytes read of a file, `most` the most files listed, and `kinds` has media types by suffix.
    Raises `DeclarationError` if the folder does not exist, a bound is invalid, or a suffix has no dot.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        path_filter: PathFilter,
        *,
        max_bytes: int,
        most: int,
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        if not os.path.isdir(path):
            raise DeclarationError(f"the folder {os.fspath(path)!r} does not exist")
        if not (0 < max_bytes <= MOST and most > 0):
            raise DeclarationError(f"max_bytes is from 1 to {MOST:,}, which messages can hold, and most at least 1")
        if invalid := [suffix for suffix in kinds or () if not suffix.startswith(".")]:
            raise DeclarationError(
                f"a suffix must begin with a dot: mime_types={{'.{invalid[0]}': ...}}, not {invalid[0]!r}"
            )
        self.root: ServedRoot | ResolvedRoot = ServedRoot(path) if os.open in os.supports_dir_fd else ResolvedRoot(path)
        self._path_filter = path_filter
        self._max_bytes = max_bytes
        self._most = most
        self._kinds = kinds
        self._lock = threading.Lock()
        self._last: TreeListing | None = None
        self._warned_truncated = False
        self._folders_lock = threading.Lock()
        self._folders: dict[Parts, _Folder] = {}

    def kind(self, path: str) -> str | None:
        """Return the media type of a file by its name, or None if it is unknown."""
        return kind_of_name(path.rpartition("/")[2], self._kinds)

    def has(self, path: str) -> bool:
        """Return whether a path may be accessed; it need not exist."""
        parts = split(path)
        return parts is not None and self._path_filter.allows(parts, folder=True)

    def listing(self, *, anew: bool = False) -> TreeListing:
        """Return the files and folders, from the cache unless that expired or `anew`."""
        with self._lock:
            last = self._last
            if last is None or anew or time.monotonic() - last.finished_at > max(_FRESH, _SHARE * last.seconds):
                last = self._last = listing(self.root, self._path_filter, self._most)
                self._warn_truncated(last)
            return last

    def _warn_truncated(self, tree_listing: TreeListing) -> None:
        if tree_listing.is_truncated and not self._warned_truncated:
            log.warning(
                "accord: %s has more than %d files or folders: so many are listed, the others are read by their URIs; "
                "see `most`, `include` and `exclude` of add_directory",
                self.root.path,
                self._most,
            )
        self._warned_truncated = tree_listing.is_truncated

    def inodes(self, folders: Iterable[str]) -> dict[str, int]:
        """Return the inodes of folders by path, without those that were removed."""
        inodes: dict[str, int] = {}
        for folder in folders:
            path = os.path.join(self.root.path, folder)
            with suppress(OSError):
                inodes[path] = os.lstat(path).st_ino
        return inodes

    def read(self, path: str, is_visible: Callable[[str], bool] = lambda path: True) -> File:
        """Return a file; for a folder its visible names, one per line, those of folders with a trailing `/`.

        Raises `ResourceNotFound`, and `InternalError` for a file that is too large or cannot be read.
        """
        parts = split(path)
        if parts is None:
            raise ResourceNotFound(uri=path)
        try:
            return self._folder(parts, is_visible) if path.endswith("/") or not parts else self._file(parts, is_visible)
        except FileTooLarge:
            raise InternalError(f"{path!r} has more than the {self._max_bytes:,} bytes that are read") from None
        except OSError as exc:
            if exc.errno in MISSING:
                raise ResourceNotFound(uri=path) from exc
            raise InternalError(f"{path!r} cannot be read: {exc.strerror}") from exc

    def _file(self, parts: Parts, is_visible: Callable[[str], bool]) -> File:
        if not self._path_filter.allows(parts):
            return self._folder(parts, is_visible)
        try:
            data = self.root.read(parts, self._max_bytes)
        except IsADirectoryError:
            return self._folder(parts, is_visible)
        return File(data=data, format=self.kind(parts[-1]))

    def _folder(self, parts: Parts, is_visible: Callable[[str], bool]) -> File:
        if not self._path_filter.allows(parts, folder=True):
            raise ResourceNotFound(uri="/".join(parts))
        names = [
            _display_name(entry)
            for entry in self._served_entries(parts)
            if is_visible("/".join((*parts, _display_name(entry))))
        ]
        return File(data="\n".join(names[: self._most]).encode(), format=FOLDER)

    def _served_entries(self, parts: Parts) -> list[DirectoryEntry]:
        """Return the served entries of a folder, from the cache unless that expired. Raises `OSError`."""
        with self._folders_lock:
            cached = self._folders.pop(parts, None)
            if cached is None or time.monotonic() - cached.read_at > _SHARE * cached.seconds:
                start = time.monotonic()
                entries = served_entries(self.root, self._path_filter, parts)
                now = time.monotonic()
                cached = _Folder(entries, now, now - start)
            self._folders[parts] = cached
            if len(self._folders) > _FOLDERS:
                del self._folders[next(iter(self._folders))]
            return cached.entries

    def complete(self, typed: str) -> list[str]:
        """Return the paths that begin with the typed text, in one folder; none if the folder does not exist."""
        parent, slash, prefix = typed.rpartition("/")
        parts = split(parent + slash)
        if parts is None or not self._path_filter.allows(parts, folder=True):
            return []
        try:
            entries = self._served_entries(parts)
        except OSError:
            return []
        return [parent + slash + _display_name(entry) for entry in entries if entry.name.startswith(prefix)]


def _display_name(entry: DirectoryEntry) -> str:
    return entry.name + "/" * entry.is_folder
