"""Progress as it comes, on stderr: one line that moves on a terminal, a line per report elsewhere."""

from __future__ import annotations

import sys

import click

from accord.cli.columns import width
from accord.cli.failures import printable

_BAR = 24


class Progress:
    """Shows reports; `done()` clears the line."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._shown = False

    def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        text = describe(progress, total, message)
        if not self._live:
            click.echo(f"progress: {text}", err=True)
            return
        self._shown = True
        line = f"{bar(progress, total)} {text}" if total else text
        click.echo(f"\r\x1b[2K{line[: width(sys.stderr) - 1]}", nl=False, err=True)

    def done(self) -> None:
        """Leave a clean line behind."""
        if self._shown:
            click.echo("\r\x1b[2K", nl=False, err=True)
            self._shown = False


def describe(progress: float, total: float | None, message: str | None) -> str:
    """`2/5 message`."""
    counted = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
    return f"{counted} {' '.join(printable(message).split())}" if message else counted


def bar(progress: float, total: float) -> str:
    """How much of it is done, drawn."""
    full = round(_BAR * min(max(progress / total, 0), 1))
    return "█" * full + "░" * (_BAR - full)
