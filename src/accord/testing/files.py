"""Files that tests compare with: written on request, never by accident.

What is different between two JSON values, place by place, for people to read.

A place is written as its keys, joined by dots: `tools.forecast.inputSchema.properties.days.default`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path
from typing import Any

from accord.check.surface.schema_changes import preview_json


def read_expected(file: Path) -> str:
    """Its text. Raises `AssertionError` that says how it is written, where there is none."""
    __tracebackhide__ = True
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise AssertionError(
            f"there is no {file} yet: pytest --accord-update writes it, or update=True; then look at it and commit it"
        ) from None


def write_expected(file: Path, text: str) -> None:
    """Write it, with the folder that it stands in."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")


_ABSENT: Any = object()


def differences(was: Any, now: Any, ignore: Sequence[str] = ()) -> list[str]:
    """A line for each difference, sorted by its place: `days.default: 3 → 5`. Places that match one of `ignore`, where
    `*` stands for any text, are left out, with all that is in them.
    """
    return [line for _, line in placed_differences(was, now, ignore)]


def placed_differences(was: Any, now: Any, ignore: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The same, each with its place."""
    return [(place, line) for place, line in _differences(was, now, "") if not _is_ignored(place, ignore)]


def _is_ignored(place: str, ignore: Sequence[str]) -> bool:
    return any(fnmatchcase(place, pattern) or fnmatchcase(place, f"{pattern}.*") for pattern in ignore)


def _differences(was: Any, now: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(was, dict) and isinstance(now, dict):
        for key in sorted(was.keys() | now.keys()):
            yield from _differences(was.get(key, _ABSENT), now.get(key, _ABSENT), _join(place, key))
    elif isinstance(was, list) and isinstance(now, list):
        for number, (one, other) in enumerate(zip_longest(was, now, fillvalue=_ABSENT)):
            yield from _differences(one, other, _join(place, str(number)))
    elif was is _ABSENT:
        yield place, f"{place}: new: {preview_json(now)}"
    elif now is _ABSENT:
        yield place, f"{place}: gone: {preview_json(was)}"
    elif was != now or isinstance(was, bool) is not isinstance(now, bool):
        yield place, f"{place or 'the value'}: {preview_json(was)} → {preview_json(now)}"


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key
