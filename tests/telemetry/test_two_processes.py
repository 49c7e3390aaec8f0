"""One trace over two processes and HTTP, in the revisions with sessions and in the one without."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import ClientSession

from accord import Client
from accord.messages.revision import REVISIONS

from tests.interop.serving import Serving, serving
from tests.telemetry.recorder import Recorder


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    with serving([sys.executable, "-m", "tests.telemetry.traced_server"]) as server:
        yield server


async def recorded(served: Serving, trace: str) -> list[dict[str, Any]]:
    """The spans of the server that belong to a trace."""
    async with Client(f"{served.url}/mcp") as client:
        found: list[dict[str, Any]] = (await client.call_tool("spans")).data
    return [span for span in found if span["trace"] == trace]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_call_over_http_is_one_trace(served: Serving, revision: str) -> None:
    recorder = Recorder()
    async with Client(f"{served.url}/mcp", telemetry=recorder.telemetry, revisions=[revision]) as client:
        await client.call_tool("price", {"item": "bread"})
    asked = recorder.client("tools/call price")
    (span,) = await recorded(served, f"{asked.context.trace_id:032x}")
    assert span["name"] == "tools/call price"
    assert span["kind"] == "SERVER"
    assert span["parent"] == f"{asked.context.span_id:016x}"
    assert (span["network.transport"], span["network.protocol.name"]) == ("tcp", "http")
    assert span["client.address"] == "127.0.0.1"
    assert ("mcp.session.id" in span) == (revision != "2026-07-28")
    assert len(recorder.points("mcp.client.session.duration")) == (revision != "2026-07-28")
    attributes = dict(asked.attributes or {})
    assert (attributes["server.address"], attributes["server.port"]) == ("127.0.0.1", served.port)


async def test_the_id_of_a_session_is_not_given_away(served: Serving) -> None:
    recorder = Recorder()
    async with Client(f"{served.url}/mcp", telemetry=recorder.telemetry, revisions=["2025-11-25"]) as client:
        await client.call_tool("price", {"item": "bread"})
    trace = f"{recorder.client('tools/call price').context.trace_id:032x}"
    (span,) = await recorded(served, trace)
    assert len(span["mcp.session.id"]) == 16  # the id itself has 43 characters


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_question_over_http_stays_in_the_trace(served: Serving, revision: str) -> None:
    recorder = Recorder()
    async with Client(
        f"{served.url}/mcp",
        telemetry=recorder.telemetry,
        revisions=[revision],
        elicitation=lambda _: {"value": True},
    ) as client:
        assert (await client.call_tool("order", {"item": "bread"})).text == "True"
    asked = recorder.client("tools/call order")
    there = await recorded(served, f"{asked.context.trace_id:032x}")
    assert {span["name"] for span in there} <= {"tools/call order", "elicitation/create"}
    assert len(there) == 2
    assert {span.context.trace_id for span in recorder.spans} == {asked.context.trace_id}


async def test_a_client_that_knows_only_the_header_of_http_is_joined_by_that(served: Serving) -> None:
    trace, parent = "c" * 32, "d" * 16
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
    initialize = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    headers = {"Accept": "application/json, text/event-stream", "traceparent": f"00-{trace}-{parent}-01"}
    async with ClientSession() as session:
        async with session.post(f"{served.url}/mcp", json={**body, "params": initialize}, headers=headers) as opened:
            headers["Mcp-Session-Id"] = opened.headers["Mcp-Session-Id"]
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        async with session.post(f"{served.url}/mcp", json=ready, headers=headers) as told:
            assert told.status == 202
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        async with session.post(f"{served.url}/mcp", json=call, headers=headers) as listed:
            assert listed.status == 200
    (span,) = await recorded(served, trace)
    assert (span["name"], span["parent"]) == ("tools/list", parent)
