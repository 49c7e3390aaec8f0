"""A program's text with its syntax tree: found by the tree, changed in the text, so that comments and layout stay.

The arguments of a call in a program's text: renamed, given another value, taken out.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
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


def keywords_of(call: ast.Call) -> dict[str, ast.keyword] | None:
    """The keywords of a call by name; None where some are not written out (`**options`, `*args`)."""
    if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
        return None
    return {one.arg: one for one in call.keywords if one.arg is not None}


def rename_keywords(call: ast.Call, names: Mapping[str, str], source: SourceText) -> Iterator[Edit]:
    """Keywords under other names."""
    for one in call.keywords:
        if one.arg is not None and names.get(one.arg, one.arg) != one.arg:
            start, _ = source.span(one)
            yield Edit(start, start + len(one.arg), names[one.arg])


def remove_arguments(call: ast.Call, gone: Collection[ast.AST], source: SourceText) -> Iterator[Edit]:
    """Arguments taken out, with the commas that they leave."""
    given = sorted([*call.args, *call.keywords], key=source.span)
    at = 0
    while at < len(given):
        if given[at] not in gone:
            at += 1
            continue
        begin = at
        while at < len(given) and given[at] in gone:
            at += 1
        if begin:
            yield Edit(source.span(given[begin - 1])[1], source.span(given[at - 1])[1], "")
        elif at < len(given):
            yield Edit(source.span(given[0])[0], source.span(given[at])[0], "")
        else:
            yield Edit(source.span(call.func)[1], source.span(call)[1], "()")


def constant(node: ast.expr | None) -> object:
    """The value of a literal; None for anything else."""
    return node.value if isinstance(node, ast.Constant) else None
