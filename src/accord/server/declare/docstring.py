"""Parsing of docstrings into a description and the descriptions of parameters.

Google (`Args:`), NumPy (`Parameters` and a line of dashes) and Sphinx (`:param x:`) styles are supported, also mixed.
Sections on results and errors are dropped: a model that calls the tool does not need them.
"""

from __future__ import annotations

import re
from inspect import cleandoc

import msgspec

from accord.lazy_patterns import lazy_pattern

_ARGUMENTS = {
    "args",
    "arguments",
    "parameters",
    "params",
    "keyword args",
    "keyword arguments",
    "other parameters",
}
_LEFT_OUT = {
    "returns",
    "return",
    "yields",
    "yield",
    "raises",
    "raise",
    "except",
    "exceptions",
    "warns",
    "attributes",
}
_GOOGLE = lazy_pattern(r"(\w[\w ]*):\s*$")
_DASHES = lazy_pattern(r"-{3,}\s*$")
_FIELD = lazy_pattern(r":(\w+)(?:\s+([^:]*))?:\s?(.*)$")
_ENTRY = lazy_pattern(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:(?:\s+(.*))?$")
_NUMPY_ENTRY = lazy_pattern(r"\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")


class Docstring(msgspec.Struct, frozen=True):
    """The parts of a docstring."""

    description: str
    parameters: dict[str, str]


def docstring(text: str) -> Docstring:
    """Parse a docstring."""
    reader = _Reader(cleandoc(text).splitlines())
    reader.run()
    body = re.sub(r"\n{3,}", "\n\n", "\n".join(reader.body)).strip()
    return Docstring(body, {name: " ".join(lines).strip() for name, lines in reader.parameters.items()})


class _Reader:
    """A reader that passes the lines once; a line belongs to the body, to a parameter, or to a dropped section."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self.body: list[str] = []
        self.parameters: dict[str, list[str]] = {}

    def run(self) -> None:
        index = 0
        while index < len(self._lines):
            index = self._step(index)

    def _step(self, index: int) -> int:
        line = self._lines[index]
        section = self._section(index)
        if section is not None:
            title, start, numpy = section
            end = self._end_of_section(start, numpy)
            if title in _ARGUMENTS:
                self._entries(self._lines[start:end], _NUMPY_ENTRY if numpy else _ENTRY)
            return end
        if found := _FIELD.match(line):
            return self._sphinx(index, found)
        self.body.append(line)
        return index + 1

    def _section(self, index: int) -> tuple[str, int, bool] | None:
        """Return title, first line and whether the style is NumPy's, if a section on arguments or results starts
        here.
        """
        title = self._lines[index].strip().rstrip(":").lower()
        if title not in _ARGUMENTS | _LEFT_OUT:
            return None
        following = self._lines[index + 1] if index + 1 < len(self._lines) else ""
        if _DASHES.match(following):
            return title, index + 2, True
        return (title, index + 1, False) if _GOOGLE.match(self._lines[index]) else None

    def _end_of_section(self, start: int, numpy: bool) -> int:
        for index in range(start, len(self._lines)):
            line = self._lines[index]
            following = self._lines[index + 1] if index + 1 < len(self._lines) else ""
            if _DASHES.match(following) if numpy else line and not line[0].isspace():
                return index
        return len(self._lines)

    def _entries(self, lines: list[str], entry: re.Pattern[str]) -> None:
        margin = min((_margin(line) for line in lines if line.strip()), default=0)
        current: list[str] = []
        for line in lines:
            found = entry.match(line.strip()) if _margin(line) == margin and line.strip() else None
            if found is None:
                current.append(line.strip())
                continue
            current = [found[2] or ""] if entry is _ENTRY else []
            self.parameters |= dict.fromkeys(re.split(r"\s*,\s*", found[1]), current)

    def _sphinx(self, index: int, found: re.Match[str]) -> int:
        lines = [found[3]]
        index += 1
        while index < len(self._lines) and self._lines[index][:1].isspace():
            lines.append(self._lines[index].strip())
            index += 1
        if found[1] in ("param", "parameter", "arg", "argument", "key", "keyword") and found[2]:
            self.parameters[found[2].split()[-1].lstrip("*")] = lines
        return index


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())
