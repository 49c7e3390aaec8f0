"""Arguments that a server wants in headers: which tools are left out for it, and what becomes of a refused call."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
import uvicorn

from accord import Client, Header, Server
from accord.errors import HeaderMismatch, LocalProtocolError, RequestTimeout
from accord.transport.memory import MemoryTransport
from accord.transport.recording import TranscriptTransport
from accord.wire.transcript import Transcript

from tests.client.raw import Message, RawServer, raw_server
from tests.clock import Clock

S26 = "2026-07-28"


class WithHeaders(MemoryTransport):
    """What a transport over HTTP has more than others."""

    mirrors: Any = None


@asynccontextmanager
async def served(revision: str = S26, **options: Any) -> AsyncIterator[tuple[RawServer, Client, WithHeaders]]:
    """A server to play behind a transport with headers, and a client that has opened it."""
    ours, theirs = WithHeaders(), WithHeaders()
    ours._peer, theirs._peer = theirs, ours
    server, client = RawServer(ours, revision), Client(theirs, **options)
    async with asyncio.timeout(100):
        await asyncio.gather(server.open(), client.connect())
        try:
            yield server, client, theirs
        finally:
            await client.close()


def tool(name: str, **properties: Any) -> Message:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


GOOD = tool("good", region={"type": "string", "x-mcp-header": "Region"}, n={"type": "integer", "x-mcp-header": "N"})
PLAIN = tool("plain", region={"type": "string"})
BAD = tool("bad", region={"type": "number", "x-mcp-header": "Region"})


async def listed(server: RawServer, client: Client, *tools: Message) -> list[str]:
    asking = asyncio.ensure_future(client.list_tools(fresh=True))
    request = await server.hear()
    assert request["method"] == "tools/list"
    server.answer(request, tools=list(tools), ttlMs=0, cacheScope="private")
    return [tool.name for tool in await asking]


async def test_a_tool_that_mirrors_wrongly_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with served() as (server, client, _):
        assert await listed(server, client, GOOD, BAD, PLAIN) == ["good", "plain"]
        (warning,) = caplog.messages
        assert warning.startswith("accord: memory: tool 'bad' is left out: 'region' has an x-mcp-header: then its type")
        await listed(server, client, BAD)
        assert len(caplog.messages) == 1, "the same is told once"
        await listed(server, client, tool("bad", region={"type": "string", "x-mcp-header": ""}))
        assert len(caplog.messages) == 2


async def test_the_transport_learns_what_a_tool_mirrors() -> None:
    async with served() as (server, client, transport):
        assert transport.mirrors("good") == {}
        await listed(server, client, GOOD, BAD, PLAIN)
        assert transport.mirrors("good") == {"Region": ("region",), "N": ("n",)}
        assert transport.mirrors("plain") == transport.mirrors("bad") == transport.mirrors("none") == {}
        await listed(server, client, PLAIN)
        assert transport.mirrors("good") == {}


async def test_a_recorded_transport_is_notified_too() -> None:
    async with served(record=lambda inner: TranscriptTransport(inner, Transcript())) as (server, client, transport):
        assert await listed(server, client, GOOD, BAD) == ["good"]
        assert transport.mirrors("good")["N"] == ("n",)


async def test_a_recorded_transport_without_headers_has_none() -> None:
    assert not hasattr(TranscriptTransport(MemoryTransport(), Transcript()), "mirrors")


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25"])
async def test_older_revisions_have_no_such_headers(revision: str) -> None:
    async with served(revision) as (server, client, transport):
        assert transport.mirrors is None
        assert await listed(server, client, GOOD, BAD) == ["good", "bad"]


async def test_nobody_looks_at_it_where_there_are_no_headers() -> None:
    async with raw_server(S26) as (server, client):
        assert await listed(server, client, GOOD, BAD) == ["good", "bad"]
        calling = asyncio.ensure_future(client.call_tool("good", {"n": 2**60}))
        server.refuse(await server.hear(), -32020, "mismatch")
        with pytest.raises(HeaderMismatch):
            await calling


async def test_a_call_whose_headers_are_refused_is_sent_again_once_the_tools_are_listed() -> None:
    async with served() as (server, client, transport):
        calling = asyncio.ensure_future(client.call_tool("good", {"region": "eu"}))
        first = await server.hear()
        server.refuse(first, -32020, "Header mismatch")
        listing = await server.hear()
        assert listing["method"] == "tools/list"
        server.answer(listing, tools=[GOOD], ttlMs=0, cacheScope="private")
        second = await server.hear()
        assert transport.mirrors("good")["Region"] == ("region",)
        assert second["id"] != first["id"]
        assert second["params"]["arguments"] == first["params"]["arguments"]
        server.done(second)
        assert (await calling).text == "done"


async def test_it_is_sent_again_only_once() -> None:
    async with served() as (server, client, _):
        calling = asyncio.ensure_future(client.call_tool("good"))
        server.refuse(await server.hear(), -32020, "first")
        server.answer(await server.hear(), tools=[GOOD], ttlMs=0, cacheScope="private")
        server.refuse(await server.hear(), -32020, "second")
        with pytest.raises(HeaderMismatch, match="second"):
            await calling


async def test_calls_that_are_refused_together_list_the_tools_once() -> None:
    async with served() as (server, client, _):
        calling = asyncio.gather(*(client.call_tool("good", {"n": n}) for n in range(5)))
        for request in [await server.hear() for _ in range(5)]:
            server.refuse(request, -32020, "Header mismatch")
        server.answer(await server.hear(), tools=[GOOD], ttlMs=0, cacheScope="private")
        again = [await server.hear() for _ in range(5)]
        assert {request["method"] for request in again} == {"tools/call"}
        for request in again:
            server.done(request, str(request["params"]["arguments"]["n"]))
        assert [result.text for result in await calling] == ["0", "1", "2", "3", "4"]


async def test_the_refusal_is_what_is_raised_when_the_list_fails() -> None:
    async with served() as (server, client, _):
        calling = asyncio.ensure_future(client.call_tool("good"))
        server.refuse(await server.hear(), -32020, "the refusal")
        server.refuse(await server.hear(), -32603, "no list today")
        with pytest.raises(HeaderMismatch, match="the refusal") as caught:
            await calling
        assert "no list today" in str(caught.value.__cause__)


async def test_sending_again_is_within_the_total_time() -> None:
    async with served() as (server, client, _):
        calling = asyncio.ensure_future(client.call_tool("good", total_timeout=50))
        server.refuse(await server.hear(), -32020, "Header mismatch")
        server.answer(await server.hear(), tools=[GOOD], ttlMs=0, cacheScope="private")
        await server.hear()
        await Clock().jump(51)
        with pytest.raises(RequestTimeout):
            await calling


# --- over HTTP, with a server of ours ----------------------------------------------------------------------------


def build() -> Server:
    server = Server("test")

    @server.tool
    def where(region: Annotated[str, Header("Region")], n: Annotated[int, Header("N")] = 1) -> str:
        return f"{region} {n}"

    return server


@asynccontextmanager
async def over_http(server: Server) -> AsyncIterator[Client]:
    """A client of an application that uvicorn serves."""
    listening = socket.create_server(("127.0.0.1", 0))
    serving = uvicorn.Server(uvicorn.Config(server.app, log_level="warning", lifespan="off"))
    running = asyncio.create_task(serving.serve([listening]))
    try:
        async with asyncio.timeout(100), Client(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp") as client:
            yield client
    finally:
        serving.should_exit = True
        await running


@pytest.mark.parametrize("region", ["us-west1", "", " padded ", "Zürich\r\nX-Evil: 1", "=?base64?eA==?=", "\t"])
async def test_arguments_reach_a_server_in_its_headers_whether_its_tools_were_listed_or_not(region: str) -> None:
    async with over_http(build()) as client:
        assert (await client.call_tool("where", {"region": region})).text == f"{region} 1"
        await client.list_tools()
        assert (await client.call_tool("where", {"region": region, "n": -7})).text == f"{region} -7"


async def test_an_argument_that_no_header_can_have_is_not_sent() -> None:
    async with over_http(build()) as client:
        await client.list_tools()
        with pytest.raises(LocalProtocolError, match="the argument 'n' cannot stand in a header"):
            await client.call_tool("where", {"region": "eu", "n": 2**60})
        assert (await client.call_tool("where", {"region": "eu", "n": 2})).text == "eu 2"


async def test_what_is_no_simple_value_is_for_the_tool_to_refuse() -> None:
    async with over_http(build()) as client:
        await client.list_tools()
        for region in (None, ["eu"], {"eu": 1}):
            result = await client.call_tool("where", {"region": region})
            assert result.is_error
            assert "region" in result.text
