"""Edits of a program's text at the positions of its syntax tree, which keep comments and layout.

The arguments of a call can be renamed, replaced and removed.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple


class Edit(NamedTuple):
    """A replacement of the characters from `start` to `end` by `text`."""

    start: int
    end: int
    text: str


class ManualStep(NamedTuple):
    """A change to make by hand: the line in the original program, and what to do."""

    line: int
    text: str
    is_blocking: bool = True
    """Whether the code must stay unchanged; otherwise, it only needs a review."""


class SourceText:
    """The text and syntax tree of one program. Raises `SyntaxError` for invalid Python."""

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
        """Return the offset in the text of a position in the tree: a line from 1, a column in bytes."""
        return self._starts[line - 1] + len(self._lines[line - 1][:column].decode())

    def span(self, node: Any) -> tuple[int, int]:
        """Return the start and end of a node in the text."""
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def lines(self, node: Any) -> tuple[int, int]:
        """Return the start and end of the lines of a statement, with the last line end."""
        last = self._starts[node.end_lineno]
        return self._starts[node.lineno - 1], min(last, len(self.text))

    def text_of(self, node: Any) -> str:
        """Return the text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def with_edits(self, edits: Iterable[Edit]) -> str:
        """Return the text with all edits applied; they must not overlap."""
        text = self.text
        for edit in sorted(edits, reverse=True):
            text = text[: edit.start] + edit.text + text[edit.end :]
        return text


def keywords_of(call: ast.Call) -> dict[str, ast.keyword] | None:
    """Return the keywords of a call by name, or None if it has `*args` or `**options`."""
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(
        argument.arg is None for argument in call.keywords
    ):
        return None
    return {argument.arg: argument for argument in call.keywords if argument.arg is not None}


def rename_keywords(call: ast.Call, names: Mapping[str, str], source: SourceText) -> Iterator[Edit]:
    """Yield edits that rename keywords."""
    for keyword in call.keywords:
        if keyword.arg is not None and names.get(keyword.arg, keyword.arg) != keyword.arg:
            start, _ = source.span(keyword)
            yield Edit(start, start + len(keyword.arg), names[keyword.arg])


def remove_arguments(call: ast.Call, removed: Collection[ast.AST], source: SourceText) -> Iterator[Edit]:
    """Yield edits that remove arguments and their commas."""
    arguments = sorted([*call.args, *call.keywords], key=source.span)
    index = 0
    while index < len(arguments):
        if arguments[index] not in removed:
            index += 1
            continue
        first = index
        while index < len(arguments) and arguments[index] in removed:
            index += 1
        if first:
            yield Edit(source.span(arguments[first - 1])[1], source.span(arguments[index - 1])[1], "")
        elif index < len(arguments):
            yield Edit(source.span(arguments[0])[0], source.span(arguments[index])[0], "")
        else:
            yield Edit(source.span(call.func)[1], source.span(call)[1], "()")


def constant(node: ast.expr | None) -> object:
    """Return the value of a literal, or None for any other expression."""
    return node.value if isinstance(node, ast.Constant) else None
