"""Markdown for a comment on a pull request: the score, a table of the visits, and each finding collapsed.

Texts of the peer are in HTML as code, so that they are neither markup nor mentions of users.
"""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.engine.report import Finding, Report, Verdict, Visit
from accord.check.reports.html import Markup, joined, link, tag
from accord.check.reports.wording import (
    MARKS,
    WORDS,
    counted,
    headline,
    peer_name,
    places_text,
    remarks,
    summary,
    worst_first,
)
from accord.visible_text import single_line, truncate

_MOST = 60_000
"""The maximum length in characters; GitHub allows 65,536 in a comment."""

_LONGEST = 600
"""The maximum length of a line in characters."""

_LINES = 12
"""The maximum number of lines of evidence."""

_COLUMNS: tuple[Verdict, ...] = ("fail", "warn", "pass", "not-observed", "not-applicable")


def markdown(report: Report) -> str:
    """Return the comment."""
    head = [
        f"### accord check: {headline(report)}; score {report.score}",
        tag("p", _code(peer_name(report))),
        f"{summary(report)}.",
    ]
    blocks = [*head, "\n".join(_board(report.visits)), *_remarks(report)]
    left = _MOST - sum(len(each) + 2 for each in blocks)
    findings = worst_first(report.findings)
    for number, finding in enumerate(findings):
        block = _finding(finding, report)
        left -= len(block) + 2
        if left < 0:
            blocks.append(f"{counted(len(findings) - number, 'more finding')}: see the other reports.")
            break
        blocks.append(block)
    return "\n\n".join(blocks) + "\n"


def _board(visits: tuple[Visit, ...]) -> list[str]:
    names = " | ".join(WORDS[each] for each in _COLUMNS)
    lines = [f"| revision | transport | score | {names} |", f"| --- | --- | ---: |{' ---: |' * len(_COLUMNS)}"]
    for visit in visits:
        numbers = " | ".join(f"{visit.counts.get(each, 0)}" for each in _COLUMNS)
        lines.append(f"| {visit.revision} | {visit.transport} | {visit.score} | {numbers} |")
    return lines


def _remarks(report: Report) -> list[str]:
    return [tag("p", f"{remark.mark} ", _code(remark.text)) for remark in remarks(report)]


def _finding(finding: Finding, report: Report) -> str:
    known = " (known)" if finding.known else f" (known fault of {finding.sdk})" if finding.sdk else ""
    head = [f"{MARKS[finding.verdict]} {finding.level.upper()} ", tag("code", finding.rule), f": {finding.says}{known}"]
    lines = [
        tag("summary", *head),
        tag("p", f"Seen {places_text(finding.places, report.visits)}: ", _code(finding.text)),
        tag("p", f"Likely cause: {finding.cause}") if finding.cause else "",
        _evidence(finding.evidence[-_LINES:]),
        tag("p", "Repeat it: ", _code(finding.repeat)) if finding.repeat else "",
        tag("p", "Specification: ", *(joined(link(each), " ") for each in finding.sources)),
    ]
    return tag("details", *(_without_blank_lines(each) for each in lines if each))


def _evidence(lines: Sequence[str]) -> Markup | str:
    shown = [truncate(single_line(each), _LONGEST) for each in lines]
    return tag("pre", "\n".join(shown)) if shown else ""


def _without_blank_lines(markup: str) -> Markup:
    """Remove blank lines, because one would end the HTML in Markdown."""
    return Markup("\n".join(["", *filter(str.strip, markup.splitlines())]))


def _code(text: str) -> Markup:
    return tag("code", truncate(single_line(text), _LONGEST))
