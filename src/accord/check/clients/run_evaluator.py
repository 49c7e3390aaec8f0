"""From the runs of a client in one revision to outcomes, case by case: read, or judged by the run of a scene."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import Scenario
from accord.check.outcomes import OutcomeCollector
from accord.check.rule import Case, Rule


class RunEvaluator:
    """Judges one revision over one transport. `scenarios` are those by whose runs cases may be judged."""

    def __init__(self, rules: Iterable[Rule], scenes: Iterable[Scenario], notes: OutcomeCollector) -> None:
        self._rules = list(rules)
        self._scenario_of = {id(case): scene.name for scene in scenes for _, case in scene.cases}
        self._collector = notes

    def evaluate_run(self, run: ClientRun) -> None:
        """Note what the run of one scene shows."""
        for rule, case in self._cases(run):
            if self._scenario_of.get(id(case)) == run.scene:
                self._evaluate_case(rule, case, run)

    def evaluate_readings(self, runs: Sequence[ClientRun]) -> None:
        """Note what is read from all runs of one revision; there is at least one."""
        for rule, case in self._cases(runs[0]):
            if case.kind == "reading":
                self._evaluate_reading(rule, case, runs)

    def _cases(self, run: ClientRun) -> Iterator[tuple[Rule, Case]]:
        return ((rule, case) for rule in self._rules for case in rule.cases_in(run.revision, run.transport))

    def _evaluate_reading(self, rule: Rule, case: Case, runs: Sequence[ClientRun]) -> None:
        try:
            judged = case.run(runs)
        except Exception as exc:  # the notes know what is a verdict, and what a defect of ours
            self._collector.add_exception(rule, case, exc)
        else:
            if judged:
                self._collector.add(rule, case, "pass")
            else:
                self._collector.add(rule, case, "not-observed", "the client did nothing of the kind")

    def _evaluate_case(self, rule: Rule, case: Case, run: ClientRun) -> None:
        try:
            case.run(run)
        except Exception as exc:  # likewise
            self._collector.add_exception(rule, case, exc, run.evidence())
        else:
            self._collector.add(rule, case, "pass", seconds=run.finished_at - run.started_at)
