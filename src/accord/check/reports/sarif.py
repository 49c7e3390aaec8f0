"""SARIF 2.1.0 for code scanning: a result per finding, with a fingerprint that is stable between runs."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from accord.check.engine.report import Finding, Place, Report
from accord.check.reports.as_json import encode_indented
from accord.check.reports.html import is_web
from accord.check.reports.wording import place_text, places_text, worst_first
from accord.visible_text import encodable, single_line, truncate, visible

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"must": "error", "should": "warning", "may": "note"}
_FILE = re.compile(r"(?!-|\w+:)(?:\./)?([\w./-]+\.(?:py|[cm]?[jt]s|json|toml|jar|php|rb|sh))(?::\w+)?")
"""An argument of a command line that names a source file: `src/weather.py:server`."""

_LONGEST = 4_000
"""The maximum length in characters of a message or a line of evidence."""


def sarif(report: Report) -> str:
    """Return the log, with one run."""
    findings = worst_first(report.findings)
    rules = list(dict.fromkeys(each.rule for each in findings))
    run = {
        "tool": {"driver": {"name": "accord check", "version": report.version, "rules": _rules(findings)}},
        "automationDetails": {"id": f"accord-check/{visible(report.target)}/"},
        "invocations": [_invocation(report)],
        "columnKind": "unicodeCodePoints",
        "results": [_result(each, rules.index(each.rule), report) for each in findings],
        "properties": {"score": report.score, "role": report.role, "peer": visible(report.name)},
    }
    return encode_indented(encodable({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}))


def _rules(findings: list[Finding]) -> list[dict[str, Any]]:
    return [_rule(each) for each in {each.rule: each for each in reversed(findings)}.values()][::-1]


def _rule(finding: Finding) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": finding.rule,
        "shortDescription": {"text": _message(finding.says)},
        "help": {"text": _message("\n".join([finding.says, *finding.sources]))},
        "defaultConfiguration": {"level": _LEVELS[finding.level]},
        "properties": {"tags": ["mcp", finding.level, finding.rule.partition("/")[0]]},
    }
    if web := [each for each in finding.sources if is_web(each)]:
        described["helpUri"] = web[0]
    return described


def _result(finding: Finding, index: int, report: Report) -> dict[str, Any]:
    seen = f"{finding.text}\nSeen {places_text(finding.places, report.visits)}."
    cause = f"\nLikely cause: {finding.cause}" if finding.cause else ""
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVELS[finding.level],
        "message": {"text": _message(f"{seen}{cause}")},
        "locations": [_location(report.target, finding.places)],
        "partialFingerprints": {"accordFinding/v1": fingerprint(finding, report)},
        "properties": {
            "repeat": visible(finding.repeat),
            "also": list(finding.also),
            "cases": [visible(each) for each in finding.cases],
            "evidence": [truncate(visible(each), _LONGEST) for each in finding.evidence],
        },
    }
    if finding.known:
        result["suppressions"] = [{"kind": "external", "justification": "The baseline accepts it."}]
    return result


def fingerprint(finding: Finding, report: Report) -> str:
    """Return the fingerprint of a finding, from its rule and symptom, independent of other findings."""
    parts = (report.role, finding.rule, finding.symptom or finding.rule)
    return sha256("\n".join(parts).encode("utf-8", "backslashreplace")).hexdigest()


def _location(target: str, places: tuple[Place, ...]) -> dict[str, Any]:
    """Return the location that code scanning requires: the file of the server, or else the target."""
    files = [found for word in target.split() if (found := _FILE.fullmatch(word))]
    given = quote(target, safe=":/?=&%") if is_web(target) else quote(single_line(target))
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": files[0][1] if files else given or "target"},
            "region": {"startLine": 1},
        },
        "logicalLocations": [
            {"fullyQualifiedName": place_text(each.revision, each.transport), "kind": "module"} for each in places
        ],
    }


def _invocation(report: Report) -> dict[str, Any]:
    errors = [each for each in report.visits if each.error]
    notifications = [
        (f"{place_text(each.revision, each.transport)} ended early: {each.error}", "error") for each in errors
    ]
    notifications += [
        (f"{place_text(visit.revision, visit.transport)} left out: {each}", "note")
        for visit in report.visits
        for each in visit.left_out
    ]
    notifications += [(f"{each} is in the baseline, but is no longer found", "warning") for each in report.stale]
    return {
        "executionSuccessful": not errors,
        "startTimeUtc": report.started,
        "toolExecutionNotifications": [
            {"level": level, "message": {"text": _message(text)}} for text, level in notifications
        ],
    }


def _message(text: str) -> str:
    """Return a text as a message, with braces doubled (SARIF 3.11.5) and links disabled (3.11.6)."""
    plain = truncate(visible(text), _LONGEST).replace("](", "] (")
    return plain.replace("{", "{{").replace("}", "}}") or "(no text)"
