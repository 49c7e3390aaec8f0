"""Faults of an SDK are told apart from those of the server that is made with it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord.check.engine.report import Finding, Report
from accord.check.engine.rule import Violation
from accord.check.engine.sdks import attribute_to_sdk, detect_sdk, known_sdks
from accord.check.probes.message_log import MessageLog
from accord.check.rules import server_rules
from accord.check.rules.capabilities import capabilities_only_declared
from accord.check.server import check_server
from accord.check.settings import CheckSettings
from accord.wire.transcript import RECEIVED, SENT

from tests.check.reports import samples


def answered(method: str, **error: Any) -> MessageLog:
    """A conversation in which a request gets this error."""
    record = MessageLog("2025-11-25", "stdio")
    record.add(SENT, msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method}))
    record.add(RECEIVED, msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "error": error}))
    return record


@pytest.mark.parametrize(
    ("error", "name"),
    [
        ({"code": -32602, "message": "Invalid request parameters", "data": ""}, "mcp 1.x"),
        ({"code": -32601, "message": "Method not found", "data": "nobody"}, "mcp 2.x"),
        ({"code": -32602, "message": "Resource not found: 'x://y'"}, "fastmcp"),
        ({"code": -32602, "message": "MCP error -32602: Resource x not found"}, "TypeScript SDK 1.x"),
        ({"code": -32602, "message": "MCP error -32602: Invalid tools/call request: [\n  {"}, "TypeScript SDK 1.x"),
        ({"code": -32602, "message": "Invalid tools/call request: [\n  {"}, "TypeScript SDK 2.x"),
        ({"code": -32602, "message": "Invalid arguments for prompt p: topic: Invalid input"}, "TypeScript SDK 2.x"),
        ({"code": -32603, "message": '[\n  {\n    "expected": "string",'}, "TypeScript SDK"),
        ({"code": -32601, "message": "Method not found"}, None),
    ],
)
def test_an_sdk_is_recognised_by_its_wording(error: dict[str, Any], name: str | None) -> None:
    sdk = detect_sdk([answered("nobody", **error)])
    assert (sdk and sdk.name) == name


def test_an_sdk_with_wording_of_its_earlier_major_version_is_recognised_as_the_newer() -> None:
    kept = answered("tools/list", code=-32602, message="Invalid request parameters", data="")
    own = answered("nobody", code=-32601, message="Method not found", data="nobody")
    for records in ([kept, own], [own, kept]):
        sdk = detect_sdk(records)
        assert sdk is not None
        assert sdk.name == "mcp 2.x"


ON_FASTMCP = """
import json, sys, time
errors = {"prompts/get": (-32602, "Unknown prompt: 'nobody'", None)}
capabilities = {"tools": {}, "prompts": {}}
for line in sys.stdin:
    message = json.loads(line)
    if isinstance(message, list) or "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    match message["method"]:
        case "initialize":
            info = {"name": "shop", "version": "1"}
            answer["result"] = {"protocolVersion": "2025-03-26", "capabilities": capabilities, "serverInfo": info}
        case "ping":
            answer["result"] = {}
        case "tools/list" | "prompts/list" as method:
            answer["result"] = {method.partition("/")[0]: []}
        case method:
            code, text, data = errors.get(method, (-32601, "Method not found", method))
            answer["error"] = {"code": code, "message": text, "data": data}
    print(json.dumps(answer), flush=True)
"""


@pytest.mark.parametrize("selection", [{"only": ("batch",)}, {"only": ("batch", "errors/method-not-found")}])
async def test_a_fault_has_the_same_owner_whatever_rules_are_selected(tmp_path: Path, selection: Any) -> None:
    program = tmp_path / "server.py"
    program.write_text(ON_FASTMCP)
    settings = CheckSettings(revisions=("2025-03-26",), timeout=2, **selection)
    done = await check_server({"command": sys.executable, "args": [str(program)]}, settings)
    assert {each.rule: each.sdk for each in done.findings if each.verdict == "fail"} == {"batch/served": "fastmcp"}
    assert not done.fails_on("mine")


async def test_an_sdk_is_recognised_though_a_case_takes_more_than_half_of_the_timeout(tmp_path: Path) -> None:
    """It answers each message in time, and the case has five of them."""
    program = tmp_path / "server.py"
    program.write_text(ON_FASTMCP.replace("        case method:\n", SLOW_CALL))
    settings = CheckSettings(revisions=("2025-03-26",), timeout=2, only=("batch",))
    done = await check_server({"command": sys.executable, "args": [str(program)]}, settings)
    assert {each.rule: each.sdk for each in done.findings if each.verdict == "fail"} == {"batch/served": "fastmcp"}


SLOW_CALL = """
        case "tools/call":
            time.sleep(0.25)
            answer["result"] = {"content": [{"type": "text", "text": "Unknown tool"}], "isError": True}
        case method:
