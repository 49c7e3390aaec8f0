"""A fleet on a terminal: a row for each server, the broken rules, the changes, and a summary."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import click

from accord.check.engine.fleet import Fleet
from accord.check.reports.fleet_board import FleetRow, fleet_rows, fleet_summary, revisions
from accord.visible_text import single_line, truncate

_STEPS = "▁▂▃▄▅▆▇█"
_LONGEST_NAME = 32
_LONGEST_ERROR = 300
_RUNS = 12
"""The number of runs to draw."""

_COLOURS = {"worse": "red", "better": "green"}


def fleet_lines(fleet: Fleet, *, width: int = 100) -> Iterator[str]:
    """Yield the lines of a fleet's report, for `width` columns."""
    board = fleet_rows(fleet)
    yield from _board(board)
    for row in board:
        if row.score is None:
            yield from _wrapped(f"{_short_name(row.name)} could not be checked: ", row.error, width)
    yield from _section("Broken rules", _by_rule(fleet, width))
    yield from _section("Since the last run", _change_lines(fleet, width))
    yield ""
    total = click.style(fleet_summary(fleet), fg="red" if fleet.failed else "green", bold=True)
    yield f"{total}; {fleet.seconds:.1f} s"


def _board(board: list[FleetRow]) -> Iterator[str]:
    known = revisions(board)
    names = [_short_name(row.name) for row in board]
    left = max(map(len, ["server", *names]))
    heads = ["score", *known, "failed", "warned"]
    yield click.style("  ".join([f"{'server':<{left}}", *heads, "history"]), bold=True)
    for name, row in zip(names, board, strict=True):
        numbers = [row.score, *map(row.lowest, known), row.failing, row.warning]
        cells = [_cell(number, len(head)) for number, head in zip(numbers, heads, strict=True)]
        colour = "red" if row.score is None or row.failing else "yellow" if row.warning else "green"
        cells[0] = click.style(cells[0], fg=colour, bold=True)
        yield "  ".join([f"{name:<{left}}", *cells, _sparkline(row.past)]).rstrip()


def _cell(number: int | None, width: int) -> str:
    return f"{'-' if number is None else number:>{width}}"


def _sparkline(scores: list[int]) -> str:
    return "".join(_STEPS[score * (len(_STEPS) - 1) // 100] for score in scores[-_RUNS:]) if len(scores) > 1 else ""


def _by_rule(fleet: Fleet, width: int) -> Iterator[str]:
    for rule, servers in fleet.by_rule().items():
        yield from _wrapped(f"{len(servers):>4}  {single_line(rule)}  ", ", ".join(map(_short_name, servers)), width)


def _change_lines(fleet: Fleet, width: int) -> Iterator[str]:
    for each in fleet.news:
        kind = click.style(f"{each.kind:>6}", fg=_COLOURS.get(each.kind))
        first, *more = _wrapped("", f"{_short_name(each.server)}: {each.text}", width - 8)
        yield f"{kind}  {first}"
        yield from (f"{'':8}{line}" for line in more)


def _section(title: str, lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines under a heading, or nothing without lines."""
    for number, line in enumerate(lines):
        if not number:
            yield from ("", click.style(title, bold=True))
        yield line


def _wrapped(first: str, text: str, width: int) -> Iterator[str]:
    columns = max(width - len(first), 20)
    text = truncate(single_line(text), _LONGEST_ERROR)
    for number, line in enumerate(textwrap.wrap(text, columns, break_on_hyphens=False) or [""]):
        yield f"{first if not number else ' ' * len(first)}{line}"


def _short_name(name: str) -> str:
    name = single_line(name)
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
