"""One revision that a client speaks: the runs in it, judged as they end, and what is to be said of it then."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.clients.judge import Judge
from accord.check.clients.run import Run
from accord.check.clients.scene import Scene
from accord.check.notes import Notes, Watcher
from accord.check.report import Outcome, Visit, counts, score
from accord.check.rule import Rule


class Visiting:
    """A visit while it goes on; it began with the run without surprises."""

    def __init__(self, usual: Run, rules: Sequence[Rule], scenes: Sequence[Scene], watcher: Watcher) -> None:
        self.usual: Run = usual
        self.runs: list[Run] = [usual]
        self._order = {rule.id: number for number, rule in enumerate(rules)}
        self._watcher = watcher
        self._notes = Notes(usual.revision, usual.transport, watcher)
        self._judge = Judge(rules, scenes, self._notes)
        cases = sum(len(rule.cases_in(usual.revision, usual.transport)) for rule in rules)
        watcher.visit_began(usual.revision, usual.transport, cases)
        self._judge.look(usual)

    def add(self, run: Run) -> None:
        """One run more."""
        run.usual = self.usual
        self.runs.append(run)
        self._judge.look(run)

    def end(self, cut_off: str) -> Visit:
        """All its runs are over: what is read from them is judged. `cut_off` says why some are missing, if they are."""
        self._judge.read(self.runs)
        visit = Visit(
            revision=self.usual.revision,
            transport=self.usual.transport,
            score=score(self.outcomes, whole=not cut_off),
            seconds=round(max(run.finished for run in self.runs) - min(run.began for run in self.runs), 3),
            counts=counts(self.outcomes),
            error="; ".join(filter(None, [cut_off, *self._notes.defects])),
        )
        self._watcher.visit_ended(visit)
        return visit

    @property
    def outcomes(self) -> list[Outcome]:
        """What came of its cases so far, in the order of the rules."""
        return sorted(self._notes.outcomes, key=lambda each: self._order[each.rule])
