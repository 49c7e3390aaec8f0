"""Texts that all formats of reports share: verdicts, places, the summary, and the order of findings.

Texts of the peer are shown with invisible characters, control characters and direction overrides escaped.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

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


_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Invisible characters that Python calls printable: fillers, joiners, variation selectors. They can hide text."""


def is_hidden(character: str) -> bool:
    """Return whether a character is invisible, a control character, a direction override, or a lone surrogate."""
    return (not character.isprintable() and character not in "\n\t") or _BLANK.match(character) is not None


def visible(text: str) -> str:
    """Return the text with hidden characters escaped, `\\u200b`. Newlines and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(escape_characters(run) if hidden else run for hidden, run in runs(text))


def runs(text: str) -> list[tuple[bool, str]]:
    """Split the text into runs of hidden and visible characters: whether a run is hidden, and the run."""
    return [(hidden, "".join(run)) for hidden, run in groupby(text, is_hidden)]


def escape_characters(text: str) -> str:
    """Return each character as a Python escape sequence."""
    return "".join(_number(ord(each)) for each in text)


def single_line(text: str) -> str:
    """Return the text on one line, with hidden characters escaped and whitespace collapsed."""
    return visible(" ".join(text.split()))


def truncate(text: str, most: int) -> str:
    """Return a text of at most about `most` characters, with the original length if it was longer."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters)"


def encodable(value: Any) -> Any:
    """Return JSON data with lone surrogates escaped, which UTF-8 cannot encode."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode("utf-8")
        case dict():
            return {encodable(key): encodable(each) for key, each in value.items()}
        case list() | tuple():
            return [encodable(each) for each in value]
        case _:
            return value


def _number(point: int) -> str:
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
