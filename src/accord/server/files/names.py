"""Validation of paths in a tree, and the filter of paths that the author configures.

"Servers MUST validate all resource URIs" (server, Resources, Security). A path is decoded once, by the template; it
consists of names with `/` between them, which no system reads as anything but names. Other paths are neither read nor
listed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase, translate

from accord.errors import DeclarationError
from accord.messages.bounds import normalize

Parts = tuple[str, ...]
"""The names on the path from the root; empty for the root."""

LONGEST = 4096
"""The most characters in a path, as in Linux (PATH_MAX)."""
DEEPEST = 64
"""The most names in a path."""

_UNSAFE = re.compile("[\0-\x1f\x7f/\\\\\ud800-\udfff]")
"""Matches control characters, separators of any system, and surrogates for bytes that are not UTF-8."""
_DRIVE = re.compile("[A-Za-z]:")


def is_name(name: str) -> bool:
    """Return whether a text is only a name of a file or folder, on any system."""
    return name not in ("", ".", "..") and not _UNSAFE.search(name) and not _DRIVE.match(name)


def split(path: str) -> Parts | None:
    """Return the names of a relative path, or None if it is invalid or too long. A trailing `/` is allowed."""
    if len(path) > LONGEST:
        return None
    parts = tuple(path.removesuffix("/").split("/")) if path else ()
    return parts if len(parts) <= DEEPEST and all(map(is_name, parts)) else None


class PathFilter:
    """The author's filter of a tree's paths, by patterns.

    A pattern without `/` matches names at any depth (`*.md`), one with `/` matches paths from the root
    (`guide/**/*.md`, where `**` matches any folders). `include` applies to files and matches all if it is empty.
    `exclude` applies to files and folders; it ignores case and the encoding of accents, since some file systems do.
    Names that begin with a dot are excluded unless `hidden`. Raises `DeclarationError` for a single pattern instead of
    a list.
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = (), *, hidden: bool = False) -> None:
        if isinstance(include, str) or isinstance(exclude, str):
            raise DeclarationError('patterns must be a list: include=["*.md"]')
        self._include = _Patterns(include) if include else None
        self._exclude = _Patterns([_casefold(pattern) for pattern in exclude]) if exclude else None
        self._hidden = hidden

    def includes_entry(self, parts: Parts) -> bool:
        """Return whether a file or folder is not excluded, provided that its parent folders are not."""
        if not self._hidden and parts[-1].startswith("."):
            return False
        return self._exclude is None or not self._exclude.matches([_casefold(part) for part in parts])

    def includes_file(self, parts: Parts) -> bool:
        """Return whether a file is included, provided that it is not excluded."""
        return self._include is None or self._include.matches(parts)

    def allows(self, parts: Parts, *, folder: bool = False) -> bool:
        """Return whether a file or folder may be accessed: neither it nor a parent folder is excluded."""
        entered = all(self.includes_entry(parts[:count]) for count in range(1, len(parts) + 1))
        return entered and (folder or self.includes_file(parts))


def _casefold(text: str) -> str:
    """Return a key that is equal for names that some file system treats as equal: by case or encoding of accents."""
    return text if text.isascii() and text.islower() else normalize("NFC", text.casefold())


class _Patterns:
    """A set of patterns: those for names in one expression, those for paths name by name."""

    def __init__(self, patterns: Sequence[str]) -> None:
        names = [translate(pattern) for pattern in patterns if "/" not in pattern]
        self._name = re.compile("|".join(names)) if names else None
        self._paths = [pattern.strip("/").split("/") for pattern in patterns if "/" in pattern]

    def matches(self, parts: Sequence[str]) -> bool:
        if self._name is not None and self._name.match(parts[-1]):
            return True
        return any(_matches(parts, pattern) for pattern in self._paths)


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether names match a pattern; all possible positions in it are tracked at once, so that
    time is bounded.
    """
    indexes = _skip_wildcards({0}, pattern)
    for part in parts:
        staying = {index for index in indexes if pattern[index : index + 1] == ["**"]}
        advanced = {
            index + 1 for index in indexes - staying if index < len(pattern) and fnmatchcase(part, pattern[index])
        }
        indexes = _skip_wildcards(staying | advanced, pattern)
    return len(pattern) in indexes


def _skip_wildcards(indexes: set[int], pattern: Sequence[str]) -> set[int]:
    """Return the positions, and those after each `**` among them, which may match no folder."""
    result = set(indexes)
    for index, piece in enumerate(pattern):
        if index in result and piece == "**":
            result.add(index + 1)
    return result
