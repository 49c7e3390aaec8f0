"""Where the application answers: each path with a slash at its end and without, also where it is mounted."""

from __future__ import annotations

from typing import Any

import pytest

from accord import HTTPOptions, Server

from tests.server.http.http_clients import Legacy, Modern, encode, site
from tests.server.http.raw import BASIC, Direct


def desk() -> Server:
    return Server("desk", "1")


async def status(raw: Any, path: str) -> int:
    """Of `server/discover` at this path."""
    asked = Modern(raw)
    message = asked.request("server/discover")
    answer = await raw.send("POST", path, asked.head(message), encode(message))
    await answer.body()
    return int(answer.status)


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/", ""])
async def test_streamable_http_is_served_with_a_slash_and_without(path: str) -> None:
    async with site(desk()) as here:
        assert await status(here.raw, path) == 200


@pytest.mark.parametrize("path", ["/here", "/here/", "/a/b"])
async def test_a_path_of_ones_own_is_too(path: str) -> None:
    async with site(desk(), options=HTTPOptions(path=path.rstrip("/"))) as here:
        assert await status(here.raw, path) == 200
        assert await status(here.raw, "/mcp") == 404


@pytest.mark.parametrize("slash", ["", "/"])
async def test_http_and_sse_is_served_with_a_slash_and_without(slash: str) -> None:
    async with site(desk()) as here:
        stream = await here.raw.send("GET", f"/sse{slash}", {"host": "localhost", "accept": "text/event-stream"})
        address = (await stream.event()).data
        path, _, query = address.partition("?")
        client = Legacy(here.raw, stream, f"{path}{slash}?{query}")
        assert (await client.ask("ping"))["result"] == {}
        await stream.leave()


@pytest.mark.parametrize("path", ["/health", "/health/", "/ready", "/ready/"])
async def test_so_are_the_paths_for_whoever_watches(path: str) -> None:
    async with site(desk()) as here:
        assert (await here.raw.send("GET", path, BASIC)).status == 200


@pytest.mark.parametrize("root", ["", "/tools"])
@pytest.mark.parametrize("path", ["/tools/mcp", "/tools/mcp/", "/tools", "/tools/"])
async def test_mounted_or_behind_a_proxy_both_spellings_are_served(root: str, path: str) -> None:
    app = desk().asgi(HTTPOptions(public_url="https://localhost/tools/mcp"))

    async def mounted(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "root_path": root}, receive, send)

    assert await status(Direct(mounted), path) == 200
    await app.close()


@pytest.mark.parametrize("path", ["//", "/mcp//", "/mcp/x", "/sse//", "/nothing/"])
async def test_what_is_none_of_these_is_404(path: str) -> None:
    async with site(desk()) as here:
        assert await status(here.raw, path) == 404
