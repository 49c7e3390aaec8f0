"""The metrics of the conventions: how long requests and sessions took."""

from __future__ import annotations

import asyncio
import sys

import pytest
from opentelemetry.trace import SpanKind

from accord import AnswerError, Client, ConnectionLost, Context, InvalidParams, ProtocolError, Provider, Server
from accord.telemetry.conventions import BUCKETS, MAX_CODES

from tests.telemetry.recorder import Recorder
from tests.waiting import until

SIDES = ("server", "client")


def shop(recorder: Recorder) -> Server:
    """A server with a tool that takes its time."""
    server = Server("shop", telemetry=recorder.telemetry)

    @server.tool
    async def rise(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "risen"

    return server


async def test_each_side_counts_what_each_request_took() -> None:
    recorder = Recorder()
    async with Client(shop(recorder), telemetry=recorder.telemetry, revisions=["2025-11-25"]) as client:
        await client.call_tool("rise", {"seconds": 0.03})
        await client.call_tool("rise", {"seconds": 0.03})
        await client.call_tool("rise", {"seconds": "long"})
    for side in SIDES:
        points = recorder.points(f"mcp.{side}.operation.duration")
        calls = [point for point in points if point.attributes.get("gen_ai.tool.name") == "rise"]
        (well,) = [point for point in calls if "error.type" not in point.attributes]
        (badly,) = [point for point in calls if "error.type" in point.attributes]
        assert (well.count, badly.count) == (2, 1)
        assert 0.06 <= well.sum < 30, "seconds, not milliseconds"
        assert tuple(well.explicit_bounds) == BUCKETS
        assert badly.attributes["error.type"] == "tool_error"
        assert dict(well.attributes) == {
            "mcp.method.name": "tools/call",
            "mcp.protocol.version": "2025-11-25",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "rise",
        }


async def test_names_that_a_peer_makes_up_are_no_attributes_of_a_metric() -> None:
    recorder = Recorder()
    async with Client(shop(recorder)) as client:
        for number in range(10):
            with pytest.raises(InvalidParams):
                await client.call_tool(f"made-up-{number}")
    assert "made-up" not in repr([dict(point.attributes) for point in recorder.points("mcp.server.operation.duration")])
    assert len(recorder.of(SpanKind.SERVER, "tools/call")) == 10


class Slow(Provider):
    """A provider that takes its time to say that it has no such tool."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def tool(self, name: str) -> None:
        self.asked.append(name)
        await asyncio.Event().wait()


async def test_names_that_a_peer_makes_up_and_cancels_are_no_attributes_of_a_metric() -> None:
    recorder = Recorder()
    server = shop(recorder)
    slow = Slow()
    server.add_provider(slow)
    async with Client(server) as client:
        for number in range(3):
            call = asyncio.create_task(client.call_tool(name := f"made-up-{number}"))
            await until(lambda name=name: name in slow.asked)  # type: ignore[misc]
            call.cancel()
            await asyncio.wait([call])
        await until(lambda: len(recorder.of(SpanKind.SERVER, "tools/call")) == 3)
    assert "made-up" not in repr([dict(point.attributes) for point in recorder.points("mcp.server.operation.duration")])


async def test_error_codes_that_a_server_makes_up_are_few_values_of_a_metric() -> None:
    recorder = Recorder()
    server = Server("shop")

    @server.tool
    async def refuse(code: int) -> None:
        raise ProtocolError("no", code=code)

    async with Client(server, telemetry=recorder.telemetry) as client:
        for code in [*range(1, 2 * MAX_CODES), -32603]:
            with pytest.raises(ProtocolError):
                await client.call_tool("refuse", {"code": code})
    codes = {
        point.attributes["rpc.response.status_code"]: point.attributes["error.type"]
        for point in recorder.points("mcp.client.operation.duration")
        if "error.type" in point.attributes
    }
    assert codes["_OTHER"] == "_OTHER"
    assert codes["1"] == "1"
    assert codes["-32603"] == "-32603", "the codes of the specification are never left out"
    assert len(codes) == MAX_CODES + 2
    spans = recorder.of(SpanKind.CLIENT, "tools/call refuse")
    assert len({dict(span.attributes or {})["error.type"] for span in spans}) == 2 * MAX_CODES, "spans have them all"


async def test_error_codes_that_a_client_makes_up_are_few_values_of_a_metric() -> None:
    recorder = Recorder()
    server = shop(recorder)

    @server.tool
    async def ask(ctx: Context) -> None:
        for _ in range(2 * MAX_CODES):
            with pytest.raises(AnswerError):
                await ctx.elicit("?", str)

    codes = iter(range(5000, 9000))

    async def answer(*_: object) -> None:
        raise ProtocolError("no", code=next(codes))

    async with Client(server, revisions=["2025-11-25"], elicitation=answer) as client:  # type: ignore[arg-type]
        await client.call_tool("ask")
    assert next(codes) == 5000 + 2 * MAX_CODES
    points = recorder.points("mcp.client.operation.duration")
    assert len(points) == MAX_CODES + 1


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_each_side_counts_how_long_a_connection_lasted(revision: str) -> None:
    recorder = Recorder()
    server = shop(recorder)
    for _ in range(2):
        async with Client(server, telemetry=recorder.telemetry, revisions=[revision]) as client:
            await client.list_tools()
    for side in SIDES:
        (point,) = recorder.points(f"mcp.{side}.session.duration")
        assert point.count == 2
        assert dict(point.attributes) == {"mcp.protocol.version": revision}


async def test_a_connection_that_is_lost_ends_with_an_error() -> None:
    recorder = Recorder()
    async with Client(
        [sys.executable, "-c", PROGRAM], telemetry=recorder.telemetry, revisions=["2025-11-25"]
    ) as client:
        with pytest.raises(ConnectionLost):
            await client.call_tool("die")
        await client.connection.ended.wait()  # else it might be closed before it is known to be lost
    (point,) = recorder.points("mcp.client.session.duration")
    assert point.attributes["error.type"] == "ConnectionLost"
    assert point.attributes["network.transport"] == "pipe"
    assert dict(recorder.client("tools/call die").attributes or {})["error.type"] == "ConnectionLost"


PROGRAM = """
import os
from accord import Server

server = Server("mortal")

@server.tool
async def die() -> str:
    os._exit(3)

server.run()
"""
