"""A program's text with its syntax tree: found by the tree, changed in the text, so that comments and layout stay."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple


class Edit(NamedTuple):
    """Characters `start` to `end` become `text`."""

    start: int
    end: int
    text: str


class ManualStep(NamedTuple):
    """Something that has to be done by hand: the line in the program as it was, and what to do."""

    line: int
    text: str
    is_blocking: bool = True
    """Whether the words it is about have to stay; otherwise it is only to be looked at."""


class SourceText:
    """One program. Raises `SyntaxError` for a text that is none."""

    def __init__(self, text: str) -> None:
        self.text: str = text
        self.tree: ast.Module = ast.parse(text)

    @cached_property
    def _lines(self) -> list[bytes]:
        return [line.encode() for line in self.text.split("\n")]

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(len(line.decode()) + 1 for line in self._lines)]

    def at(self, line: int, column: int) -> int:
        """Where a position of the tree (a line from 1, a column in bytes) is in the text."""
        return self._starts[line - 1] + len(self._lines[line - 1][:column].decode())

    def span(self, node: Any) -> tuple[int, int]:
        """Where a node begins and ends in the text."""
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def lines(self, node: Any) -> tuple[int, int]:
        """Where the lines of a statement begin and end, the last line end included."""
        last = self._starts[node.end_lineno]
        return self._starts[node.lineno - 1], min(last, len(self.text))

    def text_of(self, node: Any) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def with_edits(self, edits: Iterable[Edit]) -> str:
        """The text with all of them made; they do not overlap."""
        text = self.text
        for edit in sorted(edits, reverse=True):
            text = text[: edit.start] + edit.text + text[edit.end :]
        return text
