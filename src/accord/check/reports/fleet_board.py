"""What both boards of a fleet show: a row for each server, in words and numbers."""

from __future__ import annotations

import msgspec

from accord.check.engine.fleet import Fleet
from accord.check.engine.fleet_history import ServerStatus
from accord.check.reports.wording import counted

_MOST_RUNS = 30
"""Runs of a history that are drawn, the last ones."""


class FleetRow(msgspec.Struct, frozen=True, kw_only=True):
    """One server."""

    name: str
    score: int | None
    """None where it could not be checked."""
    scores: dict[str, dict[str, int]]
    """By revision, and within it by transport."""
    failing: int
    warning: int
    past: list[int]
    """Its scores in earlier runs and in this one, the oldest first; without runs in which it could not be checked."""
    error: str

    def lowest(self, revision: str) -> int | None:
        """Its worst score in a revision; None where it was not visited."""
        return min(self.scores.get(revision, {}).values(), default=None)


def fleet_rows(fleet: Fleet) -> list[FleetRow]:
    """A row for each server, in the order of the fleet."""
    return [_row(name, stands, fleet) for name, stands in fleet.run.servers.items()]


def revisions(board: list[FleetRow]) -> list[str]:
    """Every revision that one of them was visited in, the oldest first."""
    return sorted({revision for row in board for revision in row.scores})


def fleet_summary(fleet: Fleet) -> str:
    """`5 servers: 3 passed, 1 failed, 1 could not be checked`."""
    unchecked = sum(each.report is None for each in fleet.servers)
    failed = sum(each.failed for each in fleet.servers) - unchecked
    passed = len(fleet.servers) - failed - unchecked
    parts = ((passed, "passed"), (failed, "failed"), (unchecked, "could not be checked"))
    counts = ", ".join(f"{number:,} {what}" for number, what in parts if number)
    return f"{counted(len(fleet.servers), 'server')}: {counts}" if counts else "no servers"


def _row(name: str, stands: ServerStatus, fleet: Fleet) -> FleetRow:
    runs = [run.servers[name].score for run in fleet.history if name in run.servers]
    scores: dict[str, dict[str, int]] = {}
    for place, score in stands.scores.items():
        revision, _, transport = place.partition(" ")
        scores.setdefault(revision, {})[transport] = score
    return FleetRow(
        name=name,
        score=stands.score,
        scores=scores,
        failing=len(stands.failing),
        warning=len(stands.warning),
        past=[score for score in [*runs, stands.score] if score is not None][-_MOST_RUNS:],
        error=stands.error,
    )
