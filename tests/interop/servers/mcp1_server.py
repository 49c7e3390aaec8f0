"""A peer server on the official SDK 1.x: what story expects of one."""

from __future__ import annotations

import base64

from mcp.server.fastmcp import Context, FastMCP, Image
from pydantic import BaseModel

import http_way
from story import PNG

server = FastMCP("mcp1", instructions="A peer on mcp 1.")


class Sum(BaseModel):
    sum: int


@server.tool()
def echo(text: str) -> str:
    """Give back the text."""
    return text


@server.tool()
def add(a: int, b: int) -> Sum:
    """Add two numbers."""
    return Sum(sum=a + b)


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("it went wrong")


@server.tool()
async def slow(steps: int, ctx: Context) -> str:
    """Take a few steps and say so."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return "done"


@server.tool()
def picture() -> Image:
    """Show a picture."""
    return Image(data=base64.b64decode(PNG), format="png")


@server.resource("notes://today", mime_type="text/plain")
def today() -> str:
    """What there is to do today."""
    return "buy milk"


@server.resource("notes://{day}", mime_type="text/plain")
def notes(day: str) -> str:
    """What there is to do on a day."""
    return f"notes of {day}"


@server.prompt()
def plan(city: str) -> str:
    """Plan a day."""
    return f"Plan a day in {city}."


if __name__ == "__main__":
    way = http_way.asked()
    if way is not None:
        server.settings.host, server.settings.port = way.host, way.port
        server.settings.stateless_http = server.settings.json_response = way.stateless
    server.run("stdio" if way is None else "sse" if way.name == "sse" else "streamable-http")
