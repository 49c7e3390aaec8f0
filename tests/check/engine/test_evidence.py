"""Evidence is a reference: each finding of a recorded check names the entries of the session file that it is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accord.check.engine.report import Finding, Report, TransportName
from accord.check.server import check_server
from accord.check.settings import CheckSettings
from accord.transport.recording import SessionRecorder
from accord.transport.session_writer import SessionFileWriter
from accord.wire.session_file import Entry, HTTPEntry, MessageEntry, RemarkEntry, SkippedEntry, read_session

from tests.check.mutants.change import Change, Changed
from tests.check.mutants.correct_server import right
from tests.check.mutants.table import MUTANTS
from tests.check.mutants.test_mutants import check

LONG = "x" * 10_000


def recorder(file: Path) -> SessionRecorder:
    record = SessionRecorder(SessionFileWriter(file))
    record.begin("a check")
    return record


def entries(file: Path, finding: Finding) -> list[Entry]:
    """The entries of a session file that a finding names."""
    with file.open("rb") as lines:
        every = read_session(lines).entries
    return [every[number] for number in finding.entries]


async def found(rule: str, name: str, transport: TransportName, file: Path) -> Finding:
    """The finding of a mutant that breaks a rule, in a recorded check."""
    mutant = next(each for each in MUTANTS if (each.rule, each.name) == (rule, name))
    settings = CheckSettings(revisions=(mutant.revision,), only=(rule,), timeout=20, jobs=4, record=recorder(file))
    (finding,) = (await check(mutant, settings, transport)).findings
    return finding


async def error_of_logging(text: str, **settings: Any) -> Report:
    change = Change()

    @change.answers("logging/setLevel")
    def _(request: Any, answer: Any) -> Any:
        return {"jsonrpc": "2.0", "id": answer["id"], "error": {"code": -32603, "message": text}}

    only = ("logging/set-level", "codes/own")
    return await check_server(
        Changed(right(), change), CheckSettings(revisions=("2025-11-25",), only=only, timeout=1, **settings)
    )


async def test_a_finding_names_the_messages_in_the_session_file(tmp_path: Path) -> None:
    file = tmp_path / "check.jsonl"
    report = await error_of_logging(LONG, record=recorder(file))
    (finding,) = (each for each in report.findings if each.rule == "logging/set-level")
    sent, received = entries(file, finding)
    assert isinstance(sent, MessageEntry)
    assert isinstance(received, MessageEntry)
    assert b"logging/setLevel" in sent.data
    assert LONG.encode() in received.data  # whole, while the line of the report is shortened
    assert all(len(line) < 3_000 for line in finding.evidence)


async def test_each_outcome_names_its_own_messages(tmp_path: Path) -> None:
    report = await error_of_logging("no", record=recorder(tmp_path / "check.jsonl"))
    failed = [each for each in report.outcomes if each.verdict in ("fail", "warn")]
    assert failed
    assert all(each.entries for each in failed)
    assert not any(each.entries for each in report.outcomes if each.verdict == "pass")


async def test_a_check_that_is_not_recorded_names_no_entries() -> None:
    report = await error_of_logging("no")
    assert any(each.evidence for each in report.findings)
    assert not any(each.entries for each in report.findings)


async def test_a_finding_over_http_names_the_heads_of_request_and_response(tmp_path: Path) -> None:
    rule, name = next((each.rule, each.name) for each in MUTANTS if each.rule == "http/accepted")
    file = tmp_path / "check.jsonl"
    named = entries(file, await found(rule, name, "http", file))
    assert [each.direction for each in named if isinstance(each, HTTPEntry)] == ["sent", "received"]


async def test_the_bytes_of_a_raw_connection_are_in_the_session_file(tmp_path: Path) -> None:
    file = tmp_path / "check.jsonl"
    finding = await found("http/nonsense", "whatever comes is a request", "http", file)
    remarks = [each.text for each in entries(file, finding) if isinstance(each, RemarkEntry)]
    assert remarks[:2] == [r"→ b'\r\n\r\n'", r"← b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'"]


async def test_a_reading_rule_names_the_messages_that_it_reports(tmp_path: Path) -> None:
    change = Change()

    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        return {"jsonrpc": "2.0", "id": answer["id"], "result": LONG}

    file = tmp_path / "check.jsonl"
    settings = CheckSettings(revisions=("2025-11-25",), only=("envelope",), timeout=1, record=recorder(file))
    report = await check_server(Changed(right(), change), settings)
    named = [each for finding in report.findings for each in entries(file, finding)]
    assert named
    assert all(isinstance(each, MessageEntry | SkippedEntry) for each in named)
    assert any(LONG.encode() in each.data for each in named if isinstance(each, MessageEntry))
