"""Texts that all formats of reports share: verdicts, places, the summary, and the order of findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from accord.check.engine.outcomes import NO_AUTHORIZATION
from accord.check.engine.report import FACTORS, VERDICTS, Finding, Outcome, Place, Report, Verdict, Visit, counts

MARKS: dict[Verdict, str] = {"fail": "✗", "warn": "!", "pass": "✓", "not-observed": "?", "not-applicable": "·"}

WORDS: dict[Verdict, str] = {
    "fail": "failed",
    "warn": "warned",
    "pass": "passed",
    "not-observed": "not observed",
    "not-applicable": "not applicable",
}

SUMMARY: tuple[Verdict, ...] = ("pass", "fail", "warn", "not-observed", "not-applicable")
"""The order of the counts in a summary."""


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings sorted: new before known, the server's before its SDK's, by level, by number of places."""
    return sorted(
        findings,
        key=lambda each: (
            each.known,
            bool(each.sdk),
            each.verdict != "fail",
            FACTORS[each.level],
            -len(each.places),
            each.rule,
        ),
    )


def peer_name(report: Report) -> str:
    """Return the name that the peer sent, or else the target."""
    return report.name or report.target


def place_text(revision: str, transport: str) -> str:
    """Return `2025-11-25 over http`."""
    return f"{revision} over {transport}"


def places_text(places: Collection[Place], visits: Collection[Visit]) -> str:
    """Return places in short: `2025-06-18, 2025-11-25 over stdio and http; 2026-07-28 over http`."""
    if len(visits) > 1 and {(each.revision, each.transport) for each in visits} <= {*map(_pair, places)}:
        return f"in all {len(visits)} visits"
    by_revision: dict[str, list[str]] = {}
    for each in places:
        by_revision.setdefault(each.revision, []).append(each.transport)
    by_transports: dict[str, list[str]] = {}
    for revision, transports in by_revision.items():
        by_transports.setdefault(" and ".join(dict.fromkeys(transports)), []).append(revision)
    everywhere = {each.revision for each in visits}
    return "; ".join(f"{_listed(found, everywhere)} over {over}" for over, found in by_transports.items())


def _listed(revisions: list[str], everywhere: Collection[str]) -> str:
    return "all revisions" if len(revisions) > 1 and {*revisions} == everywhere else ", ".join(revisions)


def counted(number: int, one: str) -> str:
    """Return a number with its noun: `1 finding`, `2 findings`."""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


def tally(found: dict[Verdict, int]) -> str:
    """Return `210 rules passed, 3 failed, 2 warned, 14 not observed, 40 not applicable`, without counts of 0."""
    first, *rest = SUMMARY
    parts = [f"{counted(found[first], 'rule')} {WORDS[first]}"]
    return ", ".join(parts + [f"{found[each]:,} {WORDS[each]}" for each in rest if found[each]])


def summary(report: Report) -> str:
    """Return one line with the counts of rules over all visits, and of findings and generated cases."""
    parts = [tally(counts(report.outcomes))]
    if report.findings:
        parts.append(counted(len(report.findings), "finding"))
    if known := sum(each.known for each in report.findings):
        parts.append(f"{known:,} known")
    if report.generated:
        seed = "" if report.seed is None else f" (seed {report.seed})"
        parts.append(f"{counted(report.generated, 'generated case')}{seed}")
    return "; ".join(parts)


def headline(report: Report) -> str:
    """Return the main result: `not conformant: 10 MUSTs broken`."""
    if report.musts_broken:
        by_sdk = sum(each.verdict == "fail" and bool(each.sdk) for each in report.findings)
        by_whom = f" ({by_sdk} by the SDK, {report.sdk})" if by_sdk else ""
        return f"not conformant: {counted(report.musts_broken, 'MUST')} broken{by_whom}"
    return "no MUST broken" if report.whole else "the check is incomplete"


class Remark(NamedTuple):
    """A remark about a check besides its findings: a mark and a text."""

    mark: str
    text: str


def remarks(report: Report) -> Iterator[Remark]:
    """Yield what was not tried or not confirmed, and the stale entries of the baseline."""
    if report.interrupted:
        yield Remark("!", "the check was interrupted: the remaining rules have no verdict")
    for untested in report.untested:
        where = place_text(untested.revision, untested.transport)
        yield Remark("!", f"{where} was not tested, because two attempts to connect failed: {untested.text}")
    for visit in report.visits:
        where = place_text(visit.revision, visit.transport)
        if visit.error:
            yield Remark("!", f"{where} ended early: {visit.error}")
        yield from (Remark("?", f"{where} left out: {each}") for each in visit.left_out)
        yield from (Remark("?", f"{where} not confirmed: {each}") for each in visit.unconfirmed)
    if any(each.text == NO_AUTHORIZATION for each in report.outcomes):
        yield Remark("·", f"{NO_AUTHORIZATION}: the rules about it do not apply")
    for entry in report.stale:
        yield Remark("✗", f"in the baseline, but no longer found: {entry}; remove the entry")
    if report.full_adds:
        yield Remark("·", f"--full adds: {'; '.join(report.full_adds)}")


def known_places(report: Report) -> set[tuple[str, str, str]]:
    """Return rule, revision and transport of all known findings."""
    return {
        (rule, each.revision, each.transport)
        for finding in report.findings
        if finding.known
        for rule in (finding.rule, *finding.also)
        for each in finding.places
    }


def is_known(outcome: Outcome, known: Collection[tuple[str, str, str]]) -> bool:
    """Return whether a failure is known."""
    return (outcome.rule, outcome.revision, outcome.transport) in known


def worst_outcome(cases: Iterable[Outcome]) -> Outcome:
    """Return the first case with the worst verdict."""
    return min(cases, key=lambda each: VERDICTS.index(each.verdict))


def _pair(each: Place) -> tuple[str, str]:
    return each.revision, each.transport


def recorded_lines(entries: Sequence[int]) -> str:
    """Return the lines of a session file that have these entries: `lines 14 to 16, 20`."""
    lines = [number + 2 for number in entries]  # counted from 1, after the header
    starts = [line for line in lines if line - 1 not in lines]
    ends = [line for line in lines if line + 1 not in lines]
    parts = [f"{start}" if start == end else f"{start} to {end}" for start, end in zip(starts, ends, strict=True)]
    return f"{'line' if len(lines) == 1 else 'lines'} {', '.join(parts)}"
