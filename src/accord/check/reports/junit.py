"""JUnit XML: a test suite per visit with a test case per rule, as Ant and Jenkins read it.

A broken MUST fails unless the baseline accepts it. A broken SHOULD or MAY does not fail, as for the exit code; it is
skipped with the message `warning: ...`. A rule without a verdict is skipped with the reason. Revisions that could not
be tested, and stale entries of the baseline, fail in separate suites.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from accord.check.engine.report import Outcome, Report, Visit, by_rule
from accord.check.reports.wording import WORDS, is_known, known_places, peer_name, place_text, worst_outcome
from accord.visible_text import visible


def junit(report: Report) -> str:
    """Return the document."""
    root = Element("testsuites")
    known = known_places(report)
    for number, visit in enumerate(report.visits):
        suite = _suite(root, report, number, place_text(visit.revision, visit.transport), visit.seconds)
        _add_visit(suite, visit, report, known)
    if report.untested:
        suite = _suite(root, report, len(report.visits), "not tested", 0.0)
        for each in report.untested:
            where = place_text(each.revision, each.transport)
            _add_message(_case(suite, where, "accord.visit", 0.0), "error", f"not tested: {each.text}", "untested")
    if report.stale:
        _add_stale(_suite(root, report, len(root), "baseline", 0.0), report.stale)
    for suite in root:
        _count(suite)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _suite(root: Element, report: Report, number: int, name: str, seconds: float) -> Element:
    suite = SubElement(root, "testsuite", name=name, id=str(number), package="accord.check", hostname="localhost")
    suite.set("timestamp", report.started.removesuffix("Z"))
    suite.set("time", f"{seconds:.3f}")
    properties = SubElement(suite, "properties")
    for key, value in (("target", report.target), ("peer", peer_name(report)), ("accord", report.version)):
        SubElement(properties, "property", name=key, value=visible(value))
    return suite


def _add_visit(suite: Element, visit: Visit, report: Report, known: Collection[tuple[str, str, str]]) -> None:
    here = (visit.revision, visit.transport)
    outcomes = [each for each in report.outcomes if (each.revision, each.transport) == here]
    for rule, cases in by_rule(outcomes).items():
        seconds = sum(each.seconds for each in cases)
        _add_verdict(
            _case(suite, rule, f"accord.{visit.revision}.{visit.transport}", seconds), worst_outcome(cases), known
        )
    if visit.error:
        _add_message(_case(suite, "the visit itself", "accord.visit", 0.0), "error", visit.error, "visit")
    remarks = [f"left out: {each}" for each in visit.left_out]
    remarks += [f"not confirmed: {each}" for each in visit.unconfirmed]
    remarks += [f"warning: {each.rule}: {each.text}" for each in outcomes if each.verdict == "warn"]
    SubElement(suite, "system-out").text = visible("\n".join(remarks))
    SubElement(suite, "system-err").text = visible(visit.error)


def _add_stale(suite: Element, stale: Iterable[str]) -> None:
    for entry in stale:
        text = f"{entry} is in the baseline, but is no longer found; remove the entry"
        _add_message(_case(suite, entry, "accord.baseline", 0.0), "failure", text, "stale")
    SubElement(suite, "system-out")
    SubElement(suite, "system-err")


def _case(suite: Element, name: str, of: str, seconds: float) -> Element:
    return SubElement(suite, "testcase", name=visible(name), classname=of, time=f"{seconds:.3f}")


def _add_verdict(case: Element, outcome: Outcome, known: Collection[tuple[str, str, str]]) -> None:
    if outcome.verdict == "fail" and is_known(outcome, known):
        _add_message(case, "skipped", f"accepted by the baseline: {outcome.text}")
    elif outcome.verdict == "fail":
        lines = [f"{outcome.case}: {outcome.text}", outcome.cause, *outcome.evidence]
        _add_message(case, "failure", outcome.text, outcome.level, _joined(lines))
    elif outcome.verdict == "warn":
        lines = [f"{outcome.case}: {outcome.text}", outcome.cause, *outcome.evidence]
        _add_message(case, "skipped", f"warning: {outcome.level.upper()} broken: {outcome.text}", "", _joined(lines))
    elif outcome.verdict in ("not-applicable", "not-observed"):
        _add_message(
            case, "skipped", f"{WORDS[outcome.verdict]}: {outcome.text}" if outcome.text else WORDS[outcome.verdict]
        )


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(filter(None, lines))


def _add_message(case: Element, kind: str, message: str, type: str = "", text: str = "") -> None:
    entry = SubElement(case, kind, message=visible(message))
    if type:
        entry.set("type", type)
    entry.text = visible(text) or None


def _count(suite: Element) -> None:
    """Set the counts of a suite: tests, failures, errors, skipped."""
    for kind, name in (("testcase", "tests"), ("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(name, str(len(list(suite.iter(kind)))))
