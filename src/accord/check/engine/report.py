"""The results of a check, as plain frozen data, from which all formats of reports are made.

    Report      the whole check: the target, the visits, the findings, every outcome
      Visit     one revision over one transport
      Finding   one cause: the rule that it breaks, the evidence, the command that repeats it
      Outcome   one case of one rule in one visit

The score begins at 100. Each finding multiplies it: a broken MUST by 0.9, a SHOULD by 0.98, a MAY by 0.995. It is
rounded down, so 100 means no findings. Rules that pass do not raise it. Rules that fail for one cause count once, at
the level of the strictest. The score is at most 99 if the check was incomplete, and 0 if nothing was judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

Level: TypeAlias = Literal["must", "should", "may"]
FailOn: TypeAlias = Literal["any", "mine"]
"""The broken MUSTs that fail a check: any, or only those that are not known bugs of the SDK."""
PeerRole: TypeAlias = Literal["server", "client", "authorization server"]
TransportName: TypeAlias = Literal["stdio", "http", "sse", "memory"]

Verdict: TypeAlias = Literal["pass", "fail", "warn", "not-applicable", "not-observed"]
"""`fail` breaks a MUST, `warn` a SHOULD or a MAY. `not-applicable`: not advertised, or not in this revision.
`not-observed`: the messages did not allow a verdict."""

VERDICTS: tuple[Verdict, ...] = ("fail", "warn", "pass", "not-observed", "not-applicable")
"""The verdicts, the worst first."""

FACTORS: dict[Level, float] = {"must": 0.9, "should": 0.98, "may": 0.995}
"""The factor of a finding in the score, by level."""

_ROUNDING = 1e-9
"""Tolerance for floating-point errors, so that 0.9 * 100 is 90."""


class _ReportData(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of the report's types: frozen, with camelCase names in JSON."""


class Outcome(_ReportData, frozen=True, kw_only=True):
    """One case of one rule in one visit."""

    rule: str
    """The id of the rule: `tools/unknown-name`."""
    case: str
    """A description of the case."""
    verdict: Verdict
    level: Level
    revision: str
    transport: TransportName
    text: str = ""
    """The failure, or the reason why there is no verdict."""
    symptom: str = ""
    """The identifier that failures with one cause share; by default the id of the rule."""
    cause: str = ""
    """The likely cause."""
    evidence: tuple[str, ...] = ()
    """The last messages in both directions, as lines of a transcript: `→ {...}` from the checker, `← {...}` from the
    peer. Long ones are shortened."""
    entries: tuple[int, ...] = ()
    """The numbers of the entries of the session file that are the evidence, whole, from 0; none if the check was not
    recorded."""
    again: tuple[str, ...] = ()
    """The command line options that repeat the case, if they differ from those of its rule."""
    during: tuple[str, ...] | None = None
    """For a rule that only reads messages: the cases that the messages belong to; None if unknown."""
    seconds: float = 0.0


class Place(_ReportData, frozen=True, kw_only=True):
    """The revision and transport of a finding."""

    revision: str
    transport: TransportName


class Finding(_ReportData, frozen=True, kw_only=True):
    """Failures with one cause."""

    rule: str
    """The most specific of the broken rules."""
    verdict: Literal["fail", "warn"]
    level: Level
    says: str
    """The requirement of the rule, in one sentence."""
    sources: tuple[str, ...]
    """URLs of the sections of the specification."""
    text: str
    """The observed behavior."""
    symptom: str = ""
    """The identifier of the failures, by which a baseline recognizes them."""
    cause: str
    """The likely cause; may be empty."""
    places: tuple[Place, ...]
    also: tuple[str, ...] = ()
    """Other rules that fail for the same cause."""
    cases: tuple[str, ...] = ()
    """Descriptions of the cases that failed."""
    evidence: tuple[str, ...] = ()
    entries: tuple[int, ...] = ()
    """See `Outcome.entries`."""
    repeat: str = ""
    """The command line that repeats the finding."""
    known: bool = False
    """Whether the baseline accepts it."""
    sdk: str = ""
    """The SDK of the server, if this is a known bug of it: `mcp 1.30.0`."""


