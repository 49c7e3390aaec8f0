"""The runs of a client in one revision: outcomes of cases that judge one scenario, or read all runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import Scenario
from accord.check.engine.outcomes import OutcomeCollector, Watcher
from accord.check.engine.report import Outcome, Visit, counts, score
from accord.check.engine.rule import Case, Rule


class RunEvaluator:
    """Judges one revision over one transport. `scenarios` are those whose runs cases may judge."""

    def __init__(self, rules: Iterable[Rule], scenarios: Iterable[Scenario], notes: OutcomeCollector) -> None:
        self._rules = list(rules)
        self._scenario_of = {id(case): scenario.name for scenario in scenarios for _, case in scenario.cases}
        self._collector = notes

    def evaluate_run(self, run: ClientRun) -> None:
        """Judge the run of one scenario."""
        for rule, case in self._cases(run):
            if self._scenario_of.get(id(case)) == run.scenario:
                self._evaluate_case(rule, case, run)

    def skip_scenario(self, scenario: Scenario, usual: ClientRun, reason: str) -> None:
        """Record that a scenario does not apply to the client."""
        for rule, case in self._cases(usual):
            if self._scenario_of.get(id(case)) == scenario.name:
                self._collector.add(rule, case, "not-applicable", reason)

    def evaluate_readings(self, runs: Sequence[ClientRun]) -> None:
        """Judge all runs of a revision; there is at least one."""
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


class ClientVisit:
    """A visit in progress; it begins with the ordinary run."""

    def __init__(
        self, usual: ClientRun, rules: Sequence[Rule], scenarios: Sequence[Scenario], watcher: Watcher
    ) -> None:
        self.ordinary_run: ClientRun = usual
        self.runs: list[ClientRun] = [usual]
        self._order = {rule.id: number for number, rule in enumerate(rules)}
        self._watcher = watcher
        self._collector = OutcomeCollector(usual.revision, usual.transport, watcher)
        self._evaluator = RunEvaluator(rules, scenarios, self._collector)
        cases = sum(len(rule.cases_in(usual.revision, usual.transport)) for rule in rules)
        watcher.visit_began(usual.revision, usual.transport, cases)
        self._evaluator.evaluate_run(usual)

    def add(self, run: ClientRun) -> None:
        """Add a run."""
        run.ordinary_run = self.ordinary_run
        self.runs.append(run)
        self._evaluator.evaluate_run(run)

    def skip(self, scenario: Scenario, reason: str) -> None:
        """Record that a scenario does not apply to the client."""
        self._evaluator.skip_scenario(scenario, self.ordinary_run, reason)

    def end(self, cut_off: str) -> Visit:
        """Judge what is read from all runs, and return the visit. `cut_off` says why runs are missing."""
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
        """The outcomes so far, in the order of the rules."""
        return sorted(self._collector.outcomes, key=lambda each: self._order[each.rule])
