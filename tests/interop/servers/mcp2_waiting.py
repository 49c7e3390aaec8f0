"""A peer server on the official SDK 2.x whose calls last: what test_http_waiting expects of one."""

from __future__ import annotations

import asyncio

import anyio
from mcp.server.mcpserver import MCPServer

import http_way

server = MCPServer("waiting")
begins: asyncio.Queue[str] = asyncio.Queue()
ends: asyncio.Queue[str] = asyncio.Queue()


@server.tool()
async def wait() -> str:
    """Wait until nobody waits for it."""
    begins.put_nowait("begun")
    try:
        await anyio.sleep_forever()
    finally:
        ends.put_nowait("cancelled")


@server.tool()
async def begun() -> str:
    """Return once `wait` has begun."""
    return await begins.get()


@server.tool()
async def ended() -> str:
    """Return once `wait` was cancelled."""
    return await ends.get()


if __name__ == "__main__":
    way = http_way.asked()
    if way is None:
        server.run()
    elif way.name == "sse":
        server.run("sse", host=way.host, port=way.port)
    else:
        options = {"stateless_http": way.stateless, "json_response": way.stateless}
        server.run("streamable-http", host=way.host, port=way.port, **options)
