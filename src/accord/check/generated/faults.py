"""What came of generated calls."""

from __future__ import annotations

import msgspec

from accord.check.generated.sequences import Step, Steps, as_json
from accord.check.rule import Broken

_LONGEST = 8_000
"""Characters of calls that still fit on a command line, and before the eyes of a person."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that is broken, and the fewest calls, with the least arguments, by which that was seen; none where it is
    seen by all of them together.
    """

    rule: str
    steps: Steps
    text: str
    evidence: tuple[str, ...] = ()

    @property
    def last(self) -> Step | None:
        """The call that fails; those before it lead there."""
        return self.steps[-1] if self.steps else None

    def broken(self, symptom: str = "") -> Broken:
        """The same as what a case raises."""
        if self.last is None:
            return Broken(self.text, symptom=symptom or self.rule, evidence=self.evidence)
        before = f"after {', '.join(map(str, self.steps[:-1]))}: " if len(self.steps) > 1 else ""
        name = self.last.name if self.last.kind == "tool" else f"{self.last.kind} {self.last.name}"
        again = as_json(self.steps)
        return Broken(
            f"{before}{self.last}: {self.text}",
            symptom=symptom or f"{self.rule}:{name}",
            evidence=self.evidence,
            again=("--sequence", again) if len(again) <= _LONGEST else (),
        )


class Explored(msgspec.Struct, kw_only=True):
    """What came of it."""

    cases: int = 0
    """Generated and run; calls to shrink what failed are not counted."""
    sequences: int = 0
    """Of those, the ones of several calls."""
    calls: int = 0
    """All calls."""
    seconds: float = 0.0
    seed: int = 0
    judged: dict[str, int] = msgspec.field(default_factory=dict)
    """By rule: how many answers were looked at."""
    faults: list[Fault] = msgspec.field(default_factory=list)
    unserved: dict[str, str] = msgspec.field(default_factory=dict)
    """Names of what no arguments could be made for: why."""
    beyond: list[str] = msgspec.field(default_factory=list)
    """Of what there was too much, in words."""
    slow: list[str] = msgspec.field(default_factory=list)
    """Names of what was left alone, since it takes long."""
    stopped: str = ""
    """Why it ended before its plans, if it did."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """What was not tried, in words."""
        found = [f"no arguments could be made for {name!r}: {why}" for name, why in self.unserved.items()] + self.beyond
        if self.slow:
            found.append(f"calls of {', '.join(map(repr, self.slow))} take long; the rest of theirs was not made")
        return (*found, f"generated calls ended early: {self.stopped}") if self.stopped else tuple(found)

    def note(self, *rules: str) -> None:
        """An answer was looked at for these rules."""
        for rule in rules:
            self.judged[rule] = self.judged.get(rule, 0) + 1
