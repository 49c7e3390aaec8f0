"""A module and an object of an existing program become tools.

accord list examples/modules.py
accord call examples/modules.py runs_add kilometres=10 minutes=52
accord call examples/modules.py to_miles kilometres=10
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

import units

from accord import Server, ToolAnnotations


@dataclass(frozen=True)
class Run:
    """One run."""

    kilometres: float
    minutes: float


class Diary:
    """Runs, in the order in which they were added."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._lock = Lock()  # plain methods run in threads, several at once

    @property
    def total(self) -> float:
        """Return the sum of all kilometres. A property is not a tool, and registration does not compute it."""
        return sum(run.kilometres for run in self._runs)

    def add(self, kilometres: float, minutes: float) -> str:
        """Add a run.

        Args:
            kilometres: The distance.
            minutes: The time.
        """
        with self._lock:
            self._runs.append(Run(kilometres, minutes))
            return f"{len(self._runs)} runs, {self.total:g} km"

    async def latest(self, most: int = 5) -> list[Run]:
        """Return the latest runs."""
        return self._runs[-most:]

    def _forget(self) -> None:
        """Delete all runs. Names with an underscore never become tools."""
        self._runs.clear()


server = Server("running", version="1.0.0")
server.add_module(units, exclude=["longest"], annotations=ToolAnnotations(read_only_hint=True))
server.add_object(Diary(), prefix="runs")


if __name__ == "__main__":
    server.run()
