"""The files of a folder as they are served: listed, read and proposed by their paths.

The functions here block: they are called in threads.
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
"""Seconds that a listing is good for: nobody makes us walk the tree more often."""
_SHARE = 10
"""Or so many times what it took to walk the tree, if that is more."""

_FOLDERS = 16
"""Folders that are remembered for so long: a large one is not looked through for every key that somebody types."""


class _Folder(NamedTuple):
    """What is served of one folder, when that was known, and how long it took, in seconds."""

    entries: list[DirectoryEntry]
    read_at: float
    seconds: float


class Tree:
    """The files below a folder that were chosen.

    `max_bytes` is the most that is read of a file, `most` how many are listed, `kinds` media types by suffix. Raises
    `DeclarationError` where there is no such folder, for bounds that cannot be kept, and a suffix without its dot.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        choice: PathFilter,
        *,
        max_bytes: int,
        most: int,
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        if not os.path.isdir(path):
            raise DeclarationError(f"the folder {os.fspath(path)!r} does not exist")
        if not (0 < max_bytes <= MOST and most > 0):
            raise DeclarationError(f"max_bytes is from 1 to {MOST:,}, which messages can hold, and most at least 1")
        if wrong := [suffix for suffix in kinds or () if not suffix.startswith(".")]:
            raise DeclarationError(
                f"a suffix must begin with a dot: mime_types={{'.{wrong[0]}': ...}}, not {wrong[0]!r}"
            )
        self.root: ServedRoot | ResolvedRoot = ServedRoot(path) if os.open in os.supports_dir_fd else ResolvedRoot(path)
        self._choice = choice
        self._max_bytes = max_bytes
        self._most = most
        self._kinds = kinds
        self._lock = threading.Lock()
        self._last: TreeListing | None = None
        self._warned_truncated = False
        self._looking = threading.Lock()
        self._folders: dict[Parts, _Folder] = {}

    def kind(self, path: str) -> str | None:
        """The media type of a file by its name; None where that does not tell."""
        return kind_of_name(path.rpartition("/")[2], self._kinds)

    def has(self, path: str) -> bool:
        """Whether this is a path that may be asked for; there need not be anything."""
        parts = split(path)
        return parts is not None and self._choice.allows(parts, folder=True)

    def listing(self, *, anew: bool = False) -> TreeListing:
        """The files and folders: as they are, or were a moment ago unless `anew`."""
        with self._lock:
            last = self._last
            if last is None or anew or time.monotonic() - last.finished_at > max(_FRESH, _SHARE * last.seconds):
                last = self._last = listing(self.root, self._choice, self._most)
                self._warn_truncated(last)
            return last

    def _warn_truncated(self, found: TreeListing) -> None:
        if found.is_truncated and not self._warned_truncated:
            log.warning(
                "accord: %s has more than %d files or folders: so many are listed, the others are read by their URIs; "
                "see `most`, `include` and `exclude` of add_directory",
                self.root.path,
                self._most,
            )
        self._warned_truncated = found.is_truncated

    def inodes(self, folders: Iterable[str]) -> dict[str, int]:
        """Folders by where they are, without those that are gone."""
        found: dict[str, int] = {}
        for folder in folders:
            path = os.path.join(self.root.path, folder)
            with suppress(OSError):
                found[path] = os.lstat(path).st_ino
        return found

    def read(self, path: str, is_seen: Callable[[str], bool] = lambda path: True) -> File:
        """A file; of a folder the names in it, one a line, those of folders with a `/`; only those that are seen.

        Raises `ResourceNotFound`, and `InternalError` for a file that is too large or cannot be read.
        """
        parts = split(path)
        if parts is None:
            raise ResourceNotFound(uri=path)
        try:
            return self._folder(parts, is_seen) if path.endswith("/") or not parts else self._file(parts, is_seen)
        except FileTooLarge:
            raise InternalError(f"{path!r} has more than the {self._max_bytes:,} bytes that are read") from None
        except OSError as exc:
            if exc.errno in MISSING:
                raise ResourceNotFound(uri=path) from exc
            raise InternalError(f"{path!r} cannot be read: {exc.strerror}") from exc

    def _file(self, parts: Parts, is_seen: Callable[[str], bool]) -> File:
        if not self._choice.allows(parts):
            return self._folder(parts, is_seen)
        try:
            data = self.root.read(parts, self._max_bytes)
        except IsADirectoryError:
            return self._folder(parts, is_seen)
        return File(data=data, format=self.kind(parts[-1]))

    def _folder(self, parts: Parts, is_seen: Callable[[str], bool]) -> File:
        if not self._choice.allows(parts, folder=True):
            raise ResourceNotFound(uri="/".join(parts))
        names = [
            _display_name(entry) for entry in self._served(parts) if is_seen("/".join((*parts, _display_name(entry))))
        ]
        return File(data="\n".join(names[: self._most]).encode(), format=FOLDER)

    def _served(self, parts: Parts) -> list[DirectoryEntry]:
        """What is served of a folder, as it is, or was a moment ago. Raises `OSError`."""
        with self._looking:
            known = self._folders.pop(parts, None)
            if known is None or time.monotonic() - known.read_at > _SHARE * known.seconds:
                begun = time.monotonic()
                found = served_entries(self.root, self._choice, parts)
                now = time.monotonic()
                known = _Folder(found, now, now - begun)
            self._folders[parts] = known
            if len(self._folders) > _FOLDERS:
                del self._folders[next(iter(self._folders))]
            return known.entries

    def complete(self, typed: str) -> list[str]:
        """The paths that begin with what was typed, one folder further; none where there is no such folder."""
        above, slash, start = typed.rpartition("/")
        parts = split(above + slash)
        if parts is None or not self._choice.allows(parts, folder=True):
            return []
        try:
            found = self._served(parts)
        except OSError:
            return []
        return [above + slash + _display_name(entry) for entry in found if entry.name.startswith(start)]


def _display_name(entry: DirectoryEntry) -> str:
    return entry.name + "/" * entry.is_folder
