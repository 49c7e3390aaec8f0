"""Findings that are accepted for now: a small file to be read in reviews, that lets only what is new fail.

    {
      "format": 1,
      "accepted": [
        {"rule": "tools/unknown-name", "why": "answers an empty result until 3.0"},
        {"rule": "stdio/only-messages", "revision": "2025-11-25", "transport": "stdio", "why": "a banner"}
      ]
    }

An entry accepts a rule wherever it fails, or in one revision, over one transport, with one symptom. A finding is known
when every place where it was seen is accepted. An entry is stale when its rule was judged, and does not fail any more;
one that is `"occasional": true` never is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from accord.check.engine.report import Finding, Outcome, Place, Report, TransportName
from accord.errors import TargetError

FORMAT = 1

_FAILS = ("fail", "warn")
_JUDGED = ("pass", *_FAILS)


class BaselineEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A rule that may fail, and why. What is None stands for all of them."""

    rule: str
    revision: str | None = None
    transport: TransportName | None = None
    symptom: str | None = None
    occasional: bool = False
    """True if only some runs find it; then it never counts as stale."""
    why: str = ""

    def __str__(self) -> str:
        over = f" over {self.transport}" if self.transport else ""
        symptom = f" ({self.symptom})" if self.symptom else ""
        return f"{self.rule}{f' in {self.revision}' if self.revision else ''}{over}{symptom}"

    def covers(self, rule: str, at: Place, symptom: str) -> bool:
        """Whether it accepts a failure of this rule there."""
        return (
            rule == self.rule
            and self.revision in (None, at.revision)
            and self.transport in (None, at.transport)
            and self.symptom in (None, symptom)
        )


class Baseline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is accepted."""

    format: int = FORMAT
    accepted: tuple[BaselineEntry, ...] = ()


def load(file: Path) -> Baseline:
    """Read the file. Raises `TargetError` where there is none, or it cannot be read."""
    try:
        found = msgspec.json.decode(file.read_bytes(), type=Baseline)
    except FileNotFoundError:
        raise TargetError(f"there is no {file} yet; --update-baseline writes it") from None
    except OSError as exc:
        raise TargetError(f"{file} cannot be read: {exc.strerror}") from exc
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        raise TargetError(f"{file} is no baseline: {exc}; mend it, or let --update-baseline write it anew") from exc
    if found.format != FORMAT:
        raise TargetError(
            f"{file} has format {found.format}, and this accord reads {FORMAT}; use the accord that wrote it"
        )
    return found


def save(baseline: Baseline, file: Path) -> None:
    """Write the file, sorted, an entry a line. Raises `TargetError` where it cannot be written."""
    entries = [msgspec.json.encode(each).decode() for each in sorted(baseline.accepted, key=_order)]
    listed = ",\n".join(f"    {entry}" for entry in entries)
    accepted = f"[\n{listed}\n  ]" if entries else "[]"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        text = f'{{\n  "format": {baseline.format},\n  "accepted": {accepted}\n}}\n'
        file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as exc:
        raise TargetError(f"the baseline cannot be written to {file}: {exc.strerror}") from exc


def apply(report: Report, baseline: Baseline) -> Report:
    """The report with what is known marked as known, and the entries that are stale."""
    findings = tuple(
        msgspec.structs.replace(finding, known=_is_known(finding, baseline)) for finding in report.findings
    )
    stale = tuple(str(each) for each in sorted(baseline.accepted, key=_order) if _is_stale(each, report))
    return msgspec.structs.replace(report, findings=findings, stale=stale)


def update(reports: Sequence[Report], baseline: Baseline) -> Baseline:
    """The baseline that makes every finding of these reports of one peer known.

    An entry that is stale in each report goes; one that is found in some only is occasional. What still holds keeps its
    reason, and what was not judged stays.
    """
    kept = [each for each in baseline.accepted if not all(_is_stale(each, report) for report in reports)]
    held = Baseline(accepted=tuple(kept))
    new = {
        entry
        for report in reports
        for finding in report.findings
        if not _is_known(finding, held)
        for entry in _entries(finding, report)
    }
    accepted = {_mark_occasional(each, reports) for each in (*kept, *new)}
    return Baseline(accepted=tuple(sorted(accepted, key=_order)))


def _mark_occasional(entry: BaselineEntry, reports: Sequence[Report]) -> BaselineEntry:
    """Mark an entry as occasional if a report judged its rule and did not find it."""
    missing = any(_is_stale(entry, report) for report in reports)
    return msgspec.structs.replace(entry, occasional=True) if missing else entry


def _is_known(finding: Finding, baseline: Baseline) -> bool:
    return bool(finding.places) and all(
        any(each.covers(finding.rule, place, finding.symptom) for each in baseline.accepted) for place in finding.places
    )


def _is_stale(entry: BaselineEntry, report: Report) -> bool:
    if entry.occasional:
        return False
    judged = any(_is_about(entry, each) for each in report.outcomes if each.verdict in _JUDGED)
    return judged and not any(_is_found(entry, each) for each in report.findings)


def _is_about(entry: BaselineEntry, outcome: Outcome) -> bool:
    """Return whether the entry covers the rule and the place of an outcome, whatever its verdict."""
    return entry.covers(outcome.rule, _place_of(outcome), entry.symptom or "")


def _is_found(entry: BaselineEntry, finding: Finding) -> bool:
    """Return whether the entry accepts the finding, also if another rule with the same cause reports it."""
    rules = (finding.rule, *finding.also)
    return any(entry.covers(rule, place, finding.symptom) for rule in rules for place in finding.places)


def _place_of(outcome: Outcome) -> Place:
    return Place(revision=outcome.revision, transport=outcome.transport)


def _entries(finding: Finding, report: Report) -> Iterator[BaselineEntry]:
    """Yield one entry for all places where the rule was judged, or one for each place where it failed."""
    named = None if finding.symptom in ("", finding.rule) else finding.symptom
    judged = {_place_of(each) for each in report.outcomes if each.rule == finding.rule and each.verdict in _JUDGED}
    if judged <= {*finding.places}:
        yield BaselineEntry(rule=finding.rule, symptom=named)
        return
    for place in finding.places:
        yield BaselineEntry(rule=finding.rule, revision=place.revision, transport=place.transport, symptom=named)


def _order(entry: BaselineEntry) -> tuple[str, ...]:
    return entry.rule, entry.revision or "", entry.transport or "", entry.symptom or "", entry.why
