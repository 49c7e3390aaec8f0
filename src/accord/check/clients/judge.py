"""From the runs of a client in one revision to outcomes, case by case: read, or judged by the run of a scene."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from accord.check.clients.run import Run
from accord.check.clients.scene import Scene
from accord.check.notes import Notes
from accord.check.rule import Case, Rule


class Judge:
    """Judges one revision over one transport. `scenes` are those by whose runs cases may be judged."""

    def __init__(self, rules: Iterable[Rule], scenes: Iterable[Scene], notes: Notes) -> None:
        self._rules = list(rules)
        self._scene_of = {id(case): scene.name for scene in scenes for _, case in scene.judgements}
        self._notes = notes

    def look(self, run: Run) -> None:
        """Note what the run of one scene shows."""
        for rule, case in self._cases(run):
            if self._scene_of.get(id(case)) == run.scene:
                self._look(rule, case, run)

    def read(self, runs: Sequence[Run]) -> None:
        """Note what is read from all runs of one revision; there is at least one."""
        for rule, case in self._cases(runs[0]):
            if case.kind == "reading":
                self._read(rule, case, runs)

    def _cases(self, run: Run) -> Iterator[tuple[Rule, Case]]:
        return ((rule, case) for rule in self._rules for case in rule.cases_in(run.revision, run.transport))

    def _read(self, rule: Rule, case: Case, runs: Sequence[Run]) -> None:
        try:
            judged = case.run(runs)
        except Exception as exc:  # the notes know what is a verdict, and what a defect of ours
            self._notes.judge(rule, case, exc)
        else:
            if judged:
                self._notes.add(rule, case, "pass")
            else:
                self._notes.add(rule, case, "not-observed", "the client did nothing of the kind")

    def _look(self, rule: Rule, case: Case, run: Run) -> None:
        try:
            case.run(run)
        except Exception as exc:  # likewise
            self._notes.judge(rule, case, exc, run.evidence())
        else:
            self._notes.add(rule, case, "pass", seconds=run.finished - run.began)
