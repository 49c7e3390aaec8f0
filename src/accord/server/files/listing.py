"""All files of a tree at one moment, bounded, and what is different at the next."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from accord.server.files.names import DEEPEST, LONGEST, Choice, Parts, is_name
from accord.server.files.root import Entry

log: logging.Logger = logging.getLogger("accord.server")

_LONGEST_NAME = 256


class Folders(Protocol):
    """What a tree is read from, one folder after the other."""

    def entries(self, parts: Parts) -> Iterator[Entry]:
        """The files and folders in a folder. Raises `OSError`."""


class Listing(NamedTuple):
    """The files of a tree by their paths, folder by folder, in order."""

    files: dict[str, Entry]
    folders: list[str]
    """Those that could be looked into, the root (`""`) among them."""
    cut: bool
    """Whether there are more files, or folders, than are listed."""
    taken: float
    """When it was finished, by the monotonic clock, in seconds."""
    seconds: float
    """How long it took."""


def listing(root: Folders, choice: Choice, most: int) -> Listing:
    """At most `most` files, and as many folders beside the root. What cannot be looked into is left out."""
    begun = time.monotonic()
    files: dict[str, Entry] = {}
    folders: list[str] = []
    waiting: list[tuple[Parts, Entry | None]] = [((), None)]
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
    return Listing(files, folders, bool(waiting), now, now - begun)


def _inside(root: Folders, choice: Choice, parts: Parts) -> list[Entry] | None:
    if len(parts) >= DEEPEST or len("/".join(parts)) > LONGEST - _LONGEST_NAME:
        return None
    try:
        return served(root, choice, parts)
    except OSError as exc:
        log.debug("accord: the folder %r cannot be listed: %s", "/".join(parts), exc)
        return None


def served(root: Folders, choice: Choice, parts: Parts) -> list[Entry]:
    """What is served of one folder, in order. Raises `OSError`."""
    return sorted(entry for entry in root.entries(parts) if _is_served(choice, (*parts, entry.name), entry))


def _is_served(choice: Choice, parts: Parts, entry: Entry) -> bool:
    return is_name(entry.name) and choice.enters(parts) and (entry.is_folder or choice.serves(parts))


class Difference(NamedTuple):
    """What is different in a later listing, as paths of files."""

    came: list[str]
    went: list[str]
    changed: list[str]

    @property
    def all(self) -> list[str]:
        """Every file that is not as it was."""
        return [*self.changed, *self.came, *self.went]


def difference(before: Listing, after: Listing) -> Difference:
    """What came, what went, and whose size or time has changed."""
    old, new = before.files, after.files
    return Difference(
        came=[path for path in new if path not in old],
        went=[path for path in old if path not in new],
        changed=[path for path, entry in new.items() if old.get(path, entry) != entry],
    )
