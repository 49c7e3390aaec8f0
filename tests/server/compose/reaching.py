"""How the tests of this folder reach a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from accord import Client, Server

from tests.server.http.raw import served


@asynccontextmanager
async def over_http(server: Server) -> AsyncIterator[str]:
    """The server at a port of its own; its URL."""
    async with served(server.asgi()) as socket:
        yield f"http://127.0.0.1:{socket.port}/mcp"


def client_of(url: str, key: str, revision: str = "2026-07-28", **options: Any) -> Client:
    """A client that shows a key."""
    return Client(url, revisions=[revision], auth=key, **options)


async def tools_of(client: Client) -> list[str]:
    """The names of the tools that it is shown now."""
    return [tool.name for tool in await client.list_tools(fresh=True)]
