"""A fleet as one HTML page: the servers with their history, the changes, and the broken rules."""

from __future__ import annotations

from accord.check.engine.fleet import CheckedServer, Fleet
from accord.check.engine.report import Report
from accord.check.reports.fleet_board import FleetRow, fleet_rows, fleet_summary, revisions
from accord.check.reports.html import Markup, grade, joined, page, sparkline, tag, untrusted_text
from accord.check.reports.report_page import finding_item
from accord.check.reports.wording import place_text, worst_first
from accord.visible_text import truncate

_LONGEST_NAME = 120
_CHANGE_MARKS = {"worse": "▼", "better": "▲", "new": "+", "gone": "-"}


def fleet_page(fleet: Fleet) -> str:
    """Return the document."""
    summary = fleet_summary(fleet)
    board = fleet_rows(fleet)
    facts = f"{fleet.started} · {fleet.seconds:.1f} s · accord {fleet.version}"
    about = (tag("p", "accord check", class_="kicker"), tag("h1", summary), tag("p", facts, class_="facts"))
    sections = (_board(board), _change_list(fleet), _by_rule(fleet), _servers(fleet))
    return page(f"{summary} · accord check", tag("header", tag("div", *about)), tag("main", *sections))


def _board(board: list[FleetRow]) -> Markup:
    known = revisions(board)
    heads = [tag("th", each, scope="col") for each in ("", "score", "history", *known, "broken")]
    body = [_row(row, known) for row in board]
    table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *body), class_="board fleet")
    return tag("section", tag("h2", "Overview"), tag("div", table, class_="wide"))


def _row(row: FleetRow, known: list[str]) -> Markup:
    score = tag("b", str(row.score), class_=grade(row.score)) if row.score is not None else tag("b", "✗", class_="poor")
    bad = [f"{number} {what}" for number, what in ((row.failing, "failing"), (row.warning, "warning")) if number]
    entry = "could not be checked" if row.score is None else ", ".join(bad) or "nothing"
    return tag(
        "tr",
        tag("th", _short_name(row.name), scope="row"),
        tag("td", score),
        tag("td", sparkline(row.past) if len(row.past) > 1 else ""),
        *(_scores(row.scores.get(each, {})) for each in known),
        tag("td", entry, class_="none"),
    )


def _scores(scores: dict[str, int]) -> Markup:
    """Return a cell with the score over each transport."""
    lines = [
        tag("p", tag("span", transport), tag("b", str(score), class_=grade(score)))
        for transport, score in scores.items()
    ]
    return tag("td", *lines)


def _change_list(fleet: Fleet) -> Markup:
    changes = [
        tag(
            "li",
            tag("b", _CHANGE_MARKS[each.kind], class_=f"mark {each.kind}"),
            _short_name(each.server),
            ": ",
            untrusted_text(each.text),
        )
        for each in fleet.news
    ]
    return tag("section", tag("h2", "Since the last run"), tag("ul", *changes, class_="news")) if changes else Markup()


def _by_rule(fleet: Fleet) -> Markup:
    found = fleet.by_rule()
    lines = [
        tag("li", tag("b", str(len(servers))), tag("code", rule), tag("span", *_names(servers)))
        for rule, servers in found.items()
    ]
    nothing = tag("p", "No rule is broken.", class_="nothing")
    return tag("section", tag("h2", "Broken rules"), tag("ul", *lines, class_="broken") if lines else nothing)


def _names(servers: tuple[str, ...]) -> list[Markup]:
    return [joined(tag("span", _short_name(each), class_="chip"), " ") for each in servers]


def _servers(fleet: Fleet) -> Markup:
    return tag("section", tag("h2", "Servers"), *map(_server, fleet.servers))


def _server(checked: CheckedServer) -> Markup:
    report, state = checked.report, "fail" if checked.failed else "pass"
    head = tag(
        "summary",
        tag("span", str(report.score) if report else "not checked", class_=f"label {state}"),
        tag("span", _short_name(checked.name), class_="says"),
        tag("small", _short_name(report.name) if report else "", f" {checked.seconds:.1f} s"),
    )
    inside = _findings(report) if report else tag("p", untrusted_text(checked.error))
    return tag("details", head, inside, class_=f"finding server {state}")


def _findings(report: Report) -> Markup:
    ended = [
        tag("p", f"{place_text(each.revision, each.transport)} ended early: ", untrusted_text(each.error))
        for each in report.visits
        if each.error
    ]
    found = [finding_item(each, report) for each in worst_first(report.findings)]
    return joined(*ended, *found) if ended or found else tag("p", "No findings.")


def _short_name(name: str) -> Markup:
    return untrusted_text(truncate(name, _LONGEST_NAME))
