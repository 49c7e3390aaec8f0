"""The baseline: a file of accepted findings, so that a check fails only for new ones.

    {
      "format": 1,
      "accepted": [
        {"rule": "tools/unknown-name", "why": "answers an empty result until 3.0"},
        {"rule": "stdio/only-messages", "revision": "2025-11-25", "transport": "stdio", "why": "a banner"}
      ]
    }

An entry accepts failures of a rule, optionally only in one revision, over one transport, or with one symptom. A finding
is known if an entry accepts every place of it. An entry is stale if its rule was judged and no longer fails; an entry
with `"occasional": true` is never stale.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from accord.check.engine.report import Finding, Outcome, Place, Report, TransportName
from accord.errors import TargetError
from accord.file_replacement import write_file

FORMAT = 1

_FAILS = ("fail", "warn")
_JUDGED = ("pass", *_FAILS)


class BaselineEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A rule that may fail, and why. None means any revision, transport or symptom."""

    rule: str
    revision: str | None = None
    transport: TransportName | None = None
    symptom: str | None = None
    occasional: bool = False
    """Whether only some runs find it; such an entry is never stale."""
    why: str = ""

    def __str__(self) -> str:
        over = f" over {self.transport}" if self.transport else ""
        symptom = f" ({self.symptom})" if self.symptom else ""
        return f"{self.rule}{f' in {self.revision}' if self.revision else ''}{over}{symptom}"

    def covers(self, rule: str, place: Place, symptom: str) -> bool:
        """Return whether the entry accepts a failure of this rule at this place."""
        return (
            rule == self.rule
            and self.revision in (None, place.revision)
            and self.transport in (None, place.transport)
            and self.symptom in (None, symptom)
        )


class Baseline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The accepted failures."""

    format: int = FORMAT
    accepted: tuple[BaselineEntry, ...] = ()


def load(file: Path) -> Baseline:
    """Read a baseline. Raises `TargetError` for a missing, unreadable or invalid file."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise TargetError(f"{file} does not exist; write it with --update-baseline") from None
    except OSError as exc:
        raise TargetError(f"{file} cannot be read: {exc.strerror}") from exc
    return decode(content, str(file))


def decode(content: bytes, name: str) -> Baseline:
    """Return the baseline in the content of a file. Raises `TargetError` for an invalid one."""
    try:
        found = msgspec.json.decode(content, type=Baseline)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        raise TargetError(
            f"{name} is not a baseline: {exc}; repair it, or write it again with --update-baseline"
        ) from exc
    if found.format != FORMAT:
        raise TargetError(
            f"{name} has format {found.format}, but this version of accord reads {FORMAT}; use the one that wrote it"
        )
    return found


def save(baseline: Baseline, file: Path) -> None:
    """Write a baseline, sorted, with one line per entry. Raises `TargetError` if the file cannot be written."""
    entries = [msgspec.json.encode(each).decode() for each in sorted(baseline.accepted, key=_order)]
    listed = ",\n".join(f"    {entry}" for entry in entries)
    accepted = f"[\n{listed}\n  ]" if entries else "[]"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        text = f'{{\n  "format": {baseline.format},\n  "accepted": {accepted}\n}}\n'
        write_file(file, text.encode())
    except OSError as exc:
        raise TargetError(f"the baseline cannot be written to {file}: {exc.strerror}") from exc


def apply(report: Report, baseline: Baseline) -> Report:
    """Return the report with known findings marked, and with the stale entries."""
    findings = tuple(
        msgspec.structs.replace(finding, known=_is_known(finding, baseline)) for finding in report.findings
    )
    stale = tuple(str(each) for each in sorted(baseline.accepted, key=_order) if _is_stale(each, report))
    return msgspec.structs.replace(report, findings=findings, stale=stale)


def update(reports: Sequence[Report], baseline: Baseline) -> Baseline:
    """Return the baseline that accepts every finding in these reports of one peer.

    Entries that are stale in every report are removed; those that are stale in some reports become occasional. The
    others stay with their reason, also if their rule was not judged.
    """
    current = [each for each in baseline.accepted if not all(_is_stale(each, report) for report in reports)]
    reduced = Baseline(accepted=tuple(current))
    new = {
        entry
        for report in reports
        for finding in report.findings
        if not _is_known(finding, reduced)
        for entry in _entries(finding, report)
    }
    accepted = {_mark_occasional(each, reports) for each in (*current, *new)}
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
