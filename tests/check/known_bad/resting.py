"""A server on the official SDK 1.x with a tool that takes a moment: calls are under way when their session ends."""

from __future__ import annotations

import anyio
from mcp.server.fastmcp import FastMCP

import http_arguments

server = FastMCP("resting")

REST = 0.4
"""In seconds."""


@server.tool()
async def rest() -> str:
    """Take a rest."""
    await anyio.sleep(REST)
    return "rested"


if __name__ == "__main__":
    way = http_arguments.asked()
    if way is None:
        server.run()
    else:
        server.settings.host, server.settings.port = way.host, way.port
        server.run("streamable-http")
