"""A peer server on FastMCP: what story expects of one."""

from __future__ import annotations

from fastmcp import Context, FastMCP
from fastmcp.utilities.types import Image

import http_arguments
from story_server import add_story

server = FastMCP("fastmcp", version="4.1.2", instructions="A peer on FastMCP.")
add_story(server, Context, Image)

if __name__ == "__main__":
    way = http_arguments.asked()
    if way is None:
        server.run(show_banner=False)
    elif way.name == "sse":
        server.run("sse", host=way.host, port=way.port, show_banner=False)
    else:
        options = {"stateless_http": way.stateless, "json_response": way.stateless}
        server.run("http", host=way.host, port=way.port, show_banner=False, **options)
