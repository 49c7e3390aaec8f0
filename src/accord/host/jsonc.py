"""JSON with comments: a parser that keeps the position of every value.

Editors allow `//` and `/* */` comments and trailing commas in their settings. `parse()` reads such a text, and plain
JSON, into a tree of `JSONNode`s with their offsets in the text. A program can then name the line of a value, or change
one value and leave all other characters as they are.

Everything else is as strict as JSON. The nesting depth is bounded. A name that an object has twice is accepted, and the
last one counts, as in `JSON.parse`; `JSONNode.duplicate` names it.
"""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections import Counter
from typing import Any

import msgspec

MAX_DEPTH = 100
"""Limit of the nesting depth."""

_SPACE = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/)*+")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+"')
_LITERAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_LINE_END = re.compile(r"\r\n|\r|\n")


class JSONCError(ValueError):
    """A text that is not JSON with comments: what is wrong, and where (line and column count from 1)."""

    def __init__(self, reason: str, text: str, offset: int) -> None:
        self.reason = reason
        line, column = position(text, offset)
        self.line: int = line
        self.column: int = column
        super().__init__(f"{self.line}:{self.column}: {reason}")


class JSONMember(msgspec.Struct, frozen=True):
    """A name and a value of an object."""

    name: str
    start: int
    """The offset of the quote that begins the name."""
    value: JSONNode


class JSONNode(msgspec.Struct, frozen=True):
    """A value, with the offsets of its text: `text[start:end]`."""

    start: int
    end: int
    value: Any = None
    """The value of a string, number or literal; see `plain()`."""
    members: tuple[JSONMember, ...] | None = None
    """The members of an object, in order."""
    items: tuple[JSONNode, ...] | None = None
    """The items of an array."""

    def member(self, name: str) -> JSONMember | None:
        """Return the member of an object with this name, the last one if there are several; else None."""
        return next((each for each in reversed(self.members or ()) if each.name == name), None)

    def at(self, *names: str) -> JSONNode | None:
        """Return the value at a path of names; None if there is none."""
        node: JSONNode | None = self
        for name in names:
            found = node.member(name) if node is not None else None
            node = found.value if found is not None else None
        return node

    @property
    def duplicate(self) -> str | None:
        """A name that the object has twice; None if there is none."""
        names = Counter(each.name for each in self.members or ())
        return next((name for name, count in names.items() if count > 1), None)

    def plain(self) -> Any:
        """Return the value as dicts, lists, strings, numbers, booleans and None."""
        if self.members is not None:
            return {each.name: each.value.plain() for each in self.members}
        return [each.plain() for each in self.items] if self.items is not None else self.value


def parse(text: str) -> JSONNode | None:
    """Return the value in a text; None if the text has only space and comments. Raises `JSONCError`."""
    reader = _JSONCReader(text)
    reader.skip_space()
    if reader.at_end:
        return None
    node = reader.value(0)
    reader.skip_space()
    if not reader.at_end:
        raise reader.error("expected the end of the file")
    return node


def position(text: str, offset: int) -> tuple[int, int]:
    """Return the line and the column of an offset; both count from 1."""
    starts = line_starts(text)
    line = bisect(starts, offset)
    return line, offset - starts[line - 1] + 1


def skip_space(text: str, offset: int) -> int:
    """Return the offset of what follows the space and the comments at an offset."""
    match = _SPACE.match(text, offset)
    return match.end() if match is not None else offset


def line_starts(text: str) -> list[int]:
    """Return the offset of the begin of each line."""
    return [0, *(match.end() for match in _LINE_END.finditer(text))]


class _JSONCReader:
    """Reads one text from its begin to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._offset = 1 if text.startswith("\ufeff") else 0

    @property
    def at_end(self) -> bool:
        return self._offset == len(self._text)

    @property
    def next(self) -> str:
        return self._text[self._offset : self._offset + 1]

    def error(self, reason: str) -> JSONCError:
        shown = repr(self.next) if self.next else "the end of the file"
        return JSONCError(f"{reason}, found {shown}", self._text, self._offset)

    def skip_space(self) -> None:
        self._offset = skip_space(self._text, self._offset)
        if self._text.startswith("/*", self._offset):
            raise JSONCError("this comment does not end", self._text, self._offset)

    def value(self, depth: int) -> JSONNode:
        if depth > MAX_DEPTH:
            raise JSONCError(f"values are nested deeper than {MAX_DEPTH} levels", self._text, self._offset)
        if self.next == "{":
            return self._object(depth)
        if self.next == "[":
            return self._array(depth)
        start = self._offset
        if self.next == '"':
            value = self._string()
            return JSONNode(start, self._offset, value)
        match = _LITERAL.match(self._text, start)
        if match is None:
            raise self.error("expected a value")
        self._offset = match.end()
        return JSONNode(start, self._offset, self._decode(match[0], start))

    def _string(self) -> str:
        start = self._offset
        match = _STRING.match(self._text, start)
        if match is None:
            raise JSONCError("this string does not end on its line", self._text, start)
        self._offset = match.end()
        return str(self._decode(match[0], start))

    def _decode(self, token: str, start: int) -> Any:
        try:
            return json.loads(token)
        except ValueError as exc:  # an unknown escape, or a number with too many digits
            raise JSONCError(f"invalid value: {getattr(exc, 'msg', exc)}", self._text, start) from None

    def _object(self, depth: int) -> JSONNode:
        start = self._offset
        members: list[JSONMember] = []
        while self._more("}", first=not members):
            if self.next != '"':
                raise self.error("expected a name in double quotes")
            begin = self._offset
            name = self._string()
            self.skip_space()
            self._expect(":")
            self.skip_space()
            members.append(JSONMember(name, begin, self.value(depth + 1)))
        return JSONNode(start, self._offset, members=tuple(members))

    def _array(self, depth: int) -> JSONNode:
        start = self._offset
        items: list[JSONNode] = []
        while self._more("]", first=not items):
            items.append(self.value(depth + 1))
        return JSONNode(start, self._offset, items=tuple(items))

    def _more(self, end: str, *, first: bool) -> bool:
        """Skip what stands before the next member or item; return False at the end, which is skipped too."""
        if first:
            self._offset += 1  # the opening bracket
            self.skip_space()
        else:
            self.skip_space()
            if self.next != end:
                self._expect(",", f"a comma or {end}")
                self.skip_space()
        if self.next == end:
            self._offset += 1
            return False
        return True

    def _expect(self, character: str, name: str = "") -> None:
        if self.next != character:
            raise self.error(f"expected {name or repr(character)}")
        self._offset += 1
