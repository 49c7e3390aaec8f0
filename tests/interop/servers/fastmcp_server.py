"""A peer server on FastMCP: what story expects of one."""

from __future__ import annotations

import base64

from fastmcp import Context, FastMCP
from fastmcp.utilities.types import Image
from pydantic import BaseModel

import http_way
from story import PNG

server = FastMCP("fastmcp", version="4.1.2", instructions="A peer on FastMCP.")


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
    if way is None:
        server.run(show_banner=False)
    elif way.name == "sse":
        server.run("sse", host=way.host, port=way.port, show_banner=False)
    else:
        options = {"stateless_http": way.stateless, "json_response": way.stateless}
        server.run("http", host=way.host, port=way.port, show_banner=False, **options)
