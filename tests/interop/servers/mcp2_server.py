"""A peer server on the official SDK 2.x: what story expects of one."""

from __future__ import annotations

from mcp.server.mcpserver import Context, Image, MCPServer

import http_arguments
from story_server import add_story

server = MCPServer("mcp2", version="2.3.0", instructions="A peer on mcp 2.")
add_story(server, Context, Image)

if __name__ == "__main__":
    http_arguments.run_mcp2(server)
