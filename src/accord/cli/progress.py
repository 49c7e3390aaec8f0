"""Progress as it comes, on stderr: one line that moves on a terminal, a line per report elsewhere."""

from __future__ import annotations

import sys

from accord.cli.columns import width
from accord.cli.failures import printable
from accord.cli.screen import screen

_BAR = 24


class ProgressLine:
    """Shows reports; `done()` clears the line."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()

    def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        text = progress_text(progress, total, message)
        if not self._live:
            screen.print_line(f"progress: {text}")
            return
        line = f"{bar(progress, total)} {text}" if total else text
        screen.update_line(line[: width(sys.stderr) - 1])

    def done(self) -> None:
        """Leave a clean line behind."""
        screen.clear_line()


def progress_text(progress: float, total: float | None, message: str | None) -> str:
    """`2/5 message`."""
    counted = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
    return f"{counted} {' '.join(printable(message).split())}" if message else counted


def bar(progress: float, total: float) -> str:
    """How much of it is done, drawn."""
    full = round(_BAR * min(max(progress / total, 0), 1))
    return "█" * full + "░" * (_BAR - full)
