"""Checks that paths of files lie under a folder.

A path is under a folder if all of its readings are (see `path_readings`), it is not if none is, and it is unclear
otherwise, or if it cannot be read safely.

A folder and a path are compared by their parts, after both have become real paths; folders that the file system says
are the same (other case, another mount) are the same. What this cannot see: a symbolic link that is changed after the
decision, hard links, and the file system of another machine or container.
"""

from __future__ import annotations

import ntpath
import posixpath
import unicodedata
from collections.abc import Iterator

from accord.host.policy.condition_result import ConditionResult
from accord.host.policy.path_readings import UnclearPath, parts_of, real_folder, real_readings
from accord.host.policy.real_paths import PathSystem

_MAX_TOTAL_CHARACTERS = 64 << 10
"""Limit of the paths of one call together, each counted once."""


class PathReader:
    """Reads the paths of one decision, each once. `base` is the folder of relative paths, if it is known."""

    def __init__(self, system: PathSystem, base: str | None) -> None:
        self._system = system
        self._base = base
        self._paths: dict[str, tuple[str, ...] | Exception] = {}
        self._folders: dict[str, str] = {}
        self._identities: dict[str, frozenset[object]] = {}
        self._characters = 0

    def check(self, text: object, folders: tuple[str, ...]) -> ConditionResult:
        """Return whether a path is one of the folders, or in one."""
        shown = ", ".join(folders)
        if not isinstance(text, str):
            return ConditionResult("unclear", "is not a text, so not a path")
        try:
            states = {self._state(reading, folders) for reading in self._readings(text)}
        except (UnclearPath, OSError, ValueError) as exc:
            reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
            return ConditionResult("unclear", f"cannot be read as a path: {reason}")
        if states == {"met"}:
            return ConditionResult("met", f"is under {shown}")
        if states == {"unmet"}:
            return ConditionResult("unmet", f"is not under {shown}")
        return ConditionResult("unclear", f"is under {shown} for some programs, and not for others")

    def _readings(self, text: str) -> tuple[str, ...]:
        found = self._paths.get(text)
        if found is None:
            self._characters += len(text)
            try:
                if self._characters > _MAX_TOTAL_CHARACTERS:
                    raise UnclearPath("the call has too many paths")
                found = tuple(sorted(set(real_readings(text, self._system, self._base))))
            except (UnclearPath, OSError, ValueError) as exc:
                found = exc
            self._paths[text] = found
        if isinstance(found, Exception):
            raise found
        return found

    def _state(self, reading: str, folders: tuple[str, ...]) -> str:
        states = {self._compare(reading, folder) for folder in folders}
        return next((state for state in ("met", "unclear") if state in states), "unmet")

    def _compare(self, reading: str, folder: str) -> str:
        real = self._folder(folder)
        mine, theirs = parts_of(reading, self._system), parts_of(real, self._system)
        if mine[: len(theirs)] == theirs:
            return "met"
        identity = self._system.identity(real)
        if identity is not None and identity in self._identities_above(reading):
            return "met"
        if [_folded(part) for part in mine[: len(theirs)]] == [_folded(part) for part in theirs]:
            return "met" if self._system.ignores_case else _composition(mine, theirs)
        return "unmet"

    def _folder(self, folder: str) -> str:
        if folder not in self._folders:
            self._folders[folder] = real_folder(folder, self._system)
        return self._folders[folder]

    def _identities_above(self, path: str) -> frozenset[object]:
        """Return the identities of a path and all folders above it."""
        if path not in self._identities:
            self._identities[path] = frozenset(map(self._system.identity, _parents(path, self._system)))
        return self._identities[path]


def _composition(mine: list[str], theirs: list[str]) -> str:
    """Return whether two paths differ in case, or only in how their characters are composed."""
    pairs = zip(mine, theirs, strict=False)
    same = all(unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other) for one, other in pairs)
    return "unclear" if same else "unmet"


def _folded(part: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", part).casefold())


def _parents(path: str, system: PathSystem) -> Iterator[str]:
    module = ntpath if system.windows else posixpath
    while True:
        yield path
        parent = module.dirname(path)
        if parent == path:
            return
        path = parent
