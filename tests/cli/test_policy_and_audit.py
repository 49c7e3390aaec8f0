"""`accord policy explain` and `accord audit verify`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from accord.cli.commands import accord
from accord.host import AuditEvent, AuditLog

RULES: list[dict[str, Any]] = [
    {"name": "reading", "decision": "allow", "tools": "read_*", "arguments": {"path": {"under": "/srv/data"}}},
    {"name": "no secrets", "decision": "deny", "arguments": {"path": {"under": "/srv/data/secret"}}},
    {"name": "trusted", "decision": "allow", "annotations": {"read_only": True}},
    {"name": "ann", "decision": "ask", "principal": "ann"},
]


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(accord, list(arguments))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {}, "accord": {"policy": RULES}}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_deciding_rule_is_first() -> None:
    result = invoke("policy", "explain", "files", "read_text", "path=/srv/data/x")
    unknown = "annotation read_only is not known: the server is not trusted"
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "allow: the rule 'reading' allows the call",
        "  allow  'reading' matches: tool read_text matches and path is under /srv/data",
        "  ask    'ann' does not match: principal (none) does not match ann",
        "  deny   'no secrets' does not match: path is not under /srv/data/secret",
        f"  allow  'trusted' does not match, because this is unclear: {unknown}",
    ]


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (["path=/srv/data/secret/x"], "deny: the rule 'no secrets' denies the call"),
        (['{"path": "/srv/data/../data/secret/x"}'], "deny: the rule 'no secrets' denies the call"),
        (['path:="/srv/data/x"'], "allow: the rule 'reading' allows the call"),
        (["path=x"], "deny: the rule 'no secrets' denies the call"),
        (["path=x", "--folder", "/srv/data"], "allow: the rule 'reading' allows the call"),
        ([], "ask: no rule matches, so the call needs an approval"),
        (["path=/srv/data/x", "--principal", "ann"], "ask: the rule 'ann' asks for an approval of the call"),
        (["--annotations", '{"readOnlyHint": true}'], "allow: the rule 'trusted' allows the call"),
    ],
)
def test_a_call_has_arguments_a_principal_and_annotations(arguments: list[str], first: str) -> None:
    result = invoke("policy", "explain", "files", "read_text", *arguments)
    assert result.stdout.splitlines()[0] == first


def test_the_verdict_as_json() -> None:
    verdict = json.loads(invoke("policy", "explain", "files", "read_text", "--json").stdout)
    assert (verdict["decision"], verdict["rule"], len(verdict["version"])) == ("ask", "", 64)
    assert [rule["rule"] for rule in verdict["rules"]] == ["ann", "no secrets", "reading", "trusted"]


def test_control_characters_of_a_call_are_escaped() -> None:
    assert "\x1b" not in invoke("policy", "explain", "\x1b[31m", "x\x1b", "--principal", "\x1b").stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--config", "missing.json"], "missing.json: No such file"),
        (["path"], "is not key=value"),
        (["{"], "Expecting"),
        (["--annotations", "[]"], "give them as a tool has them"),
    ],
)
def test_mistakes_of_the_command_line_are_explained(arguments: list[str], expected: str) -> None:
    result = invoke("policy", "explain", "files", "read_text", *arguments)
    assert result.exit_code == 2
    assert expected in result.stderr


def test_an_invalid_rule_is_an_error(folder: Path) -> None:
    (folder / "mcp.json").write_text(json.dumps({"accord": {"policy": [{"name": "x", "decision": "never"}]}}))
    result = invoke("policy", "explain", "files", "read_text")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "mcp.json:1: rule 1 ('x')" in result.stderr


def write(path: Path, *, anchor: Path | None = None) -> None:
    async def run() -> None:
        async with AuditLog(path, anchor=anchor) as audit:
            for number in range(3):
                await audit.append(AuditEvent(kind="sending", call=str(number)))

    asyncio.run(run())


@pytest.mark.parametrize("name", ["audit.jsonl", "audit.db"])
def test_an_intact_log(folder: Path, name: str) -> None:
    write(folder / name, anchor=folder / "anchor")
    result = invoke("audit", "verify", name, "--anchor", "anchor")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{name}: intact, 3 entries\n  entries after the anchor: 0\n  last entry: ")
    assert "no anchor was given" in invoke("audit", "verify", name).stdout


def test_a_changed_log(folder: Path) -> None:
    path = folder / "audit.jsonl"
    write(path, anchor=folder / "anchor")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], lines[3]]))
    result = invoke("audit", "verify", "audit.jsonl")
    assert result.exit_code == 1
    assert result.stdout.startswith("audit.jsonl: changed, 3 entries\n  missing    entry 2 is missing\n")
    path.write_bytes(b"".join(lines[:2]))
    result = invoke("audit", "verify", "audit.jsonl", "--anchor", "anchor", "--json")
    assert result.exit_code == 1
    assert [problem["kind"] for problem in json.loads(result.stdout)["problems"]] == ["cut off"]


def test_an_incomplete_last_entry_has_its_own_exit_code(folder: Path) -> None:
    path = folder / "audit.jsonl"
    write(path)
    path.write_bytes(path.read_bytes()[:-9])
    result = invoke("audit", "verify", "audit.jsonl")
    assert result.exit_code == 6
    assert "the last entry is incomplete" in result.stdout


def test_a_log_that_cannot_be_read_is_an_error() -> None:
    result = invoke("audit", "verify", "missing.jsonl")
    assert result.exit_code == 2
    assert "missing.jsonl cannot be read: No such file" in result.stderr
