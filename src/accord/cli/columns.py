"""Two-column tables for the terminal: a name on the left, its description on the right."""

from __future__ import annotations

import os
import shutil
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TextIO

import click

from accord.cli.failures import printable

_MAX_WIDTH = 110
_MAX_CELL = 10_000
"""The maximum length of a cell in characters, because wrapping a word of megabytes takes minutes."""

_GAP = 3


class ColumnRow(NamedTuple):
    """A name, the text directly after it, and a description."""

    name: str
    rest: str
    about: str


def width(stream: TextIO | None = None) -> int:
    """Return the width of the terminal in columns, bounded to keep lines readable."""
    columns = shutil.get_terminal_size((100, 24)).columns
    if stream is not None and stream.isatty() and "COLUMNS" not in os.environ:
        columns = os.get_terminal_size(stream.fileno()).columns  # stdout may be redirected
    return min(columns or 100, _MAX_WIDTH)


def heading(text: str) -> str:
    """Return a heading, in bold."""
    return click.style(one_line(text, _MAX_CELL), bold=True)


def one_line(text: str, most: int = 200) -> str:
    """Return untrusted text in one line, shortened to `most` characters."""
    line = " ".join(printable(text[: 2 * most]).split())  # reads only the beginning of a text of megabytes
    return line if len(line) <= most and len(text) <= 2 * most else f"{line[:most]}…"


def wrapped(line: str, room: int) -> list[str]:
    """Return a line of printable text as lines of at most `room` columns; a wide character takes two of them."""
    if line.isascii():
        return textwrap.wrap(line, room, replace_whitespace=False, break_on_hyphens=False) or [""]
    padded = "".join(f"{each}\0" if unicodedata.east_asian_width(each) in "WF" else each for each in line)
    parts = textwrap.wrap(padded, room - 1, replace_whitespace=False, break_on_hyphens=False)
    return [part.replace("\0", "") for part in parts] or [""]


def rows(items: Iterable[ColumnRow], *, indent: int = 2) -> Iterator[str]:
    """Yield the rows as aligned lines; a name that is too long gets lines of its own."""
    clean = [ColumnRow(*(one_line(cell, _MAX_CELL) for cell in item)) for item in items]
    room = max(width() - indent, 40)
    fitting = [len(item.name + item.rest) for item in clean if len(item.name + item.rest) <= room * 45 // 100]
    left_width = max(fitting, default=8)
    for item in clean:
        yield from _lines(item, left_width, room, " " * indent)


def _lines(item: ColumnRow, left_width: int, room: int, indent: str) -> Iterator[str]:
    left_text = item.name + item.rest
    description = textwrap.wrap(item.about, max(room - left_width - _GAP, 20)) or [""]
    if len(left_text) <= left_width:
        yield (indent + _style(left_text, item) + " " * (left_width - len(left_text) + _GAP) + description[0]).rstrip()
        description = description[1:]
    else:
        wrapped = textwrap.wrap(
            left_text, room, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
        yield indent + _style(wrapped[0], item)
        yield from (indent + line for line in wrapped[1:])
    for line in description if item.about else ():
        yield indent + " " * (left_width + _GAP) + line


def _style(line: str, item: ColumnRow) -> str:
    return click.style(item.name, fg="cyan") + line[len(item.name) :] if line.startswith(item.name) else line
