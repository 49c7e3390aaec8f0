"""A peer server on the official SDK 2.x whose calls last: what test_http_waiting expects of one."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

import http_way
from story_server import add_waiting

server = MCPServer("waiting")
add_waiting(server)

if __name__ == "__main__":
    http_way.run_mcp2(server)
