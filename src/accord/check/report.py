"""What a check found, as plain frozen data: every form of report is made of it, and so is its JSON.

    Report      the whole: what was checked, the visits, the findings, every outcome
      Visit     one revision over one transport
      Finding   one cause: the rule it breaks, in words, with the bytes and the command that repeats it
      Outcome   one case of one rule in one visit

The score: 100 times what was passed over what was judged. Of each rule counts its worst verdict in any visit; a rule
of level MUST weighs 3, SHOULD 1, MAY nothing. What does not apply, or was not observed, is not judged. It is rounded
down, so 100 says that no MUST and no SHOULD is broken; a visit that ended early has 99 at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

Level: TypeAlias = Literal["must", "should", "may"]
PeerRole: TypeAlias = Literal["server", "client"]
TransportName: TypeAlias = Literal["stdio", "http", "sse", "memory"]

Verdict: TypeAlias = Literal["pass", "fail", "warn", "not-applicable", "not-observed"]
"""`fail` breaks a MUST, `warn` a SHOULD or a MAY. `not-applicable`: not advertised, or not in this revision.
`not-observed`: nothing happened by which it could be judged."""

VERDICTS: tuple[Verdict, ...] = ("fail", "warn", "pass", "not-observed", "not-applicable")
"""The worst first."""

WEIGHTS: dict[Level, int] = {"must": 3, "should": 1, "may": 0}


class _Data(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Frozen, with camelCase names in JSON."""


class Outcome(_Data, frozen=True, kw_only=True):
    """One case of one rule in one visit."""

    rule: str
    """The id of the rule: `tools/unknown-name`."""
    case: str
    """What was tried, in words."""
    verdict: Verdict
    level: Level
    revision: str
    transport: TransportName
    text: str = ""
    """What was wrong, or why it was not judged."""
    symptom: str = ""
    """What failures with one cause share; the rule's id unless the case knows better."""
    cause: str = ""
    """The likely cause, in words."""
    evidence: tuple[str, ...] = ()
    """The last messages both ways, as lines of a transcript: `→ {...}` sent by the checker, `← {...}` by the peer."""
    again: tuple[str, ...] = ()
    """Options of the command line that repeat just this, where the case knows better than its rule."""
    during: tuple[str, ...] | None = None
    """Of what was only read: in the course of which cases it was said, in words; None where that is not known."""
    seconds: float = 0.0


class Place(_Data, frozen=True, kw_only=True):
    """Where a finding was seen."""

    revision: str
    transport: TransportName


class Finding(_Data, frozen=True, kw_only=True):
    """Failures with one cause."""

    rule: str
    """The rule that says it most plainly."""
    verdict: Literal["fail", "warn"]
    level: Level
    says: str
    """What the rule wants, in one sentence."""
    sources: tuple[str, ...]
    """URLs of the places in the specification."""
    text: str
    """What was seen instead."""
    symptom: str = ""
    """What the failures share, and other failures do not: a baseline knows them by it."""
    cause: str
    """The likely cause, in words; may be empty."""
    places: tuple[Place, ...]
    also: tuple[str, ...] = ()
    """Other rules that fail for the same cause."""
    cases: tuple[str, ...] = ()
    """The cases that failed, in words."""
    evidence: tuple[str, ...] = ()
    repeat: str = ""
    """A command line that repeats just this."""
    known: bool = False
    """Whether the baseline has it."""


class Visit(_Data, frozen=True, kw_only=True):
    """One revision over one transport."""

    revision: str
    transport: TransportName
    score: int
    seconds: float
    counts: dict[Verdict, int]
    """Rules by their worst verdict in this visit."""
    error: str = ""
    """Why it ended early, if it did."""
    left_out: tuple[str, ...] = ()
    """What was not tried since it would take too long, or nobody knows how: in words. Nothing is judged by it."""


class Report(_Data, frozen=True, kw_only=True):
    """One peer, checked."""

    role: PeerRole
    target: str
    """What was checked, as it was given (without secrets)."""
    name: str
    """What the peer calls itself, with its version; empty if it did not say."""
    version: str
    """The version of accord that checked."""
    started: str
    """When, in UTC: `2026-11-21T12:00:00Z`."""
    seconds: float
    score: int
    visits: tuple[Visit, ...]
    findings: tuple[Finding, ...]
    outcomes: tuple[Outcome, ...]
    seed: int | None = None
    """Of the generated cases, if there were any."""
    generated: int = 0
    """How many cases were generated and run."""
    stale: tuple[str, ...] = ()
    """Entries of the baseline that were not found any more."""

    @property
    def failed(self) -> bool:
        """Whether anything but warnings and known findings was found, a visit ended before all was tried, or the
        baseline has stale entries.
        """
        found = any(each.verdict == "fail" and not each.known for each in self.findings)
        return found or bool(self.stale) or any(visit.error for visit in self.visits)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict over several cases. Raises `ValueError` for none."""
    return min(verdicts, key=VERDICTS.index)


def by_rule(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """The outcomes of each rule, in the order in which the rules came."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.rule, []).append(outcome)
    return found


def counts(outcomes: Iterable[Outcome]) -> dict[Verdict, int]:
    """How many rules have which worst verdict."""
    found: dict[Verdict, int] = dict.fromkeys(VERDICTS, 0)
    for each in by_rule(outcomes).values():
        found[worst(one.verdict for one in each)] += 1
    return found


def score(outcomes: Sequence[Outcome], *, whole: bool = True) -> int:
    """From 0 to 100, as this module says; 0 where nothing was judged, and at most 99 where not all was tried."""
    passed = judged = 0
    for each in by_rule(outcomes).values():
        verdict = worst(one.verdict for one in each)
        weight = WEIGHTS[each[0].level]
        if verdict in ("pass", "fail", "warn"):
            judged += weight
            passed += weight if verdict == "pass" else 0
    return min(100 * passed // judged if judged else 0, 100 if whole else 99)
