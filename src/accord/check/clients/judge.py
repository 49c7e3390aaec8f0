"""From the runs of a client in one revision to outcomes, case by case: read, or judged by the run of a scene."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from accord.check.clients.run import Run
from accord.check.clients.scene import Scene
from accord.check.report import Outcome, TransportName
from accord.check.rule import Broken, Case, NotApplicable, NotObserved, Rule
from accord.check.notes import bad


class Judge:
    """Judges one revision over one transport. `scenes` are those by whose runs cases may be judged."""

    def __init__(self, rules: Iterable[Rule], scenes: Iterable[Scene], revision: str, transport: TransportName) -> None:
        self._rules = list(rules)
        self._scene_of = {id(case): scene.name for scene in scenes for _, case in scene.judgements}
        self._revision = revision
        self._transport: TransportName = transport

    def outcomes(self, runs: Mapping[str, Run]) -> Iterator[Outcome]:
        """What is to be said of the runs, by the names of their scenes."""
        for rule in self._rules:
            for case in rule.cases_in(self._revision, self._transport):
                scene = self._scene_of.get(id(case))
                if case.kind == "reading":
                    yield self._judged(rule, case, [*runs.values()])
                elif scene is not None and scene in runs:
                    yield self._judged(rule, case, runs[scene])

    def _judged(self, rule: Rule, case: Case, seen: Run | Sequence[Run]) -> Outcome:
        try:
            judged = case.run(seen)
        except NotApplicable as exc:
            return self._outcome(rule, case, "not-applicable", text=str(exc))
        except NotObserved as exc:
            return self._outcome(rule, case, "not-observed", text=str(exc))
        except Broken as exc:
            evidence = exc.evidence or (seen.evidence() if isinstance(seen, Run) else ())
            symptom, cause = exc.symptom or rule.id, exc.cause or rule.cause
            return self._outcome(rule, case, bad(rule), text=str(exc), symptom=symptom, cause=cause, evidence=evidence)
        if case.kind == "reading" and not judged:
            return self._outcome(rule, case, "not-observed", text="the client did nothing of the kind")
        return self._outcome(rule, case, "pass")

    def _outcome(self, rule: Rule, case: Case, verdict: Any, **more: Any) -> Outcome:
        return Outcome(
            rule=rule.id,
            case=case.says,
            verdict=verdict,
            level=rule.level,
            revision=self._revision,
            transport=self._transport,
            **{"symptom": rule.id, **more},
        )
