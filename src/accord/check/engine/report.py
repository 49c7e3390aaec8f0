"""What a check found, as plain frozen data: every form of report is made of it, and so is its JSON.

    Report      the whole: what was checked, the visits, the findings, every outcome
      Visit     one revision over one transport
      Finding   one cause: the rule it breaks, in words, with the bytes and the command that repeats it
      Outcome   one case of one rule in one visit

The score begins at 100. Each finding multiplies it: a broken MUST by 0.9, a SHOULD by 0.98, a MAY by 0.995. It is
rounded down, so 100 says that nothing was found. Rules that pass do not raise it. Rules that fail for one cause count
once, by the strictest of them. Where not everything could be tried the score is 99 at most; where nothing was judged it
is 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

Level: TypeAlias = Literal["must", "should", "may"]
FailOn: TypeAlias = Literal["any", "mine"]
"""Which broken MUSTs fail a check: any, or those that are not known faults of the SDK."""
PeerRole: TypeAlias = Literal["server", "client"]
TransportName: TypeAlias = Literal["stdio", "http", "sse", "memory"]

Verdict: TypeAlias = Literal["pass", "fail", "warn", "not-applicable", "not-observed"]
"""`fail` breaks a MUST, `warn` a SHOULD or a MAY. `not-applicable`: not advertised, or not in this revision.
`not-observed`: nothing happened by which it could be judged."""

VERDICTS: tuple[Verdict, ...] = ("fail", "warn", "pass", "not-observed", "not-applicable")
"""The worst first."""

FACTORS: dict[Level, float] = {"must": 0.9, "should": 0.98, "may": 0.995}
"""By level: what a finding multiplies the score by."""

_ROUNDING = 1e-9
"""0.9 * 100 is 90."""


class _ReportData(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Frozen, with camelCase names in JSON."""


class Outcome(_ReportData, frozen=True, kw_only=True):
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


class Place(_ReportData, frozen=True, kw_only=True):
    """Where a finding was seen."""

    revision: str
    transport: TransportName


class Finding(_ReportData, frozen=True, kw_only=True):
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
    sdk: str = ""
    """The SDK that the server is made with, where this is a known fault of it: `mcp 1.30.0`."""


class Visit(_ReportData, frozen=True, kw_only=True):
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
    unconfirmed: tuple[str, ...] = ()
    """Cases that failed once, and not when they were tried again alone: in words. Nothing is judged by it."""


class UntestedRevision(_ReportData, frozen=True, kw_only=True):
    """A revision in which nothing was tried."""

    revision: str
    transport: TransportName
    text: str
    """Why, in words."""


class Report(_ReportData, frozen=True, kw_only=True):
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
    untested: tuple[UntestedRevision, ...] = ()
    """Revisions that the peer may speak: it could not be opened in them, twice."""
    unspoken: tuple[UntestedRevision, ...] = ()
    """Revisions that it does not speak."""
    full_adds: tuple[str, ...] = ()
    """What a full check would try as well, in words."""
    sdk: str = ""
    """What the server is made with, as far as its wording tells: `mcp 1.30.0`."""
    interrupted: bool = False
    """Whether it was ended before it was done."""

    @property
    def failed(self) -> bool:
        """Whether anything but warnings and known findings was found, something was not tried that should have been, or
        the baseline has stale entries.
        """
        return self.fails_on("any")

    def fails_on(self, which: FailOn) -> bool:
        """Whether the check fails: for any broken MUST, or only for those that are not known faults of the SDK."""
        found = any(
            each.verdict == "fail" and not each.known and (which == "any" or not each.sdk) for each in self.findings
        )
        return found or bool(self.stale) or not self.whole

    @property
    def whole(self) -> bool:
        """Whether the check was complete: no visit ended early, and no revision is untested."""
        return not (self.untested or self.interrupted or any(visit.error for visit in self.visits))

    @property
    def musts_broken(self) -> int:
        """Findings that break a MUST, known ones included."""
        return sum(each.verdict == "fail" for each in self.findings)


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
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
        found[worst_verdict(one.verdict for one in each)] += 1
    return found


def score(outcomes: Sequence[Outcome], *, whole: bool = True) -> int:
    """From 0 to 100, as this module says; at most 99 where not everything was tried."""
    if not any(each.verdict in ("pass", "fail", "warn") for each in outcomes):
        return 0
    factors: dict[str, float] = {}
    for each in outcomes:
        if each.verdict in ("fail", "warn"):
            factors[each.symptom] = min(factors.get(each.symptom, 1.0), FACTORS[each.level])
    found = 100 * math.prod(sorted(factors.values()))
    return min(math.floor(found + _ROUNDING), 100 if whole else 99)
