"""The data of a fleet's table: a row for each server, for the terminal and the HTML page."""

from __future__ import annotations

import msgspec

from accord.check.engine.fleet import Fleet
from accord.check.engine.fleet_history import ServerStatus
from accord.check.reports.wording import counted

_MOST_RUNS = 30
"""The number of runs of a history to draw."""


class FleetRow(msgspec.Struct, frozen=True, kw_only=True):
    """The row of one server."""

    name: str
    score: int | None
    """The score, or None if the server could not be checked."""
    scores: dict[str, dict[str, int]]
    """The scores by revision and transport."""
    failing: int
    warning: int
    past: list[int]
    """The scores of earlier runs and of this one, the oldest first, without runs in which the check failed."""
    error: str

    def lowest(self, revision: str) -> int | None:
        """Return the lowest score in a revision, or None if it was not checked in it."""
        return min(self.scores.get(revision, {}).values(), default=None)


def fleet_rows(fleet: Fleet) -> list[FleetRow]:
    """Return a row for each server, in the order of the fleet."""
    return [_row(name, status, fleet) for name, status in fleet.run.servers.items()]


def revisions(board: list[FleetRow]) -> list[str]:
    """Return every revision in which a server was checked, the oldest first."""
    return sorted({revision for row in board for revision in row.scores})


def fleet_summary(fleet: Fleet) -> str:
    """Return `5 servers: 3 passed, 1 failed, 1 could not be checked`."""
    unchecked = sum(each.report is None for each in fleet.servers)
    failed = sum(each.failed for each in fleet.servers) - unchecked
    passed = len(fleet.servers) - failed - unchecked
    parts = ((passed, "passed"), (failed, "failed"), (unchecked, "could not be checked"))
    counts = ", ".join(f"{number:,} {what}" for number, what in parts if number)
    return f"{counted(len(fleet.servers), 'server')}: {counts}" if counts else "no servers"


def _row(name: str, status: ServerStatus, fleet: Fleet) -> FleetRow:
    runs = [run.servers[name].score for run in fleet.history if name in run.servers]
    scores: dict[str, dict[str, int]] = {}
    for place, score in status.scores.items():
        revision, _, transport = place.partition(" ")
        scores.setdefault(revision, {})[transport] = score
    return FleetRow(
        name=name,
        score=status.score,
        scores=scores,
        failing=len(status.failing),
        warning=len(status.warning),
        past=[score for score in [*runs, status.score] if score is not None][-_MOST_RUNS:],
        error=status.error,
    )
