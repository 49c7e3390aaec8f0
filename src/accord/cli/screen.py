"""stderr as a person sees it: lines as they come, one line that moves, and questions that stand alone.

While a question stands, everything else waits: nothing that a server says may come between what a person is asked and
what they answer. What a server says in the question itself has a mark before each line.
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
"""Lines that wait for a question to be answered; beyond that the oldest is left out, with a count."""

_MAX_QUOTED_LENGTH = 8_000
"""Characters of what a server says in one place of a question."""

_MARK = "  │ "


class Screen:
    """One for the process, as stderr is."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[str, bool]] | None = None
        self._dropped = 0
        self._has_status_line = False

    def print_line(self, line: str, *, err: bool = True) -> None:
        """A line, now or once the question is answered; `err=False` for stdout, which may be the same terminal."""
        if self._waiting is None:
            self.clear_line()
            click.echo(line, err=err)
            return
        self._dropped += len(self._waiting) == self._waiting.maxlen
        self._waiting.append((line, err))

    def warn(self, text: str) -> None:
        """A line that says what may go wrong."""
        self.print_line(f"{click.style('warning:', fg='yellow')} {text}")

    def update_line(self, line: str) -> None:
        """A line that takes the place of the one before; not shown while a question stands."""
        if self._waiting is None:
            self._has_status_line = True
            click.echo(f"\r\x1b[2K{line}", nl=False, err=True)

    def clear_line(self) -> None:
        """Take away the line that moves."""
        if self._has_status_line:
            self._has_status_line = False
            click.echo("\r\x1b[2K", nl=False, err=True)

    @contextmanager
    def prompting(self) -> Iterator[None]:
        """A question stands; what others say meanwhile is shown afterwards."""
        self.clear_line()
        self._waiting = waiting = deque[tuple[str, bool]](maxlen=_MAX_PENDING_LINES)
        try:
            yield
        finally:
            self._waiting, left_out, self._dropped = None, self._dropped, 0
            if left_out:
                self.print_line(f"({left_out} earlier lines left out)")
            for line, err in waiting:
                self.print_line(line, err=err)

    def print_prompt(self, text: str = "", *, nl: bool = True) -> None:
        """Part of the question that stands."""
        click.echo(text, nl=nl, err=True)


screen: Screen = Screen()


def quoted(text: str, mark: str = _MARK) -> str:
    """What a server says, so that it cannot pass for what we say: marked, wrapped, nothing that steers a terminal."""
    text = printable(text.replace("\t", "    "))
    left_out = len(text) - _MAX_QUOTED_LENGTH
    if left_out > 0:
        text = f"{text[:_MAX_QUOTED_LENGTH]}\n… {left_out:,} more characters"
    room = max(width(sys.stderr) - len(mark), 20)
    lines = [part for line in text.split("\n") for part in textwrap.wrap(line, room, replace_whitespace=False) or [""]]
    return "\n".join(mark + line for line in lines)
