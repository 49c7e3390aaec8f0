"""The results of generated calls."""

from __future__ import annotations

import msgspec

from accord.check.engine.rule import Violation
from accord.check.fuzz.sequences import CallStep, Steps, encode_steps

_LONGEST = 8_000
"""The maximum length in characters of calls that a command line repeats."""


class FuzzFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A broken rule, with the fewest and smallest calls that show it; without calls if only all of them show it."""

    rule: str
    steps: Steps
    text: str
    evidence: tuple[str, ...] = ()

    @property
    def last(self) -> CallStep | None:
        """Return the call that fails; the calls before it prepare it."""
        return self.steps[-1] if self.steps else None

    def violation(self, symptom: str = "") -> Violation:
        """Return the failure as the violation that a case raises."""
        if self.last is None:
            return Violation(self.text, symptom=symptom or self.rule, evidence=self.evidence)
        before = f"after {', '.join(map(str, self.steps[:-1]))}: " if len(self.steps) > 1 else ""
        name = self.last.name if self.last.kind == "tool" else f"{self.last.kind} {self.last.name}"
        again = encode_steps(self.steps)
        return Violation(
            f"{before}{self.last}: {self.text}",
            symptom=symptom or f"{self.rule}:{name}",
            evidence=self.evidence,
            again=("--sequence", again) if len(again) <= _LONGEST else (),
        )


class FuzzResult(msgspec.Struct, kw_only=True):
    """The result of a run."""

    cases: int = 0
    """The number of generated cases, without the calls that reduce failures."""
    sequences: int = 0
    """The number of cases with several calls."""
    calls: int = 0
    """The number of all calls."""
    seconds: float = 0.0
    seed: int = 0
    judged_counts: dict[str, int] = msgspec.field(default_factory=dict)
    """The number of checked responses, by rule."""
    failures: list[FuzzFailure] = msgspec.field(default_factory=list)
    not_generated: dict[str, str] = msgspec.field(default_factory=dict)
    """The reason why no arguments could be generated, by the name of the target."""
    over_limit: list[str] = msgspec.field(default_factory=list)
    """The limits that left something out, a sentence each."""
    slow_targets: list[str] = msgspec.field(default_factory=list)
    """The names of targets that are not called any more because their calls are slow."""
    stop_reason: str = ""
    """Why the run ended before its plans, if it did."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return what was not tried, a sentence each."""
        found = [
            f"no arguments could be generated for {name!r}: {why}" for name, why in self.not_generated.items()
        ] + self.over_limit
        if self.slow_targets:
            found.append(f"calls of {', '.join(map(repr, self.slow_targets))} are slow; the rest of them was skipped")
        return (*found, f"generated calls ended early: {self.stop_reason}") if self.stop_reason else tuple(found)

    def violations(self, rule: str, symptom: str = "") -> list[Violation]:
        """Return the failures of a rule; `symptom` is that of an ordinary rule that detects the same mistake."""
        return [each.violation(symptom) for each in self.failures if each.rule == rule]

    def count_judged(self, *rules: str) -> None:
        """Count one checked response for each of these rules."""
        for rule in rules:
            self.judged_counts[rule] = self.judged_counts.get(rule, 0) + 1
