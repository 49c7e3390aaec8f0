"""The report as one HTML page: the score, the visits, the findings with their evidence, every rule with its cases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from accord.check.engine.report import VERDICTS, Finding, Outcome, Place, Report, Verdict, Visit, by_rule, counts
from accord.check.reports.html import Markup, bar, grade, joined, link, page, ring, tag, untrusted_text
from accord.check.reports.wording import (
    MARKS,
    SUMMARY,
    WORDS,
    counted,
    headline,
    peer_name,
    place_text,
    places_text,
    remarks,
    worst_first,
    worst_outcome,
)
from accord.visible_text import truncate

_LONGEST = 20_000
"""The maximum length in characters of a line of evidence."""

_LONGEST_NAME = 200

_TRANSPORTS = ("stdio", "http", "sse", "memory")
"""The columns of the overview, in this order."""


def report_page(report: Report) -> str:
    """Return the document."""
    title = f"{headline(report)} · {peer_name(report)} · accord check"
    return page(title, _head(report), tag("main", _board(report), _remarks(report), _filters(report), *_lists(report)))


def _head(report: Report) -> Markup:
    found = counts(report.outcomes)
    chips = [
        tag("li", tag("b", f"{found[each]:,}"), f" {WORDS[each]}", class_=f"chip {each}")
        for each in SUMMARY
        if found[each] or each in ("pass", "fail", "warn")
    ]
    made_with = [f"made with {report.sdk}"] if report.sdk else []
    facts = [
        *made_with,
        f"checked as a {report.role}",
        report.started,
        f"{report.seconds:.1f} s",
        f"accord {report.version}",
    ]
    if report.generated:
        seed = "" if report.seed is None else f", seed {report.seed}"
        facts.append(f"{counted(report.generated, 'generated case')}{seed}")
    about = tag(
        "div",
        tag("p", "accord check", class_="kicker"),
        tag("h1", untrusted_text(truncate(peer_name(report), _LONGEST_NAME))),
        tag("p", tag("code", untrusted_text(truncate(report.target, _LONGEST_NAME))), class_="target")
        if report.name
        else "",
        tag("p", tag("b", headline(report)), class_="headline"),
        tag("ul", *chips, class_="chips"),
        tag("p", " · ".join(facts), class_="facts"),
    )
    return tag("header", ring(report.score), about)


# --- the overview ----------------------------------------------------------------------------------------------


def _board(report: Report) -> Markup:
    revisions = sorted({each.revision for each in report.visits})
    transports = sorted({each.transport for each in report.visits}, key=_TRANSPORTS.index)
    visits = {(each.revision, each.transport): each for each in report.visits}
    heads = [tag("th", each, scope="col") for each in ("", *transports)]
    rows = [
        tag("tr", tag("th", revision, scope="row"), *(_cell(visits.get((revision, each))) for each in transports))
        for revision in revisions
    ]
    table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows), class_="board")
    return tag("section", tag("h2", "Overview"), tag("div", table, class_="wide"))


def _cell(visit: Visit | None) -> Markup:
    if visit is None:
        return tag("td", "not visited", class_="none")
    bad = [f"{visit.counts[each]} {WORDS[each]}" for each in ("fail", "warn") if visit.counts.get(each)]
    entry = "ended early" if visit.error else ", ".join(bad) or f"{visit.counts.get('pass', 0)} passed"
    number = tag("b", str(visit.score), class_=grade(visit.score))
    return tag("td", tag("p", number, tag("span", entry), tag("i", f"{visit.seconds:.1f} s")), bar(visit.counts))


def _remarks(report: Report) -> Markup:
    found = [tag("li", tag("b", f"{remark.mark} "), untrusted_text(remark.text)) for remark in remarks(report)]
    return tag("ul", *found, class_="remarks") if found else Markup()


# --- the findings ----------------------------------------------------------------------------------------------


def _lists(report: Report) -> list[Markup]:
    findings = [finding_item(each, report) for each in worst_first(report.findings)]
    nothing = tag("p", "No findings.", class_="nothing")
    return [
        tag("section", tag("h2", "Findings"), *(findings or [nothing]), id="findings"),
        tag("section", tag("h2", "Rules"), *_areas(report), id="rules"),
        tag("p", "No rule matches these filters.", id="empty", class_="nothing", hidden=True),
    ]


def finding_item(finding: Finding, report: Report) -> Markup:
    """Return a finding with its details, expanded unless the baseline has it."""
    head = tag(
        "summary",
        tag("span", f"{MARKS[finding.verdict]} {finding.level}", class_=f"label {finding.verdict}"),
        tag("span", untrusted_text(finding.says), class_="says"),
        tag("code", finding.rule),
        tag("span", "known", class_="label known") if finding.known else "",
    )
    rows = [
        ("Seen", tag("strong", untrusted_text(finding.text))),
        ("Likely cause", untrusted_text(finding.cause) if finding.cause else ""),
        ("Where", places_text(finding.places, report.visits)),
        ("Cases", tag("ul", *(tag("li", untrusted_text(each)) for each in finding.cases)) if finding.cases else ""),
        ("Also breaks", joined(*(joined(tag("code", each), " ") for each in finding.also))),
        ("Evidence", _evidence(finding.evidence)),
        ("Specification", joined(*(tag("p", link(each)) for each in finding.sources))),
        ("Repeat it", _command(finding.repeat) if finding.repeat else ""),
    ]
    terms = [joined(tag("dt", name), tag("dd", text)) for name, text in rows if text]
    return tag(
        "details",
        head,
        tag("dl", *terms),
        class_=f"finding item {finding.verdict}",
        open=not finding.known,
        data_area=_area(finding.rule),
        data_verdict=finding.verdict,
    )


def _evidence(lines: Sequence[str]) -> Markup | str:
    """Return the messages, a line each, with a CSS class for the direction."""
    directions = {"→": "sent", "←": "received"}
    spans = [
        tag("span", untrusted_text(truncate(each, _LONGEST)), "\n", class_=f"line {directions.get(each[:1], 'remark')}")
        for each in lines
    ]
    return tag("pre", *spans, class_="evidence", tabindex=0) if spans else ""


def _command(command: str) -> Markup:
    return tag(
        "div", tag("pre", untrusted_text(command)), tag("button", "Copy", type="button", hidden=True), class_="command"
    )


# --- every rule ------------------------------------------------------------------------------------------------


def _filters(report: Report) -> Markup:
    found = counts(report.outcomes)
    boxes = [
        tag(
            "label",
            tag("input", type="checkbox", value=each, checked=True),
            f"{WORDS[each]} {found[each]:,}",
            class_=each,
        )
        for each in VERDICTS
    ]
    names = sorted({_area(each.rule) for each in report.outcomes})
    options = [tag("option", "every area", value=""), *(tag("option", each, value=each) for each in names)]
    search = tag("input", type="search", placeholder="Search", aria_label="Search", autocomplete="off")
    parts = (tag("fieldset", *boxes), tag("select", *options, aria_label="Area"), search)
    return tag("form", *parts, id="filters", hidden=True)


def _areas(report: Report) -> Iterable[Markup]:
    areas: dict[str, list[Markup]] = {}
    for rule, cases in by_rule(report.outcomes).items():
        areas.setdefault(_area(rule), []).append(_rule(rule, cases, report.visits))
    for area, rules in areas.items():
        yield tag("section", tag("h3", area, " ", tag("small", counted(len(rules), "rule"))), *rules, class_="area")


def _rule(rule: str, cases: Sequence[Outcome], visits: Sequence[Visit]) -> Markup:
    worst = worst_outcome(cases)
    squares = [_square(each, cases) for each in visits]
    head = tag(
        "summary",
        tag("span", MARKS[worst.verdict], class_=f"mark {worst.verdict}", title=WORDS[worst.verdict]),
        tag("code", rule),
        tag("small", worst.level),
        tag("span", *squares, class_="squares"),
    )
    listed = tag("ul", *_cases(cases, visits))
    return tag("details", head, listed, class_="rule item", data_area=_area(rule), data_verdict=worst.verdict)


def _square(visit: Visit, cases: Sequence[Outcome]) -> Markup:
    """Return a square with the verdict of the rule in one visit."""
    here = [each for each in cases if (each.revision, each.transport) == (visit.revision, visit.transport)]
    verdict: Verdict | None = worst_outcome(here).verdict if here else None
    words = WORDS[verdict] if verdict else "not tried"
    return tag("i", class_=verdict or "none", title=f"{place_text(visit.revision, visit.transport)}: {words}")


def _cases(cases: Sequence[Outcome], visits: Sequence[Visit]) -> Iterable[Markup]:
    """Yield each case with the same verdict and text once, with its places."""
    groups: dict[tuple[str, Verdict, str], list[Place]] = {}
    for each in cases:
        key = (each.case, each.verdict, each.text)
        groups.setdefault(key, []).append(Place(revision=each.revision, transport=each.transport))
    for (case, verdict, text), places in sorted(groups.items(), key=lambda item: VERDICTS.index(item[0][1])):
        entry = joined(tag("span", untrusted_text(text), class_="text"), " ") if text else ""
        seen = tag("small", places_text(places, visits))
        mark = tag("span", MARKS[verdict], class_=f"mark {verdict}", title=WORDS[verdict])
        yield tag("li", mark, tag("span", untrusted_text(case)), " ", entry, seen)


def _area(rule: str) -> str:
    return rule.partition("/")[0]
