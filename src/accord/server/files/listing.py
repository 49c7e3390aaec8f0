"""All files of a tree at one moment, bounded, and what is different at the next."""

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
    """What a tree is read from, one folder after the other."""

    def entries(self, parts: Parts) -> Iterator[DirectoryEntry]:
        """The files and folders in a folder. Raises `OSError`."""


class TreeListing(NamedTuple):
    """The files of a tree by their paths, folder by folder, in order."""

    files: dict[str, DirectoryEntry]
    folders: list[str]
    """Those that could be looked into, the root (`""`) among them."""
    is_truncated: bool
    """Whether there are more files, or folders, than are listed."""
    finished_at: float
    """When it was finished, by the monotonic clock, in seconds."""
    seconds: float
    """How long it took."""


def listing(root: FolderSource, choice: PathFilter, most: int) -> TreeListing:
    """At most `most` files, and as many folders beside the root. What cannot be looked into is left out."""
    begun = time.monotonic()
    files: dict[str, DirectoryEntry] = {}
    folders: list[str] = []
    waiting: list[tuple[Parts, DirectoryEntry | None]] = [((), None)]
    while waiting and len(files) < most and len(folders) <= most:
        parts, entry = waiting.pop()
        if entry is not None and not entry.is_folder:
            files["/".join(parts)] = entry
            continue
        inside = _inside(root, choice, parts)
        if inside is not None:
            folders.append("/".join(parts))
            waiting += [((*parts, inner.name), inner) for inner in reversed(inside)]
    now = time.monotonic()
    return TreeListing(files, folders, bool(waiting), now, now - begun)


def _inside(root: FolderSource, choice: PathFilter, parts: Parts) -> list[DirectoryEntry] | None:
    if len(parts) >= DEEPEST or len("/".join(parts)) > LONGEST - _LONGEST_NAME:
        return None
    try:
        return served_entries(root, choice, parts)
    except OSError as exc:
        log.debug("accord: the folder %r cannot be listed: %s", "/".join(parts), exc)
        return None


def served_entries(root: FolderSource, choice: PathFilter, parts: Parts) -> list[DirectoryEntry]:
    """What is served of one folder, in order. Raises `OSError`."""
    return sorted(entry for entry in root.entries(parts) if _is_served(choice, (*parts, entry.name), entry))


def _is_served(choice: PathFilter, parts: Parts, entry: DirectoryEntry) -> bool:
    return is_name(entry.name) and choice.includes_entry(parts) and (entry.is_folder or choice.includes_file(parts))


class TreeDifference(NamedTuple):
    """What is different in a later listing, as paths of files."""

    added: list[str]
    removed: list[str]
    changed: list[str]

    @property
    def all(self) -> list[str]:
        """Every file that is not as it was."""
        return [*self.changed, *self.added, *self.removed]


def difference(before: TreeListing, after: TreeListing) -> TreeDifference:
    """What came, what went, and whose size or time has changed."""
    old, new = before.files, after.files
    return TreeDifference(
        added=[path for path in new if path not in old],
        removed=[path for path in old if path not in new],
        changed=[path for path, entry in new.items() if old.get(path, entry) != entry],
    )
