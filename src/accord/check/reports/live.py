"""A check while it runs: a line for each visit or server that ends, and one that moves, with what runs now."""

from __future__ import annotations

from collections.abc import Callable

import click
import msgspec

from accord.check.fleet import Checked
from accord.check.report import Outcome, Verdict, Visit, counts
from accord.check.reports.terminal import COLOURS
from accord.check.reports.visible import in_one_line
from accord.check.reports.wording import MARKS, WORDS, place, tally

_BAR = 16


class _Running(msgspec.Struct):
    """How far a visit is."""

    total: int
    done: int = 0
    failed: int = 0
    warned: int = 0
    rule: str = ""

    def count(self, outcome: Outcome) -> None:
        """One case more."""
        self.done += 1
        self.failed += outcome.verdict == "fail"
        self.warned += outcome.verdict == "warn"
        self.rule = outcome.rule


class Live:
    """Is told how a check goes on. `say` shows a line that stays; `move` one that takes the place of the one before,
    and is None where no line can: then only what stays is shown.
    """

    def __init__(
        self, say: Callable[[str], None], move: Callable[[str], None] | None = None, *, width: int = 100
    ) -> None:
        self._say = say
        self._move = move
        self._width = width
        self._running: dict[tuple[str, str], _Running] = {}

    def visit_began(self, revision: str, transport: str, total: int) -> None:
        """A visit begins, with so many cases."""
        self._running[revision, transport] = _Running(total)
        self._draw()

    def case_done(self, outcome: Outcome) -> None:
        """A case was tried, in one of the visits that run."""
        running = self._running.get((outcome.revision, outcome.transport))
        if running is not None:
            running.count(outcome)
            self._draw()

    def visit_ended(self, visit: Visit) -> None:
        """A visit is over."""
        self._running.pop((visit.revision, visit.transport), None)
        self._say(ended(visit))
        self._draw()

    def _draw(self) -> None:
        if self._move is not None and self._running:
            parts = [_line(place(*where), running) for where, running in self._running.items()]
            self._move("  ·  ".join(parts)[: self._width - 1])


class FleetLive:
    """The same for many servers, several of which are under way at once: a line for each that ends."""

    def __init__(
        self, total: int, say: Callable[[str], None], move: Callable[[str], None] | None = None, *, width: int = 100
    ) -> None:
        self._total = total
        self._say = say
        self._move = move
        self._width = width
        self._moving: dict[str, str] = {}
        self._done = 0

    def server_began(self, name: str) -> Live:
        """A server is checked from now on."""
        return Live(_nothing, lambda line: self._moved(name, line), width=self._width)

    def server_ended(self, checked: Checked) -> None:
        """A server is done with."""
        self._moving.pop(checked.name, None)
        self._done += 1
        self._say(server_ended(checked))

    def _moved(self, name: str, line: str) -> None:
        self._moving[name] = line
        if self._move is not None:
            parts = [f"{self._done}/{self._total}", *(f"{in_one_line(each)} {at}" for each, at in self._moving.items())]
            self._move("  ·  ".join(parts)[: self._width - 1])


def ended(visit: Visit) -> str:
    """`✓ 2025-11-25 over http: score 100, 120 rules passed, 40 not applicable; 2.1 s`."""
    bad = _worst(visit)
    mark = click.style(MARKS[bad], fg=COLOURS[bad])
    text = (
        f"{place(visit.revision, visit.transport)}: score {visit.score}, {tally(visit.counts)}; {visit.seconds:.1f} s"
    )
    return f"{mark} {text}{'; it ended early' if visit.error else ''}"


def server_ended(checked: Checked) -> str:
    """`✓ weather: score 100, 120 rules passed; 2.1 s`, or why it could not be checked."""
    report = checked.report
    mark = click.style("✗", fg="red") if checked.failed else click.style("✓", fg="green")
    told = f"score {report.score}, {tally(counts(report.outcomes))}" if report else checked.error
    return f"{mark} {in_one_line(checked.name)}: {in_one_line(told)}; {checked.seconds:.1f} s"


def _nothing(line: str) -> None:
    """Lines of visits do not stay: there are ten for each server."""


def _worst(visit: Visit) -> Verdict:
    if visit.error or visit.counts.get("fail"):
        return "fail"
    return "warn" if visit.counts.get("warn") else "pass"


def _line(where: str, running: _Running) -> str:
    full = round(_BAR * min(running.done / running.total, 1)) if running.total else 0
    numbers: tuple[tuple[Verdict, int], ...] = (("fail", running.failed), ("warn", running.warned))
    bad = [f"{number} {WORDS[verdict]}" for verdict, number in numbers if number]
    parts = [f"{where} {'█' * full}{'░' * (_BAR - full)} {running.done}/{running.total}", *bad, running.rule]
    return "  ".join(filter(None, parts))
