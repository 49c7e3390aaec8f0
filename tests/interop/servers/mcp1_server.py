"""A peer server on the official SDK 1.x: what story expects of one."""

from __future__ import annotations

from mcp.server.fastmcp import Context, FastMCP, Image

import http_arguments
from story_server import add_story

server = FastMCP("mcp1", instructions="A peer on mcp 1.")
add_story(server, Context, Image)

if __name__ == "__main__":
    http_arguments.run_mcp1(server)
