"""A client behind a bridge from stdio to HTTP+SSE: messages come as they are, and without headers of theirs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from accord import Client, Context, Server
from accord.transport.http.sse import SSETransport

from tests.server.http.raw import served
from tests.transport.http.site import Visit, modern, older, quiet, site


def desk() -> Server:
    server = Server("desk")

    @server.tool
    async def ask(ctx: Context) -> str:
        found = await ctx.elicit("which?", str)
        return f"{found.action} {getattr(found, 'data', '')}"

    @server.tool
    def rename() -> str:
        server.tool(name="new")(lambda: "new")
        return "renamed"

    return server


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28", None])
async def test_a_client_of_each_era_is_served_over_http_and_sse(revision: str | None) -> None:
    """A transport as target is opened as a process is: by a probe."""
    revisions: dict[str, Any] = {} if revision is None else {"revisions": [revision]}
    async with served(desk().app) as socket:
        transport = SSETransport(f"http://127.0.0.1:{socket.port}/sse")

        async def person(form: Any) -> dict[str, Any]:
            return {"value": "x"}

        async with asyncio.timeout(100), Client(transport, elicitation=person, **revisions) as client:
            assert client.revision == (revision or "2026-07-28")
            assert (await client.call_tool("ask")).text == "accept x"
            async with client.subscribe(tools=True) as subscription:
                await client.call_tool("rename")
                assert await anext(subscription)


async def test_a_probe_that_is_refused_for_its_headers_is_followed_by_a_handshake() -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "server/discover":
            error = {"code": -32020, "message": "Mcp-Method is missing"}
            await visit.json({"jsonrpc": "2.0", "id": visit.message["id"], "error": error}, 400)
        else:
            await older(quiet)(visit)

    async with site(play) as server, Client(server.url) as client:
        assert client.revision == "2025-11-25"
        assert (await client.call_tool("echo")).text == "done"


async def test_where_the_handshake_is_refused_as_well_the_server_is_taken_for_one_of_2026() -> None:
    async def play(visit: Visit) -> None:
        if visit.verb in ("server/discover", "initialize"):
            code = -32020 if visit.verb == "server/discover" else -32601
            error = {"code": code, "message": "no"}
            await visit.json({"jsonrpc": "2.0", "id": visit.message["id"], "error": error}, 400)
        else:
            await modern(quiet)(visit)

    async with site(play) as server, Client(server.url) as client:
        assert client.revision == "2026-07-28"
        assert (await client.call_tool("echo")).text == "done"
