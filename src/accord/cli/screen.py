"""Output on stderr: lines, one updated status line, and questions.

While a question is open, all other output waits: text from the server must not appear between a question and its
answer. Text from the server within a question has a mark before each line.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import click

from accord.cli.columns import width, wrapped
from accord.cli.failures import printable

_MAX_PENDING_LINES = 1_000
"""The maximum number of lines that wait for an answer; beyond it, the oldest is dropped and counted."""

_MAX_QUOTED_LENGTH = 8_000
"""The maximum length of quoted text from the server in characters."""

_MARK = "  │ "


class Screen:
    """The output of the process on stderr. There is one instance."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[str, bool, bool]] | None = None
        self._dropped = 0
        self._has_status_line = False
        self._is_in_text = False

    def print_line(self, line: str, *, err: bool = True) -> None:
        """Print a line, now or after the open question; `err=False` is for stdout, maybe the same terminal."""
        if self._waiting is None:
            self._break_text()
            self.clear_line()
            click.echo(line, err=err)
        else:
            self._hold_back(line, err, True)

    def print_text(self, text: str) -> None:
        """Print a piece of text to stdout, which continues the piece before; a line or a question begins after it."""
        if self._waiting is None:
            self.clear_line()
            click.echo(text, nl=False)
            self._is_in_text = not text.endswith("\n")
        else:
            self._hold_back(text, False, False)

    def end_text(self) -> None:
        """End the text with a line break, unless it has one."""
        if self._waiting is not None:
            self._hold_back("\n", False, False)
        elif self._is_in_text:
            self._is_in_text = False
            click.echo()

    def _break_text(self) -> None:
        if sys.stdout.isatty():
            self.end_text()

    def _hold_back(self, text: str, err: bool, is_line: bool) -> None:
        assert self._waiting is not None, "a question is open"
        self._dropped += len(self._waiting) == self._waiting.maxlen
        self._waiting.append((text, err, is_line))

    def warn(self, text: str) -> None:
        """Print a warning."""
        self.print_line(f"{click.style('warning:', fg='yellow')} {text}")

    def update_line(self, line: str) -> None:
        """Replace the status line, unless a question is open."""
        if self._waiting is None:
            self._break_text()
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
        self._break_text()
        self.clear_line()
        self._waiting = held_back = deque[tuple[str, bool, bool]](maxlen=_MAX_PENDING_LINES)
        try:
            yield
        finally:
            self._waiting, dropped, self._dropped = None, self._dropped, 0
            if dropped:
                self.print_line(f"({dropped} earlier lines left out)")
            for text, err, is_line in held_back:
                if is_line:
                    self.print_line(text, err=err)
                else:
                    self.print_text(text)

    def print_prompt(self, text: str = "", *, nl: bool = True) -> None:
        """Print a part of the open question; a program other than the command line may have asked it."""
        click.echo(text, nl=nl, err=True, color=False if os.environ.get("NO_COLOR") else None)


screen: Screen = Screen()


def quoted(text: str, mark: str = _MARK) -> str:
    """Return text from the server, marked against imitation of this program, wrapped, control characters escaped."""
    left_out = len(text) - _MAX_QUOTED_LENGTH
    text = printable(text[:_MAX_QUOTED_LENGTH].replace("\t", "    "))  # a text of megabytes would take seconds
    if left_out > 0:
        text = f"{text}\n… {left_out:,} more characters"
    room = max(width(sys.stderr) - len(mark), 20)
    return "\n".join(mark + part for line in text.split("\n") for part in wrapped(line, room))
