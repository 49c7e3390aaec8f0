"""One revision that a client speaks: the runs in it, judged as they end, and what is to be said of it then."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.clients.run import ClientRun
from accord.check.clients.run_evaluator import RunEvaluator
from accord.check.clients.scenario import Scenario
from accord.check.outcomes import OutcomeCollector, Watcher
from accord.check.report import Outcome, Visit, counts, score
from accord.check.rule import Rule


class ClientVisit:
    """A visit while it goes on; it began with the run without surprises."""

    def __init__(self, usual: ClientRun, rules: Sequence[Rule], scenes: Sequence[Scenario], watcher: Watcher) -> None:
        self.ordinary_run: ClientRun = usual
        self.runs: list[ClientRun] = [usual]
        self._order = {rule.id: number for number, rule in enumerate(rules)}
        self._watcher = watcher
        self._collector = OutcomeCollector(usual.revision, usual.transport, watcher)
        self._evaluator = RunEvaluator(rules, scenes, self._collector)
        cases = sum(len(rule.cases_in(usual.revision, usual.transport)) for rule in rules)
        watcher.visit_began(usual.revision, usual.transport, cases)
        self._evaluator.evaluate_run(usual)

    def add(self, run: ClientRun) -> None:
        """One run more."""
        run.ordinary_run = self.ordinary_run
        self.runs.append(run)
        self._evaluator.evaluate_run(run)

    def end(self, cut_off: str) -> Visit:
        """All its runs are over: what is read from them is judged. `cut_off` says why some are missing, if they are."""
        self._evaluator.evaluate_readings(self.runs)
        visit = Visit(
            revision=self.ordinary_run.revision,
            transport=self.ordinary_run.transport,
            score=score(self.outcomes, whole=not cut_off),
            seconds=round(max(run.finished_at for run in self.runs) - min(run.started_at for run in self.runs), 3),
            counts=counts(self.outcomes),
            error="; ".join(filter(None, [cut_off, *self._collector.defects])),
        )
        self._watcher.visit_ended(visit)
        return visit

    @property
    def outcomes(self) -> list[Outcome]:
        """What came of its cases so far, in the order of the rules."""
        return sorted(self._collector.outcomes, key=lambda each: self._order[each.rule])
