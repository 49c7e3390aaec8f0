"""A report on a terminal: the findings, a table with a row per visit, and a summary.

Lines are styled; `click.echo` removes the styles if the output is not a terminal.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import click

from accord.check.engine.report import Finding, Report, Verdict, Visit
from accord.check.reports.wording import (
    MARKS,
    WORDS,
    headline,
    places_text,
    recorded_lines,
    remarks,
    summary,
    worst_first,
)
from accord.visible_text import single_line, truncate, visible

COLOURS: dict[Verdict, str] = {"fail": "red", "warn": "yellow", "pass": "green"}
_BOARD: tuple[Verdict, ...] = ("pass", "fail", "warn", "not-observed", "not-applicable")
_INDENT = "  "
_LABEL = 8
"""The width of the labels of a finding, in columns."""

_MAX_LENGTH = 10_000
"""The maximum length in characters of a text that is wrapped, because wrapping a word of megabytes takes minutes."""

_LEAST = 40
"""The minimum width in columns."""


def report_lines(report: Report, *, width: int = 100, verbose: bool = False) -> Iterator[str]:
    """Yield the lines of a report, for `width` columns; with `verbose`, also known findings and complete evidence."""
    width = max(width, _LEAST)
    shown = [each for each in worst_first(report.findings) if verbose or not each.known]
    owner = None
    for finding in shown:
        if report.sdk and finding.sdk != owner:
            owner = finding.sdk
            yield click.style(_owner_heading(owner), bold=True)
        yield from _finding(finding, report, width, verbose)
        yield ""
    yield from board(report.visits)
    for remark in remarks(report):
        yield from _labelled(remark.mark, remark.text, width)
    yield ""
    yield total(report)


def _owner_heading(sdk: str) -> str:
    return f"In {sdk}, the SDK: upgrade it, or report the bug to its maintainers" if sdk else "In your server"


def total(report: Report) -> str:
    """Return the summary: `not conformant: 2 MUSTs broken; score 81: 210 rules passed, 3 failed; 12.4 s`."""
    colour = "red" if report.musts_broken else "yellow" if not report.whole else "green"
    words = click.style(headline(report), fg=colour, bold=True)
    return f"{words}; {score(report.score)}: {summary(report)}; {report.seconds:.1f} s"


def score(number: int) -> str:
    """Return the score, styled in its colour."""
    colour = "green" if number == 100 else "yellow" if number >= 80 else "red"
    return click.style(f"score {number}", fg=colour, bold=True)


def board(visits: tuple[Visit, ...]) -> Iterator[str]:
    """Yield the table of the visits, with its heading."""
    heads = ("revision", "transport", "score", *(WORDS[each] for each in _BOARD), "seconds")
    yield click.style(_row(heads), bold=True)
    for visit in visits:
        numbers = [visit.counts.get(each, 0) for each in _BOARD]
        cells = _cells((visit.revision, visit.transport, f"{visit.score}", *map(str, numbers), f"{visit.seconds:.1f}"))
        for column, (verdict, number) in enumerate(zip(_BOARD, numbers, strict=True), start=3):
            if number and verdict in ("fail", "warn"):
                cells[column] = click.style(cells[column], fg=COLOURS[verdict], bold=True)
        yield "  ".join(cells)


def _row(cells: tuple[str, ...]) -> str:
    return "  ".join(_cells(cells))


def _cells(cells: tuple[str, ...]) -> list[str]:
    widths = (10, 9, 5, *(len(WORDS[each]) for each in _BOARD), 7)
    return [
        each.ljust(width) if column < 2 else each.rjust(width)
        for column, (each, width) in enumerate(zip(cells, widths, strict=True))
    ]


def _finding(finding: Finding, report: Report, width: int, verbose: bool) -> Iterator[str]:
    mark = click.style(f"{MARKS[finding.verdict]} {single_line(finding.rule)}", fg=COLOURS[finding.verdict], bold=True)
    known = ", known" if finding.known else ""
    yield f"{mark}  {finding.level.upper()}{known}  {places_text(finding.places, report.visits)}"
    yield from _labelled("seen", finding.text, width)
    yield from _labelled("wanted", finding.says, width)
    yield from _labelled("cause", finding.cause, width)
    yield from _labelled("also", ", ".join(finding.also), width)
    if verbose:
        yield from _labelled("cases", "; ".join(finding.cases), width)
    for line in finding.evidence:
        yield _evidence(line, None if verbose else width)
    if finding.entries:
        yield from _labelled("file", f"{recorded_lines(finding.entries)} of the session file", width)
    for url in finding.sources:
        yield _unwrapped("see", url)
    if finding.repeat:
        yield _unwrapped("repeat", finding.repeat)


def _labelled(label: str, text: str, width: int) -> Iterator[str]:
    """Yield the lines of a wrapped text with its label; none for an empty text."""
    first = f"{_INDENT}{label:<{_LABEL}}"
    lines = textwrap.wrap(single_line(truncate(text, _MAX_LENGTH)), width - len(first), break_on_hyphens=False)
    for number, line in enumerate(lines):
        yield f"{first if not number else ' ' * len(first)}{line}"


def _unwrapped(label: str, text: str) -> str:
    """Return a line that is never wrapped, so that it can be copied."""
    return f"{_INDENT}{label:<{_LABEL}}{_escape_newlines(text)}"


def _evidence(line: str, width: int | None) -> str:
    text = _escape_newlines(line)
    columns = None if width is None else width - len(_INDENT)
    if columns is not None and len(text) > columns:
        size = f" … ({len(line):,} characters)"
        text = f"{text[: columns - len(size)]}{size}"
    return _INDENT + (click.style(text, dim=True) if text.startswith("#") else text)


def _escape_newlines(text: str) -> str:
    """Return the text with hidden characters and newlines escaped."""
    return visible(text).replace("\n", "\\n")
