"""Two columns for people: what something is called on the left, what it is about on the right."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TextIO

import click

from accord.cli.failures import printable

_MAX_WIDTH = 110
_MAX_CELL = 10_000
"""Characters of a cell: to wrap a word of megabytes takes minutes."""

_GAP = 3


class ColumnRow(NamedTuple):
    """A name, what follows it directly, and a description."""

    name: str
    rest: str
    about: str


def width(stream: TextIO | None = None) -> int:
    """Columns to fill: those of the terminal, as long as lines stay readable."""
    columns = shutil.get_terminal_size((100, 24)).columns
    if stream is not None and stream.isatty() and "COLUMNS" not in os.environ:
        columns = os.get_terminal_size(stream.fileno()).columns  # stdout may go elsewhere
    return min(columns or 100, _MAX_WIDTH)


def heading(text: str) -> str:
    """A line over rows."""
    return click.style(one_line(text, _MAX_CELL), bold=True)


def one_line(text: str, most: int = 200) -> str:
    """A name or a description of others, in one line."""
    line = " ".join(printable(text[: 2 * most]).split())  # of a text of megabytes only the beginning is looked at
    return line if len(line) <= most and len(text) <= 2 * most else f"{line[:most]}…"


def rows(items: Iterable[ColumnRow], *, indent: int = 2) -> Iterator[str]:
    """The rows as lines, aligned; a left side that is too long has its lines to itself."""
    clean = [ColumnRow(*(one_line(cell, _MAX_CELL) for cell in item)) for item in items]
    room = max(width() - indent, 40)
    fitting = [len(item.name + item.rest) for item in clean if len(item.name + item.rest) <= room * 45 // 100]
    left = max(fitting, default=8)
    for item in clean:
        yield from _lines(item, left, room, " " * indent)


def _lines(item: ColumnRow, left: int, room: int, indent: str) -> Iterator[str]:
    whole = item.name + item.rest
    about = textwrap.wrap(item.about, max(room - left - _GAP, 20)) or [""]
    if len(whole) <= left:
        yield (indent + _style(whole, item) + " " * (left - len(whole) + _GAP) + about[0]).rstrip()
        about = about[1:]
    else:
        wrapped = textwrap.wrap(whole, room, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
        yield indent + _style(wrapped[0], item)
        yield from (indent + line for line in wrapped[1:])
    for line in about if item.about else ():
        yield indent + " " * (left + _GAP) + line


def _style(line: str, item: ColumnRow) -> str:
    return click.style(item.name, fg="cyan") + line[len(item.name) :] if line.startswith(item.name) else line
