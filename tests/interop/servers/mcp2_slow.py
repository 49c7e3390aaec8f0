"""A peer server on the official SDK 2.x whose calls last: what test_http_cancellation expects of one."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

import http_arguments
from story_server import add_slow_tools

server = MCPServer("slow")
add_slow_tools(server)

if __name__ == "__main__":
    http_arguments.run_mcp2(server)
