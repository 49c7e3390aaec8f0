"""Output on stderr: lines, one updated status line, and questions.

While a question is open, all other output waits: text from the server must not appear between a question and its
answer. Text from the server within a question has a mark before each line.
"""

from __future__ import annotations

import sys
import textwrap
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import click

from accord.cli.columns import width
from accord.cli.failures import printable

_MAX_PENDING_LINES = 1_000
"""The maximum number of lines that wait for an answer; beyond it, the oldest is dropped and counted."""

_MAX_QUOTED_LENGTH = 8_000
"""The maximum length of quoted text from the server in characters."""

_MARK = "  │ "


class Screen:
    """The output of the process on stderr. There is one instance."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[str, bool]] | None = None
        self._dropped = 0
        self._has_status_line = False

    def print_line(self, line: str, *, err: bool = True) -> None:
        """Print a line, now or after the open question; `err=False` is for stdout, maybe the same terminal."""
        if self._waiting is None:
            self.clear_line()
            click.echo(line, err=err)
            return
        self._dropped += len(self._waiting) == self._waiting.maxlen
        self._waiting.append((line, err))

    def warn(self, text: str) -> None:
        """Print a warning."""
        self.print_line(f"{click.style('warning:', fg='yellow')} {text}")

    def update_line(self, line: str) -> None:
        """Replace the status line, unless a question is open."""
        if self._waiting is None:
            self._has_status_line = True
            click.echo(f"\r\x1b[2K{line}", nl=False, err=True)

    def clear_line(self) -> None:
        """Remove the status line."""
        if self._has_status_line:
            self._has_status_line = False
            click.echo("\r\x1b[2K", nl=False, err=True)

    @contextmanager
    def prompting(self) -> Iterator[None]:
        """Hold back other output while a question is open, and print it afterwards."""
        self.clear_line()
        self._waiting = held_back = deque[tuple[str, bool]](maxlen=_MAX_PENDING_LINES)
        try:
            yield
        finally:
            self._waiting, dropped, self._dropped = None, self._dropped, 0
            if dropped:
                self.print_line(f"({dropped} earlier lines left out)")
            for line, err in held_back:
                self.print_line(line, err=err)

    def print_prompt(self, text: str = "", *, nl: bool = True) -> None:
        """Print a part of the open question."""
        click.echo(text, nl=nl, err=True)


screen: Screen = Screen()


def quoted(text: str, mark: str = _MARK) -> str:
    """Return text from the server, marked against imitation of this program, wrapped, control characters escaped."""
    text = printable(text.replace("\t", "    "))
    left_out = len(text) - _MAX_QUOTED_LENGTH
    if left_out > 0:
        text = f"{text[:_MAX_QUOTED_LENGTH]}\n… {left_out:,} more characters"
    room = max(width(sys.stderr) - len(mark), 20)
    lines = [part for line in text.split("\n") for part in textwrap.wrap(line, room, replace_whitespace=False) or [""]]
    return "\n".join(mark + line for line in lines)
