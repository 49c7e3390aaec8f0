"""The progress of a check: a line for each visit or server that ends, and a status line that is updated in place."""

from __future__ import annotations

from collections.abc import Callable

import click
import msgspec

from accord.check.engine.fleet import CheckedServer
from accord.check.engine.report import Outcome, Verdict, Visit, counts
from accord.check.reports.terminal import COLOURS
from accord.check.reports.wording import MARKS, WORDS, place_text, tally
from accord.visible_text import single_line

_BAR = 16


class _VisitProgress(msgspec.Struct):
    """The progress of a visit."""

    total: int
    done: int = 0
    failed: int = 0
    warned: int = 0
    rule: str = ""

    def count(self, outcome: Outcome) -> None:
        """Count a case."""
        self.done += 1
        self.failed += outcome.verdict == "fail"
        self.warned += outcome.verdict == "warn"
        self.rule = outcome.rule


class ProgressDisplay:
    """Displays the progress of a check. `print_line` prints a line; `replace_line` updates the status line, and is None
    where the output is not a terminal.
    """

    def __init__(
        self,
        print_line: Callable[[str], None],
        replace_line: Callable[[str], None] | None = None,
        *,
        width: int = 100,
    ) -> None:
        self._print_line = print_line
        self._replace_line = replace_line
        self._width = width
        self._visits: dict[tuple[str, str], _VisitProgress] = {}

    def visit_began(self, revision: str, transport: str, total: int) -> None:
        """Display a visit that begins, with `total` cases."""
        self._visits[revision, transport] = _VisitProgress(total)
        self._draw()

    def case_done(self, outcome: Outcome) -> None:
        """Count a case of a running visit."""
        running = self._visits.get((outcome.revision, outcome.transport))
        if running is not None:
            running.count(outcome)
            self._draw()

    def visit_ended(self, visit: Visit) -> None:
        """Print the result of a visit."""
        self._visits.pop((visit.revision, visit.transport), None)
        self._print_line(visit_line(visit))
        self._draw()

    def _draw(self) -> None:
        if self._replace_line is not None and self._visits:
            parts = [_progress_line(place_text(*where), running) for where, running in self._visits.items()]
            self._replace_line("  ·  ".join(parts)[: self._width - 1])


class FleetProgressDisplay:
    """Displays the progress of a fleet, with several servers checked concurrently: a line for each that ends."""

    def __init__(
        self,
        total: int,
        print_line: Callable[[str], None],
        replace_line: Callable[[str], None] | None = None,
        *,
        width: int = 100,
    ) -> None:
        self._total = total
        self._print_line = print_line
        self._replace_line = replace_line
        self._width = width
        self._lines: dict[str, str] = {}
        self._done = 0

    def server_began(self, name: str) -> ProgressDisplay:
        """Return the display for a server whose check begins."""
        return ProgressDisplay(_ignore_line, lambda line: self._update_line(name, line), width=self._width)

    def server_ended(self, checked: CheckedServer) -> None:
        """Print the result of a server."""
        self._lines.pop(checked.name, None)
        self._done += 1
        self._print_line(server_line(checked))

    def _update_line(self, name: str, line: str) -> None:
        self._lines[name] = line
        if self._replace_line is not None:
            parts = [f"{self._done}/{self._total}", *(f"{single_line(each)} {at}" for each, at in self._lines.items())]
            self._replace_line("  ·  ".join(parts)[: self._width - 1])


def visit_line(visit: Visit) -> str:
    """Return `✓ 2025-11-25 over http: score 100, 120 rules passed, 40 not applicable; 2.1 s`."""
    bad = _worst(visit)
    mark = click.style(MARKS[bad], fg=COLOURS[bad])
    place = place_text(visit.revision, visit.transport)
    text = f"{place}: score {visit.score}, {tally(visit.counts)}; {visit.seconds:.1f} s"
    return f"{mark} {text}{'; it ended early' if visit.error else ''}"


def server_line(checked: CheckedServer) -> str:
    """Return `✓ weather: score 100, 120 rules passed; 2.1 s`, or the error of the server."""
    report = checked.report
    mark = click.style("✗", fg="red") if checked.failed else click.style("✓", fg="green")
    text = f"score {report.score}, {tally(counts(report.outcomes))}" if report else checked.error
    return f"{mark} {single_line(checked.name)}: {single_line(text)}; {checked.seconds:.1f} s"


def _ignore_line(line: str) -> None:
    """Drop the line of a visit, because each server has up to ten."""


def _worst(visit: Visit) -> Verdict:
    if visit.error or visit.counts.get("fail"):
        return "fail"
    return "warn" if visit.counts.get("warn") else "pass"


def _progress_line(where: str, running: _VisitProgress) -> str:
    full = round(_BAR * min(running.done / running.total, 1)) if running.total else 0
    numbers: tuple[tuple[Verdict, int], ...] = (("fail", running.failed), ("warn", running.warned))
    bad = [f"{number} {WORDS[verdict]}" for verdict, number in numbers if number]
    parts = [f"{where} {'█' * full}{'░' * (_BAR - full)} {running.done}/{running.total}", *bad, running.rule]
    return "  ".join(filter(None, parts))
