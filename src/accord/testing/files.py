"""Expected files of tests, written only on request, and the differences between two JSON values.

A path is written as keys joined by dots: `tools.forecast.inputSchema.properties.days.default`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from io import BufferedReader
from itertools import zip_longest
from pathlib import Path
from typing import Any

from accord.check.surface.schema_changes import preview_json
from accord.errors import visible
from accord.file_replacement import write_file


def read_expected(file: Path) -> str:
    """Return the text of a file. Raises `AssertionError` with the command that writes it if it is missing."""
    __tracebackhide__ = True
    with open_expected(file) as stream:
        return stream.read().decode()


def open_expected(file: Path) -> BufferedReader:
    """Open a file to read its bytes. Raises `AssertionError` with the command that writes it if it is missing."""
    __tracebackhide__ = True
    try:
        return file.open("rb")
    except FileNotFoundError:
        raise AssertionError(
            f"{file} does not exist: write it with pytest --accord-update, or update=True; then review and commit it"
        ) from None


def write_expected(file: Path, text: str) -> None:
    """Write a file, and create its folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, text.encode())


_ABSENT: Any = object()
_PATH = 2_000
"""The maximum number of characters of a path."""


def differences(was: Any, now: Any, ignore: Sequence[str] = ()) -> list[str]:
    """Return a line for each difference, sorted by path: `days.default: 3 → 5`. A path that matches a pattern of
    `ignore`, where `*` stands for any text, is left out with everything below it.
    """
    return [line for _, line in differences_by_path(was, now, ignore)]


def differences_by_path(was: Any, now: Any, ignore: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return the differences as pairs of path and line. Characters that control a terminal are escaped in the line."""
    return [(path, visible(line)) for path, line in _differences(was, now, "") if not _is_ignored(path, ignore)]


def _is_ignored(path: str, ignore: Sequence[str]) -> bool:
    return any(fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}.*") for pattern in ignore)


def _differences(was: Any, now: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(was, dict) and isinstance(now, dict):
        for key in sorted(was.keys() | now.keys()):
            yield from _differences(was.get(key, _ABSENT), now.get(key, _ABSENT), _join(path, key))
    elif isinstance(was, list) and isinstance(now, list):
        for number, (was_item, now_item) in enumerate(zip_longest(was, now, fillvalue=_ABSENT)):
            yield from _differences(was_item, now_item, _join(path, str(number)))
    elif was is _ABSENT:
        yield path, f"{path}: added: {preview_json(now)}"
    elif now is _ABSENT:
        yield path, f"{path}: removed: {preview_json(was)}"
    elif was != now or isinstance(was, bool) is not isinstance(now, bool):
        yield path, f"{path or 'the value'}: {preview_json(was)} → {preview_json(now)}"


def _join(path: str, key: str) -> str:
    """Return the path of a member, as far as it can be read: each difference below a very long name repeats it."""
    return (f"{path}.{key}" if path else key)[:_PATH]
