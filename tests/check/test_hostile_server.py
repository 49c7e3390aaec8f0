"""A server that floods, falls silent, asks for odd things or gives its secrets away does not get the better of us."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord.check.engine.case_runner import VisitBudget
from accord.check.engine.findings import repeat_command
from accord.check.engine.report import Outcome, Report, TransportName, Visit
from accord.check.engine.rule import Rule
from accord.check.engine.server_target import ServerTarget
from accord.check.probes.client_messages import elicitation_result
from accord.check.probes.message_log import MemoryBudget, MessageLog
from accord.check.server import check_server
from accord.check.settings import CheckSettings
from accord.check.wires.http import HTTPWire
from accord.client.target import Command
from accord.errors import ConnectError
from accord.wire.transcript import RECEIVED

from tests.check import mutants
from tests.measure import slowness

SERVER = """
import json, os, sys
def say(message): sys.stdout.write(json.dumps(message) + "\\n"); sys.stdout.flush()
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "hostile", "version": "1"}}
    elif message["method"] == "ping":
        answer["result"] = {}
    else:
        BODY
    say(answer)
"""
FLOODS = """
        while True:
            say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 1000}})
"""
TELLS = 'answer |= {"error": {"code": 5, "message": os.environ["API_KEY"] + " is my key"}, "result": {}}'
IS_SILENT = "continue"


async def check(folder: Path, body: str, *, env: dict[str, str] | None = None, **settings: Any) -> Report:
    file = folder / "hostile.py"
    file.write_text(SERVER.replace("BODY", body.strip()))
    command = Command((sys.executable, str(file)), env)
    wanted = CheckSettings(revisions=("2025-11-25",), **settings)
    return await check_server(command, wanted, label="python hostile.py")


async def test_a_server_that_sends_more_than_can_be_stored_ends_the_check_with_a_failure(tmp_path: Path) -> None:
    report = await check(tmp_path, FLOODS, only=("tools",))
    assert "sent more than" in report.visits[0].error
    assert report.failed
    assert not any(each.verdict in ("fail", "warn") for each in report.outcomes), "it was not judged"


async def test_a_server_that_is_silent_again_and_again_is_not_waited_for_each_time(tmp_path: Path) -> None:
    report = await check(tmp_path, IS_SILENT, timeout=0.2)
    assert "often did not respond" in report.visits[0].error
    skipped = [each for each in report.outcomes if "often did not respond" in each.text]
    assert {each.verdict for each in skipped} == {"not-observed"}
    assert len(skipped) > 50


async def test_a_server_that_never_ends_by_itself_is_not_given_the_time_of_a_start_each_time() -> None:
    program = [sys.executable, str(Path(mutants.__file__).with_name("program.py")), "ignores the end and SIGTERM"]
    only = ("stdio/exits", "stdio/terminates", "lifecycle/initialize-twice", "lifecycle/other-version")
    settings = CheckSettings(revisions=("2025-11-25",), only=only, timeout=2, opening=100)
    report = await check_server(program, settings, label="program")
    assert [each.rule for each in report.findings] == ["stdio/exits", "stdio/terminates"]
    assert report.findings[0].cases[0] == "after the handshake, while idle"
    waited = [each for each in report.outcomes if each.rule == "stdio/exits" and each.verdict == "not-observed"]
    assert waited, "one finding is enough: the other cases do not wait as long again"
    assert report.seconds < settings.opening, "no end was waited for that long"


async def test_the_environment_of_a_server_is_in_no_report(tmp_path: Path) -> None:
    report = await check(tmp_path, TELLS, env={"API_KEY": "kept-from-all"}, only=("envelope", "tools"))
    text = msgspec.json.encode(report).decode()
    assert "is my key" in text, "it told it"
    assert "kept-from-all" not in text


async def test_a_password_and_a_query_stand_in_no_error() -> None:
    with pytest.raises(ConnectError) as raised:
        await check_server("http://me:very-secret@127.0.0.1:9/mcp?key=query-secret", CheckSettings(only=("ping",)))
    assert "secret" not in str(raised.value)
    assert ServerTarget("http://me:very-secret@127.0.0.1:9/mcp?key=x").display_name("http://me:very-secret@h/") == (
        "http://127.0.0.1:9/mcp"
    )


def test_what_a_url_has_beside_its_path_is_hidden_however_it_comes_back() -> None:
    secrets = ServerTarget("http://me:p%40ssword@localhost/mcp?key=query-secret", {"X-Key": "of-the-header"}).secrets
    for text in ("p%40ssword", "p@ssword", "query-secret", "of-the-header", "bWU6cEBzc3dvcmQ="):
        assert text not in secrets.redact(f"Method not found: {text}!")


def test_name_and_password_of_a_url_are_sent_as_a_header() -> None:
    record = MessageLog("2025-11-25", "http")
    wire = HTTPWire("http://me:p%40ss@localhost:1/mcp?a=1", record)
    assert wire.url == "http://localhost:1/mcp?a=1"
    assert wire.build_headers({})["authorization"] == "Basic bWU6cEBzcw=="


def test_what_small_bytes_take_in_memory_counts() -> None:
    room = MemoryBudget(1 << 20)
    record = MessageLog("2025-11-25", "stdio", room=room)
    record.add(RECEIVED, b'{"a":' * 900 + b"1" + b"}" * 900)
    assert not room.exhausted
    record.add(RECEIVED, b"[" * 20_000 + b"]" * 20_000)
    assert "1 MB" in room.exhausted


def test_a_budget_is_spent_by_waiting_in_vain_and_not_by_quick_failures() -> None:
    budget = VisitBudget(1.0, MemoryBudget())
    for _ in range(1_000):
        budget.charge_failure(0.9)
    assert not budget.exhausted
    for _ in range(15):
        budget.charge_failure(1.0)
    assert "timeouts took 15 s" in budget.exhausted


@pytest.mark.parametrize(
    "field",
    [
        {"enum": {"a": 1}},
        {"enum": "x"},
        {"oneOf": [1]},
        {"anyOf": {"const": 1}},
        {"minLength": "x"},
        {"minLength": 10**12},
        {"minLength": -1},
        {"type": ["string"]},
        {"type": "array", "minItems": 1, "items": {"oneOf": 7}},
    ],
)
def test_any_form_is_filled_in(field: dict[str, Any]) -> None:
    answer = elicitation_result({"requestedSchema": {"properties": {"a": field, "b": {"enum": ["x"]}}}})
    assert answer["content"]["b"] == "x"
    assert len(msgspec.json.encode(answer)) < 200_000


RULE = Rule("tools/unknown-name", "must", len, at="x")


def outcome(transport: TransportName = "stdio") -> Outcome:
    rule = "tools/unknown-name"
    return Outcome(rule=rule, case="x", verdict="fail", level="must", revision="2025-11-25", transport=transport)


def test_the_command_that_repeats_has_what_the_command_line_knows() -> None:
    settings = CheckSettings(call_tools=("one", "the other"), again=("--header", "Authorization=...", "--cwd", "/a b"))
    command = repeat_command(outcome(), {RULE.id: RULE}, "python s.py", settings, "server")
    assert command.endswith("--call-tool one --call-tool 'the other' --header Authorization=... --cwd '/a b'")


def test_rules_that_only_read_are_repeated_with_their_cases_or_with_all() -> None:
    rule, asks = Rule("tools/unknown-name", "must", len, at="x"), Rule("ping/answered", "must", len, at="x")
    rule.case("x", kind="reading")(len)
    asks.case("a ping", kind="shared")(len)
    rules = {rule.id: rule, asks.id: asks}
    for during in (None, ("nobody's",)):
        read = msgspec.structs.replace(outcome(), during=during)
        command = repeat_command(read, rules, "python s.py", CheckSettings(), "server")
        assert command == "accord check 'python s.py' --revision 2025-11-25 --transport stdio"
        some = repeat_command(read, rules, "python s.py", CheckSettings(only=("tools", "ping")), "server")
        assert "--only tools --only ping" in some
    for during, only in (((), ""), (("a ping",), " --only ping/answered")):
        read = msgspec.structs.replace(outcome(), during=during)
        command = repeat_command(read, rules, "python s.py", CheckSettings(), "server")
        assert f" --only tools/unknown-name{only} --transport" in command


async def test_messages_in_the_course_of_a_case_are_repeated_with_it(tmp_path: Path) -> None:
    report = await check(tmp_path, "answer['error'] = {'code': 1, 'message': 'a\\nb'}", only=("codes", "errors"))
    found = next(each for each in report.findings if each.rule == "codes/one-sentence")
    case = next(each.during for each in report.outcomes if each.rule == found.rule and each.verdict == "warn")
    assert case
    assert found.repeat.count("--only") == 1 + len(case)


def test_no_command_repeats_what_was_found_in_this_process() -> None:
    assert (
        repeat_command(outcome("memory"), {RULE.id: RULE}, "a server in this process", CheckSettings(), "server") == ""
    )


def test_a_visit_that_ended_early_fails_the_check() -> None:
    visit = Visit(revision="2025-11-25", transport="stdio", score=100, seconds=1, counts={}, error="it ended")
    parts: dict[str, Any] = {"role": "server", "target": "x", "name": "", "version": "1", "started": "", "score": 100}
    report = Report(**parts, seconds=1, visits=(visit,), findings=(), outcomes=())
    assert report.failed
    assert not msgspec.structs.replace(report, visits=()).failed


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve the opening, and then bodies without an end."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.I)
        message = json.loads(await reader.readexactly(int(length[1]))) if length else {}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
        answer = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": hello}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
        writer.write(answer if message.get("method") == "initialize" else b"")
        while message.get("method") == "ping":
            writer.write(b" " * 65_536)
            await writer.drain()
        await writer.drain()
    writer.close()


async def test_a_body_without_an_end_is_left_in_time() -> None:
    server = await asyncio.start_server(endless, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        report = await check_server(url, CheckSettings(revisions=("2025-11-25",), only=("ping/answered",)))
    assert report.failed, "for silence, or for more than is kept, whichever comes first"
    assert report.seconds < 60 * slowness()


async def test_a_stream_that_ends_again_and_again_is_taken_up_again_ever_more_slowly() -> None:
    came: list[str] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.I)
            message = json.loads(await reader.readexactly(int(length[1]))) if length else {}
            came.append(head.decode().partition(" ")[0])
            hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
            answer = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": hello})
            event = f"data: {answer}" if message.get("method") == "initialize" else f"id: {len(came)}\ndata:"
            body = f"{event}\n\n".encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + body)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        settings = CheckSettings(revisions=("2025-11-25",), only=("ping/answered",), whole_traffic=False, timeout=1)
        await check_server(url, settings)
    assert came.count("GET") > 3, "it was taken up again"
    assert came.count("GET") < 60
