"""Bounded listings of a tree's files, and the difference between two listings."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from accord.server.files.names import DEEPEST, LONGEST, Parts, PathFilter, is_name
from accord.server.files.root import DirectoryEntry

log: logging.Logger = logging.getLogger("accord.server")

_LONGEST_NAME = 256


class FolderSource(Protocol):
    """A source of folder listings, one folder at a time."""

    def entries(self, parts: Parts) -> Iterator[DirectoryEntry]:
        """Yield the files and folders in a folder. Raises `OSError`."""


class TreeListing(NamedTuple):
    """The files of a tree by their paths, folder by folder, in order."""

    files: dict[str, DirectoryEntry]
    folders: list[str]
    """The readable folders, including the root (`""`)."""
    is_truncated: bool
    """Whether the tree has more files or folders than are listed."""
    finished_at: float
    """The time of completion on the monotonic clock, in seconds."""
    seconds: float
    """The duration of the walk, in seconds."""


def listing(root: FolderSource, path_filter: PathFilter, most: int) -> TreeListing:
    """Return at most `most` files, and as many folders besides the root. Unreadable folders are left out."""
    start = time.monotonic()
    files: dict[str, DirectoryEntry] = {}
    folders: list[str] = []
    stack: list[tuple[Parts, DirectoryEntry | None]] = [((), None)]
    while stack and len(files) < most and len(folders) <= most:
        parts, entry = stack.pop()
        if entry is not None and not entry.is_folder:
            files["/".join(parts)] = entry
            continue
        children = _children(root, path_filter, parts)
        if children is not None:
            folders.append("/".join(parts))
            stack += [((*parts, child.name), child) for child in reversed(children)]
    now = time.monotonic()
    return TreeListing(files, folders, bool(stack), now, now - start)


def _children(root: FolderSource, path_filter: PathFilter, parts: Parts) -> list[DirectoryEntry] | None:
    if len(parts) >= DEEPEST or len("/".join(parts)) > LONGEST - _LONGEST_NAME:
        return None
    try:
        return served_entries(root, path_filter, parts)
    except OSError as exc:
        log.debug("accord: the folder %r cannot be listed: %s", "/".join(parts), exc)
        return None


def served_entries(root: FolderSource, path_filter: PathFilter, parts: Parts) -> list[DirectoryEntry]:
    """Return the served entries of one folder, in order. Raises `OSError`."""
    return sorted(entry for entry in root.entries(parts) if _is_served(path_filter, (*parts, entry.name), entry))


def _is_served(path_filter: PathFilter, parts: Parts, entry: DirectoryEntry) -> bool:
    return (
        is_name(entry.name)
        and path_filter.includes_entry(parts)
        and (entry.is_folder or path_filter.includes_file(parts))
    )


class TreeDifference(NamedTuple):
    """The difference between two listings, as paths of files."""

    added: list[str]
    removed: list[str]
    changed: list[str]

    @property
    def all(self) -> list[str]:
        """The paths of all files that were added, removed or changed."""
        return [*self.changed, *self.added, *self.removed]


def difference(before: TreeListing, after: TreeListing) -> TreeDifference:
    """Return the files that were added, removed, or changed in size or time."""
    old, new = before.files, after.files
    return TreeDifference(
        added=[path for path in new if path not in old],
        removed=[path for path in old if path not in new],
        changed=[path for path, entry in new.items() if old.get(path, entry) != entry],
    )