"""

SILENT = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    methods = sys.argv[1]
    with open(methods, "a") as log:
        print("batch" if isinstance(message, list) else message.get("method"), file=log)
    if isinstance(message, list) or "id" not in message:
        continue
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-03-26", "capabilities": {"tools": {}, "prompts": {}, "resources": {}}}
        result["serverInfo"] = {"name": "shop", "version": "1"}
    elif message["method"] == "ping":
        result = {}
    elif message["method"].endswith("/list"):
        result = {message["method"].partition("/")[0]: []}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize(("only", "unanswered"), [("ping", 0), ("batch/served", 1)])
async def test_messages_that_show_the_sdk_cost_at_most_one_timeout(tmp_path: Path, only: str, unanswered: int) -> None:
    program, sent = tmp_path / "server.py", tmp_path / "methods"
    program.write_text(SILENT)
    settings = CheckSettings(revisions=("2025-03-26",), timeout=1, only=(only,))
    await check_server({"command": sys.executable, "args": [str(program), str(sent)]}, settings)
    known = ("ping", "batch", "initialize", "None")
    others = [each for each in sent.read_text().split() if each not in known and not each.endswith("/list")]
    assert len([each for each in others if not each.startswith("notifications/")]) == unanswered, others


def report(*findings: Finding, name: str = "shop 1.0") -> Report:
    sdk = next(each for each in known_sdks() if each.name == "mcp 1.x")
    found = samples.report([samples.outcome("a/b", "fail")], list(findings))
    return attribute_to_sdk(msgspec.structs.replace(found, name=name), sdk)


def test_a_known_fault_bears_the_name_of_the_sdk_and_another_does_not() -> None:
    cursor = samples.finding("pagination/invalid-cursor")
    own = samples.finding("tools/unique-names")
    done = report(cursor, own)
    assert [each.sdk for each in done.findings] == ["mcp 1.x", ""]
    assert done.fails_on("any")
    assert done.fails_on("mine")


def test_a_fault_of_the_sdk_alone_does_not_fail_a_check_on_mine() -> None:
    done = report(samples.finding("pagination/invalid-cursor"), name="shop 1.30.0")
    assert [each.sdk for each in done.findings] == ["mcp 1.30.0"]
    assert done.fails_on("any")
    assert not done.fails_on("mine")


def test_a_rule_of_the_table_that_is_broken_in_another_way_is_the_server_s_own() -> None:
    other = samples.finding("tools/unknown-name-code", text="it is answered with nothing")
    assert [each.sdk for each in report(other).findings] == [""]


def test_a_fault_that_is_seen_where_the_sdk_does_not_have_it_is_the_server_s_own() -> None:
    places = (("2025-11-25", "stdio"), ("2025-11-25", "http"))
    assert [each.sdk for each in report(samples.finding("errors/invalid-request", *places)).findings] == [""]


def test_the_table_names_rules_that_there_are() -> None:
    rules = {rule.id for rule in server_rules()}
    assert {fault.rule for sdk in known_sdks() for fault in sdk.faults} <= rules


def test_the_table_knows_an_undeclared_notification_by_the_text_of_its_rule() -> None:
    log = MessageLog("2025-11-25", "stdio")
    log.add(RECEIVED, b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}')
    with pytest.raises(Violation) as info:
        capabilities_only_declared.cases[0].run([log])
    (fault,) = {
        fault.seen
        for sdk in known_sdks()
        for fault in sdk.faults
        if fault.rule == capabilities_only_declared.id and fault.seen
    }
    assert re.search(fault, str(info.value))
