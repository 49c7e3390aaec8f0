"""A peer server on the official SDK 1.x whose calls last: what test_http_waiting expects of one."""

from __future__ import annotations

from mcp.server.fastmcp import FastMCP

import http_way
from story_server import add_waiting

server = FastMCP("waiting")
add_waiting(server)

if __name__ == "__main__":
    http_way.run_mcp1(server)
