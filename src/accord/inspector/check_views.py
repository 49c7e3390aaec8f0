"""The content of the screen Conformance: rules with their results, findings, cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from accord.check.engine.report import Finding, Level, Outcome, TransportName, Verdict, Visit, worst_verdict
from accord.check.engine.rule import Rule
from accord.check.reports.wording import worst_outcome
from accord.inspector.check_evidence import EntryView
from accord.visible_text import truncate, visible

CheckState: TypeAlias = Literal["running", "stopping", "done", "stopped", "failed"]

_TEXT = 4_000
"""Characters of a text."""


class VisitProgress(msgspec.Struct, kw_only=True, rename="camel"):
    """One revision over one transport, while it is checked and afterwards."""

    revision: str
    transport: str
    total: int
    """The number of its cases."""
    done: int = 0
    failed: int = 0
    warned: int = 0
    visit: Visit | None = None
    """The result, after its end."""


class CheckProgress(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The progress of a check, as the topic `check` has it."""

    run: int
    server: str
    state: CheckState
    done: int
    failed: int
    warned: int


class OpenedSession(msgspec.Struct, frozen=True):
    """A copy of the session file of a check that the timeline shows."""

    session: str
    """Its id; empty if it is not open."""
    size: int = 0
    """The size of the file when it was copied, in bytes."""


class RuleOutcomes(msgspec.Struct, frozen=True):
    """The outcomes of one rule so far."""

    rule: Rule
    outcomes: Sequence[Outcome]

    @property
    def worst(self) -> Verdict:
        """Return the worst verdict."""
        return worst_verdict(each.verdict for each in self.outcomes)


class RuleCell(msgspec.Struct, frozen=True):
    """The worst verdict of a rule in one visit."""

    revision: str
    transport: TransportName
    verdict: Verdict


class RuleRow(msgspec.Struct, frozen=True):
    """A rule with its results so far."""

    rule: str
    level: Level
    says: str
    verdict: Verdict
    text: str
    """The failure, or why there is no verdict."""
    cells: list[RuleCell]
    accepted: bool = False
    """Whether the baseline accepts all its findings."""


class CheckResults(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a check, and a range of its rules."""

    progress: CheckProgress
    error: str
    visits: list[VisitProgress]
    remarks: list[str]
    score: int | None
    """The score; None before the end."""
    sdk: str
    seconds: float
    total: int
    """The number of rules with a result."""
    matching: int
    counts: dict[Verdict, int]
    rows: list[RuleRow]


class NoCheck(msgspec.Struct, frozen=True):
    """The server was not checked yet."""

    progress: None = None


class CaseView(msgspec.Struct, frozen=True):
    """An outcome of one case."""

    case: str
    verdict: Verdict
    text: str
    revision: str
    transport: TransportName
    entries: tuple[int, ...]


class RuleView(msgspec.Struct, frozen=True, kw_only=True):
    """A rule with its findings and all its cases."""

    rule: str
    level: Level
    says: str
    findings: list[Finding]
    cases: list[CaseView]
    left_out: int = msgspec.field(default=0, name="leftOut")


class EvidenceView(msgspec.Struct, frozen=True):
    """The entries that a finding is about, and how many more there are; a file that reached its size lacks the last
    ones.
    """

    entries: list[EntryView]
    left_out: int = msgspec.field(name="leftOut")


def rule_row(result: RuleOutcomes, *, text: str = "", revision: str = "", transport: str = "") -> RuleRow | None:
    """Return the row of a rule: its outcomes in one revision and over one transport, if they are given.

    Returns None without outcomes, and for a rule without `text` in its id and its sentence.
    """
    rule, text = result.rule, text.lower()
    if text not in rule.id and text not in rule.says.lower():
        return None
    outcomes = [
        each for each in result.outcomes if revision in ("", each.revision) and transport in ("", each.transport)
    ]
    if not outcomes:
        return None
    worst = worst_outcome(outcomes)
    places: dict[tuple[str, TransportName], list[Outcome]] = {}
    for each in outcomes:
        places.setdefault((each.revision, each.transport), []).append(each)
    cells = [RuleCell(*place, worst_outcome(found).verdict) for place, found in places.items()]
    return RuleRow(rule.id, rule.level, rule.says, worst.verdict, display_text(worst.text), cells)


def finding_view(found: Finding) -> Finding:
    """Return a finding as the page shows it: hidden characters are escaped, and long texts shortened."""
    return msgspec.structs.replace(
        found,
        text=display_text(found.text),
        cause=display_text(found.cause),
        cases=tuple(map(display_text, found.cases)),
        evidence=tuple(map(display_text, found.evidence)),
    )


def case_view(outcome: Outcome) -> CaseView:
    """Return an outcome as the page shows it."""
    return CaseView(
        display_text(outcome.case),
        outcome.verdict,
        display_text(outcome.text),
        outcome.revision,
        outcome.transport,
        outcome.entries,
    )


def display_text(text: str) -> str:
    """Return a text with hidden characters escaped, shortened if it is long."""
    return visible(truncate(text, _TEXT))
