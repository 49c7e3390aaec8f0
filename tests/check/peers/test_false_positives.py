"""What peers were found to do that is odd, slow or old, and not wrong: no finding comes of it."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from accord import Context, Server
from accord.check.engine.rule import Violation
from accord.check.engine.server_target import ServerTarget
from accord.check.engine.session_factory import SessionFactory
from accord.check.probes.message_log import MessageLog
from accord.check.probes.pending_answer import Answer
from accord.check.rules.http_streams import http_answered
from accord.check.rules.stdio import stdio_only_messages
from accord.check.server import check_server
from accord.check.settings import CheckSettings
from accord.check.wires.http import HTTPWire
from accord.wire.transcript import RECEIVED, SENT

from tests.check.mutants.change import Change, Changed
from tests.check.mutants.correct_server import right
from tests.clock import without_waiting
from tests.transport.http.site import Visit, older, quiet, site

STEP = 5.0
"""How long the busy tool is silent, in seconds."""


@without_waiting
async def test_a_server_that_is_silent_to_discover_is_of_an_earlier_revision() -> None:
    change = Change()
    change.heard(lambda message: None if message.get("method") == "server/discover" else message)
    settings = CheckSettings(only=("ping",), revisions=("2026-07-28", "2025-11-25"))
    report = await check_server(Changed(right(), change), settings)
    assert [visit.revision for visit in report.visits] == ["2025-11-25"]


async def test_a_server_without_subscriptions_need_not_know_their_method() -> None:
    change = Change()

    @change.heard
    def _(message: Any) -> Any:
        return message | {"method": "nobody"} if message.get("method") == "subscriptions/listen" else message

    @change.answers("server/discover")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["capabilities"] = {"tools": {}}
        return answer

    settings = CheckSettings(only=("subscriptions",), revisions=("2026-07-28",), timeout=10)
    assert (await check_server(Changed(right(), change), settings)).findings == ()


ASKS = """
import json, sys, threading, time
def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()
def ask():
    for number in range(400):
        say({"id": number, "method": "ping"})
        time.sleep(0.005)
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
        say({"id": message["id"], "result": hello})
        threading.Thread(target=ask, daemon=True).start()
    elif "method" in message and "id" in message:
        say({"id": message["id"], "result": {}})
"""


async def test_a_line_in_pieces_stays_whole_though_the_server_sends_a_request_meanwhile() -> None:
    """It ends at the first line that is no JSON: the answer to its own question must not come in between."""
    settings = CheckSettings(only=("stdio/pieces",), revisions=("2025-11-25",))
    report = await check_server([sys.executable, "-c", ASKS], settings)
    assert report.findings == ()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_tool_that_fails_without_questions_has_no_error_about_questions(revision: str) -> None:
    change = Change()

    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        error = {"code": -32603, "message": "Internal error"}
        broken = {"jsonrpc": "2.0", "id": request["id"], "error": error}
        return broken if request["params"]["name"] == "add" else answer

    settings = CheckSettings(only=("asking/declined",), revisions=(revision,), call_tools=True)
    report = await check_server(Changed(right(), change), settings)
    assert report.findings == ()
    assert report.score == 100


async def test_a_stream_that_ends_with_its_session_or_its_request_needs_no_answer() -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "DELETE":
            await visit.respond(200)
            return
        await visit.stream()
        if visit.message["id"] == 3:
            await server.seen("DELETE")
        await visit.end()

    log = MessageLog("2025-11-25", "http")
    cases = {
        1: "",
        2: "a request that is cancelled",
        3: "a request whose session ends",
        4: "a case that passed alone",
    }
    async with site(play) as server:
        wire = HTTPWire(server.url, log)
        await wire.open()
        for id, log.case in cases.items():
            message = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % id
            log.add(SENT, message, stream=wire.send(message, {}))
        log.add(SENT, b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}')
        for response in (log.responses[0], log.responses[1], log.responses[3]):
            await response.closed.wait()
        await wire.fetch("DELETE")
        for response in log.responses:
            await response.closed.wait()
        await wire.close()
    log.unconfirmed.add("a case that passed alone")
    (case,) = http_answered.cases
    with pytest.raises(Violation, match="without a response") as raised:
        case.run([log])
    assert any('"id":1,' in line for line in raised.value.evidence)
    log.entries = [entry for entry in log.entries if entry.case]
    assert case.run([log]) == 0


async def test_a_stream_that_lost_its_answer_once_is_no_finding() -> None:
    """Two requests at the same time, whose ids are a number and its text, disturb each other in mcp 1.x by chance."""
    lost = 0

    async def play(visit: Visit) -> None:
        nonlocal lost
        if "id" not in visit.message:
            await quiet(visit)
            return
        await visit.stream()
        if visit.message["id"] == "7000070" and not lost:
            lost += 1
        else:
            await visit.event(visit.answer())
        await visit.end()

    only, revisions = ("ids/same", "http/answered"), ("2025-11-25",)
    settings = CheckSettings(only=only, revisions=revisions, whole_traffic=False)
    async with site(older(play, offers={})) as server:
        report = await check_server(server.url, settings)
    assert lost == 1
    assert report.findings == ()
    assert [each.partition(" failed once")[0] for visit in report.visits for each in visit.unconfirmed] == [
        "http/answered (a number and the same number as a string at the same time)"
    ]


def test_an_id_that_is_half_a_character_may_come_back() -> None:
    record = MessageLog("2025-11-25", "stdio")
    record.add(RECEIVED, rb'{"jsonrpc":"2.0","id":"\ud800","error":{"code":-32601,"message":"Not found"}}')
    (case,) = stdio_only_messages.cases
    assert case.run([record]) == 1


@without_waiting
async def test_a_server_that_says_how_it_goes_has_more_time_for_its_answer() -> None:
    answer = await call("busy", timeout=STEP * 6)
    assert answer.error is None
    assert answer.seconds > STEP * 6


@without_waiting
async def test_a_server_that_says_nothing_does_not() -> None:
    with pytest.raises(Violation, match=r"no response to tools/call in 30 s"):
        await call("silent", timeout=STEP * 6)


async def call(tool: str, timeout: float) -> Answer:
    """Call a tool that is busy, or silent, for twelve steps."""
    server = Server("busy")

    @server.tool
    async def busy(ctx: Context) -> None:
        for step in range(1, 13):
            await asyncio.sleep(STEP)
            ctx.report_progress(step)

    @server.tool
    async def silent() -> None:
        await asyncio.sleep(STEP * 12)

    doors = SessionFactory(ServerTarget(server), "2025-11-25", "memory", CheckSettings(timeout=timeout))
    try:
        talk = await doors.open()
        return await talk.request("tools/call", {"name": tool, "arguments": {}}, meta={"progressToken": 1})
    finally:
        await doors.close()
