"""What came of generated calls."""

from __future__ import annotations

import msgspec

from accord.check.engine.rule import Violation
from accord.check.fuzz.sequences import CallStep, Steps, encode_steps

_LONGEST = 8_000
"""Characters of calls that still fit on a command line, and before the eyes of a person."""


class FuzzFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that is broken, and the fewest calls, with the least arguments, by which that was seen; none where it is
    seen by all of them together.
    """

    rule: str
    steps: Steps
    text: str
    evidence: tuple[str, ...] = ()

    @property
    def last(self) -> CallStep | None:
        """The call that fails; those before it lead there."""
        return self.steps[-1] if self.steps else None

    def violation(self, symptom: str = "") -> Violation:
        """The same as what a case raises."""
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
    """What came of it."""

    cases: int = 0
    """Generated and run; calls to shrink what failed are not counted."""
    sequences: int = 0
    """Of those, the ones of several calls."""
    calls: int = 0
    """All calls."""
    seconds: float = 0.0
    seed: int = 0
    judged_counts: dict[str, int] = msgspec.field(default_factory=dict)
    """By rule: how many answers were looked at."""
    failures: list[FuzzFailure] = msgspec.field(default_factory=list)
    not_generated: dict[str, str] = msgspec.field(default_factory=dict)
    """Names of what no arguments could be made for: why."""
    over_limit: list[str] = msgspec.field(default_factory=list)
    """Of what there was too much, in words."""
    slow_targets: list[str] = msgspec.field(default_factory=list)
    """Names of what was left alone, since it takes long."""
    stop_reason: str = ""
    """Why it ended before its plans, if it did."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """What was not tried, in words."""
        found = [
            f"no arguments could be made for {name!r}: {why}" for name, why in self.not_generated.items()
        ] + self.over_limit
        if self.slow_targets:
            found.append(
                f"calls of {', '.join(map(repr, self.slow_targets))} take long; the rest of theirs was not made"
            )
        return (*found, f"generated calls ended early: {self.stop_reason}") if self.stop_reason else tuple(found)

    def violations(self, rule: str, symptom: str = "") -> list[Violation]:
        """Return the failures of a rule; `symptom` is that of an ordinary rule that detects the same mistake."""
        return [each.violation(symptom) for each in self.failures if each.rule == rule]

    def count_judged(self, *rules: str) -> None:
        """An answer was looked at for these rules."""
        for rule in rules:
            self.judged_counts[rule] = self.judged_counts.get(rule, 0) + 1
