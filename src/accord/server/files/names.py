"""Which names of a tree may be asked for, before anything is opened: what they are made of, and what the author chose.

"Servers MUST validate all resource URIs" (server, Resources, Security). A path arrives decoded once, as the template
gives it; it is names with `/` between them, and nothing that any system reads as more than a name. What is not one is
neither read nor listed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase, translate

from accord.errors import DeclarationError
from accord.messages.bounds import normalize

Parts = tuple[str, ...]
"""The names on the way from the root, the root itself without any."""

LONGEST = 4096
"""Characters of a path, as in Linux (PATH_MAX)."""
DEEPEST = 64
"""Names of a path."""

_UNSAFE = re.compile("[\0-\x1f\x7f/\\\\\ud800-\udfff]")
"""Control characters, separators of any system, and what stands for bytes that are no UTF-8."""
_DRIVE = re.compile("[A-Za-z]:")


def is_name(name: str) -> bool:
    """Whether this is the name of a file or a folder, and can be nothing else."""
    return name not in ("", ".", "..") and not _UNSAFE.search(name) and not _DRIVE.match(name)


def split(path: str) -> Parts | None:
    """The names of a relative path; None where it is more than that, or too long. One `/` may stand at its end."""
    if len(path) > LONGEST:
        return None
    parts = tuple(path.removesuffix("/").split("/")) if path else ()
    return parts if len(parts) <= DEEPEST and all(map(is_name, parts)) else None


class PathFilter:
    """What the author chose of a tree, by patterns.

    A pattern without `/` is for names at any depth (`*.md`), one with `/` for paths from the root (`guide/**/*.md`,
    where `**` are any folders). `include` is for files, everything if it is empty; `exclude` for files and folders,
    without regard to case and to how an accent is written, since there are systems that do not regard these either.
    Names that begin with a dot are left out unless `hidden`. Raises `DeclarationError` for one pattern in the place of
    several.
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = (), *, hidden: bool = False) -> None:
        if isinstance(include, str) or isinstance(exclude, str):
            raise DeclarationError('patterns must be a list: include=["*.md"]')
        self._include = _Patterns(include) if include else None
        self._exclude = _Patterns([_folded(one) for one in exclude]) if exclude else None
        self._hidden = hidden

    def includes_entry(self, parts: Parts) -> bool:
        """Whether a file or folder is not left out, if those that it stands in are not."""
        if not self._hidden and parts[-1].startswith("."):
            return False
        return self._exclude is None or not self._exclude.fit([_folded(part) for part in parts])

    def includes_file(self, parts: Parts) -> bool:
        """Whether a file is among what was included, if it is not left out."""
        return self._include is None or self._include.fit(parts)

    def allows(self, parts: Parts, *, folder: bool = False) -> bool:
        """Whether a file or folder may be asked for: neither it nor any above it is left out."""
        entered = all(self.includes_entry(parts[:count]) for count in range(1, len(parts) + 1))
        return entered and (folder or self.includes_file(parts))


def _folded(text: str) -> str:
    """Equal for names that some system takes for one: in other capitals, with accents as characters of their own."""
    return text if text.isascii() and text.islower() else normalize("NFC", text.casefold())


class _Patterns:
    """Several, of which one has to fit: those for names as one expression, those for paths name by name."""

    def __init__(self, patterns: Sequence[str]) -> None:
        names = [translate(one) for one in patterns if "/" not in one]
        self._name = re.compile("|".join(names)) if names else None
        self._paths = [one.strip("/").split("/") for one in patterns if "/" in one]

    def fit(self, parts: Sequence[str]) -> bool:
        if self._name is not None and self._name.match(parts[-1]):
            return True
        return any(_fits(parts, pattern) for pattern in self._paths)


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether names fit a pattern of names; all places of it that they can have come to are looked at together."""
    places = _places({0}, pattern)
    for part in parts:
        stay = {place for place in places if pattern[place : place + 1] == ["**"]}
        go = {place + 1 for place in places - stay if place < len(pattern) and fnmatchcase(part, pattern[place])}
        places = _places(stay | go, pattern)
    return len(pattern) in places


def _places(places: set[int], pattern: Sequence[str]) -> set[int]:
    """These, and those behind the `**` that stand there, which may be no folder."""
    found = set(places)
    for at, piece in enumerate(pattern):
        if at in found and piece == "**":
            found.add(at + 1)
    return found
