"""The words that all forms of a report share: verdicts, places, the summary, and the order of findings.

What others wrote, so that all of it can be seen: characters that hide, steer or reorder stand as their numbers.
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
"""The order in which a summary counts."""


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """New ones before known ones, the server's own before those of its SDK, then by level, then by number of places."""
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
    """What the peer calls itself, or what was checked."""
    return report.name or report.target


def place_text(revision: str, transport: str) -> str:
    """`2025-11-25 over http`."""
    return f"{revision} over {transport}"


def places_text(places: Collection[Place], visits: Collection[Visit]) -> str:
    """Places in few words: `2025-06-18, 2025-11-25 over stdio and http; 2026-07-28 over http`."""
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
    """`1 finding`, `2 findings`."""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


def tally(found: dict[Verdict, int]) -> str:
    """`210 rules passed, 3 failed, 2 warned, 14 not observed, 40 not applicable`; what is 0 is left out."""
    first, *rest = SUMMARY
    parts = [f"{counted(found[first], 'rule')} {WORDS[first]}"]
    return ", ".join(parts + [f"{found[each]:,} {WORDS[each]}" for each in rest if found[each]])


def summary(report: Report) -> str:
    """One line: how the rules fared over all visits, and what is known or stale of it."""
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
    """What matters before any number: `not conformant: 10 MUSTs broken`."""
    if report.musts_broken:
        by_sdk = sum(each.verdict == "fail" and bool(each.sdk) for each in report.findings)
        by_whom = f" ({by_sdk} by the SDK, {report.sdk})" if by_sdk else ""
        return f"not conformant: {counted(report.musts_broken, 'MUST')} broken{by_whom}"
    return "no MUST broken" if report.whole else "not everything could be tried"


class Remark(NamedTuple):
    """What is to be known of a check beside its findings: its mark, and the text."""

    mark: str
    text: str


def remarks(report: Report) -> Iterator[Remark]:
    """What was not tried, what was not confirmed, and what is stale."""
    if report.interrupted:
        yield Remark("!", "it was interrupted: what was not tried by then is not judged")
    for untested in report.untested:
        where = place_text(untested.revision, untested.transport)
        yield Remark("!", f"{where} was not tested, since it could not be opened, twice: {untested.text}")
    for visit in report.visits:
        where = place_text(visit.revision, visit.transport)
        if visit.error:
            yield Remark("!", f"{where} ended early: {visit.error}")
        yield from (Remark("?", f"{where} left out: {each}") for each in visit.left_out)
        yield from (Remark("?", f"{where} not confirmed: {each}") for each in visit.unconfirmed)
    for entry in report.stale:
        yield Remark("✗", f"in the baseline, and not found any more: {entry}; take it out")
    if report.full_adds:
        yield Remark("·", f"--full adds: {'; '.join(report.full_adds)}")


def known_places(report: Report) -> set[tuple[str, str, str]]:
    """Rule, revision and transport of what the baseline has."""
    return {
        (rule, each.revision, each.transport)
        for finding in report.findings
        if finding.known
        for rule in (finding.rule, *finding.also)
        for each in finding.places
    }


def is_known(outcome: Outcome, known: Collection[tuple[str, str, str]]) -> bool:
    """Whether a failure is one of those."""
    return (outcome.rule, outcome.revision, outcome.transport) in known


def worst_outcome(cases: Iterable[Outcome]) -> Outcome:
    """The first case that has the worst verdict of them."""
    return min(cases, key=lambda each: VERDICTS.index(each.verdict))


def _pair(each: Place) -> tuple[str, str]:
    return each.revision, each.transport


_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""What Python calls printable and nobody sees: fillers, joiners, variation selectors. Text can be smuggled in them."""


def is_hidden(character: str) -> bool:
    """Whether it does not show as what it is: controls, what turns the direction, what has no width, half a pair."""
    return (not character.isprintable() and character not in "\n\t") or _BLANK.match(character) is not None


def visible(text: str) -> str:
    """The text with what hides as its number, `\\u200b`. Newlines and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(escape_characters(run) if hidden else run for hidden, run in runs(text))


def runs(text: str) -> list[tuple[bool, str]]:
    """The text in pieces: whether a piece is hidden, and the piece."""
    return [(hidden, "".join(run)) for hidden, run in groupby(text, is_hidden)]


def escape_characters(text: str) -> str:
    """Each character as Python writes its number."""
    return "".join(_number(ord(each)) for each in text)


def single_line(text: str) -> str:
    """Visible, with every run of spaces and newlines as one space."""
    return visible(" ".join(text.split()))


def truncate(text: str, most: int) -> str:
    """At most about so many characters, and how many there were."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters)"


def encodable(value: Any) -> Any:
    """JSON data whose texts can be stored as UTF-8: half a surrogate pair, which cannot, stands as its number."""
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
