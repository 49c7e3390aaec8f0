"""Behind a proxy that has put the server under a path, and takes that off or leaves it; and where nothing is."""

from __future__ import annotations

import pytest

from accord.server.http.options import HTTPOptions
from accord.server.server import Server

from tests.server.http.http_clients import Legacy, Modern, encode, text
from tests.server.http.raw import BASIC, Direct

HOST = {"host": "example.com"}


def proxied(root: str = "/api") -> Direct:
    server = Server("proxied", "1")

    @server.tool
    def echo(text: str) -> str:
        return text

    return Direct(server.asgi(HTTPOptions(public_url=f"https://example.com{root}/mcp")))


@pytest.mark.parametrize("path", ["/mcp", "/", "/api/mcp", "/api", "/api/"])
async def test_each_path_that_a_proxy_may_hand_on_is_served(path: str) -> None:
    raw, client = proxied(), Modern(Direct(None), **HOST)
    message = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": client.meta()}}
    answer = await raw.send("POST", path, client.head(message), encode(message))
    assert answer.status == 200, await answer.body()
    await raw.app.close()


@pytest.mark.parametrize("taken_off", [True, False])
async def test_a_client_of_2024_receives_the_public_path(taken_off: bool) -> None:
    raw = proxied()
    client = await Legacy.connect(raw, **HOST)
    assert client.address.startswith("/api/messages?session_id=")
    if taken_off:
        client.address = client.address.removeprefix("/api")
    await client.open()
    assert text(await client.ask("tools/call", {"name": "echo", "arguments": {"text": "hi"}})) == "hi"
    await client.stream.leave()
    await raw.app.close()


async def test_another_path_is_not_there() -> None:
    raw = proxied()
    for path in ("/apis/mcp", "/api/api/mcp", "/api//mcp", "/other"):
        answer = await raw.send("GET", path, {**BASIC, **HOST})
        assert answer.status == 404
        assert b"MCP is at /api/mcp" in await answer.body()
