"""SARIF 2.1.0: what the standard asks for of the parts that are used, and fingerprints that stay."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings

from accord.check.engine.report import Finding, Report
from accord.check.reports.sarif import fingerprint, sarif

from tests.check.reports import samples
from tests.check.reports.hostile import TEXTS

MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
URI = {"type": "string", "format": "uri-reference", "minLength": 1}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation", "region"],
            "properties": {"artifactLocation": {"type": "object", "required": ["uri"], "properties": {"uri": URI}}},
        },
        "logicalLocations": {"type": "array", "uniqueItems": True},
    },
}
RULE = {
    "type": "object",
    "required": ["id", "shortDescription", "help"],
    "properties": {
        "shortDescription": MESSAGE,
        "help": MESSAGE,
        "helpUri": {"type": "string", "format": "uri"},
        "defaultConfiguration": {"type": "object", "properties": {"level": LEVEL}},
    },
}
RESULT = {
    "type": "object",
    "required": ["ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"],
    "properties": {
        "level": LEVEL,
        "message": MESSAGE,
        "locations": {"type": "array", "minItems": 1, "items": LOCATION},
        "suppressions": {"type": "array", "items": {"properties": {"kind": {"enum": ["inSource", "external"]}}}},
    },
}
RUN = {
    "type": "object",
    "required": ["tool", "results", "invocations"],
    "properties": {
        "tool": {"properties": {"driver": {"required": ["name", "rules"], "properties": {"rules": {"items": RULE}}}}},
        "results": {"type": "array", "items": RESULT},
        "invocations": {"items": {"type": "object", "required": ["executionSuccessful"]}},
    },
}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "properties": {"version": {"const": "2.1.0"}, "runs": {"type": "array", "minItems": 1, "items": RUN}},
}
"""Of the official schema, the parts that are used; the whole of it was tried on these reports too."""

VALIDATOR = jsonschema_rs.validator_for(SCHEMA, validate_formats=True)


def read(report: Report) -> dict[str, Any]:
    log: dict[str, Any] = msgspec.json.decode(sarif(report))
    VALIDATOR.validate(log)
    run: dict[str, Any] = log["runs"][0]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    return run


def test_each_finding_is_a_result_with_its_rule() -> None:
    run = read(samples.realistic())
    assert [(each["ruleId"], each["level"]) for each in run["results"]] == [
        ("tools/unknown-name", "error"),
        ("http/origin", "error"),
        ("tools/cursors", "warning"),
        ("stdio/only-messages", "error"),
    ]
    assert run["results"][0]["properties"]["evidence"] == list(samples.EVIDENCE)
    assert run["tool"]["driver"]["rules"][0]["helpUri"].startswith(samples.SPECIFICATION)


def test_what_is_known_is_suppressed() -> None:
    results = read(samples.realistic())["results"]
    assert [bool(each.get("suppressions")) for each in results] == [False, False, False, True]


def test_two_findings_of_one_rule_share_its_description() -> None:
    twice = [samples.finding("a/b", text="one"), samples.finding("c/d"), samples.finding("a/b", text="other")]
    run = read(samples.report([], twice))
    assert [each["id"] for each in run["tool"]["driver"]["rules"]] == ["a/b", "c/d"]
    assert len(run["results"]) == 3


@pytest.mark.parametrize(
    ("target", "uri"),
    [
        ("python -u src/weather.py --port 1", "src/weather.py"),
        ("./weather.py:server", "weather.py"),
        ("node dist/index.js", "dist/index.js"),
        ("https://example.com/mcp", "https://example.com/mcp"),
        ("uvx mcp-server-git", "uvx%20mcp-server-git"),
        ("", "target"),
    ],
)
def test_a_result_names_the_file_that_was_started_or_the_target(target: str, uri: str) -> None:
    run = read(samples.report([], [samples.finding("a/b")], target=target))
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def prints(report: Report) -> dict[str, str]:
    return {each.rule: fingerprint(each, report) for each in report.findings}


def changed(finding: Finding, **given: Any) -> Finding:
    return msgspec.structs.replace(finding, **given)


def test_a_fingerprint_stays_whatever_else_is_found() -> None:
    report = samples.realistic()
    again = [
        changed(each, text="other words", evidence=("← 9",), known=True, repeat="") for each in report.findings[1:]
    ]
    later = msgspec.structs.replace(report, findings=tuple(again), started="2027-01-01T00:00:00Z", seconds=1.0)
    assert prints(later).items() <= prints(report).items()


def test_findings_that_have_another_cause_have_another_fingerprint() -> None:
    findings = [samples.finding("a/b", symptom="silent"), samples.finding("a/b", symptom="gone")]
    report = samples.report([], findings)
    assert len({fingerprint(each, report) for each in findings}) == 2


@given(TEXTS)
@settings(max_examples=60)
def test_any_text_gives_a_sound_log_without_links_or_places_to_fill(text: str) -> None:
    run = read(samples.filled(text))
    for result in run["results"]:
        message = result["message"]["text"]
        assert "](" not in message
        assert "{" not in message.replace("{{", "")
        assert "}" not in message.replace("}}", "")