class Visit(_ReportData, frozen=True, kw_only=True):
    """One revision over one transport."""

    revision: str
    transport: TransportName
    score: int
    seconds: float
    counts: dict[Verdict, int]
    """The number of rules by their worst verdict in this visit."""
    error: str = ""
    """Why the visit ended early, if it did."""
    left_out: tuple[str, ...] = ()
    """Descriptions of what was not tried because it would take too long or cannot be generated; without a verdict."""
    unconfirmed: tuple[str, ...] = ()
    """Descriptions of cases that failed once and passed when they ran again alone; without a verdict."""


class UntestedRevision(_ReportData, frozen=True, kw_only=True):
    """A revision that was not checked."""

    revision: str
    transport: TransportName
    text: str
    """The reason."""


class Report(_ReportData, frozen=True, kw_only=True):
    """The check of one peer."""

    role: PeerRole
    target: str
    """The target as it was passed, without secrets."""
    name: str
    """The name and version of the peer; empty if it did not send them."""
    version: str
    """The version of accord that checked."""
    started: str
    """The start, in UTC: `2026-11-21T12:00:00Z`."""
    seconds: float
    score: int
    visits: tuple[Visit, ...]
    findings: tuple[Finding, ...]
    outcomes: tuple[Outcome, ...]
    seed: int | None = None
    """The seed of the generated cases, if there were any."""
    generated: int = 0
    """The number of generated cases."""
    stale: tuple[str, ...] = ()
    """Entries of the baseline whose rule no longer fails."""
    untested: tuple[UntestedRevision, ...] = ()
    """Revisions that the peer may support, but in which two attempts to connect failed."""
    unspoken: tuple[UntestedRevision, ...] = ()
    """Revisions that the peer does not support."""
    full_adds: tuple[str, ...] = ()
    """Descriptions of what a full check would add."""
    sdk: str = ""
    """The SDK of the server, recognized by the wording of its messages: `mcp 1.30.0`."""
    interrupted: bool = False
    """Whether the check was interrupted."""

    @property
    def failed(self) -> bool:
        """Return whether a MUST is broken that the baseline does not accept, the check was incomplete, or the baseline
        has stale entries.
        """
        return self.fails_on("any")

    def fails_on(self, which: FailOn) -> bool:
        """Return whether the check fails: for any broken MUST, or only for those that are not known bugs of the SDK."""
        found = any(
            each.verdict == "fail" and not each.known and (which == "any" or not each.sdk) for each in self.findings
        )
        return found or bool(self.stale) or not self.whole

    @property
    def whole(self) -> bool:
        """Return whether the check was complete: no visit ended early, and no revision is untested."""
        return not (self.untested or self.interrupted or any(visit.error for visit in self.visits))

    @property
    def musts_broken(self) -> int:
        """Return the number of findings that break a MUST, with known ones."""
        return sum(each.verdict == "fail" for each in self.findings)


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of several verdicts. Raises `ValueError` for none."""
    return min(verdicts, key=VERDICTS.index)


def by_rule(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """Return the outcomes by rule, in the order of their first occurrence."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.rule, []).append(outcome)
    return found


def counts(outcomes: Iterable[Outcome]) -> dict[Verdict, int]:
    """Return the number of rules by their worst verdict."""
    found: dict[Verdict, int] = dict.fromkeys(VERDICTS, 0)
    for each in by_rule(outcomes).values():
        found[worst_verdict(one.verdict for one in each)] += 1
    return found


def score(outcomes: Sequence[Outcome], *, whole: bool = True) -> int:
    """Return the score from 0 to 100, as the module docstring defines it; `whole`: the check was complete."""
    if not any(each.verdict in ("pass", "fail", "warn") for each in outcomes):
        return 0
    factors: dict[str, float] = {}
    for each in outcomes:
        if each.verdict in ("fail", "warn"):
            factors[each.symptom] = min(factors.get(each.symptom, 1.0), FACTORS[each.level])
    found = 100 * math.prod(sorted(factors.values()))
    return min(math.floor(found + _ROUNDING), 100 if whole else 99)
