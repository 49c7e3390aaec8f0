"""The story's server, written with accord: what the peer clients open (see story)."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from accord import Context, ImageContent, Server

from story import PNG

server = Server(
    "accord",
    "1.2.3",
    title="Accord",
    instructions="The story, told by accord.",
)


@dataclass
class Sum:
    sum: int


@server.tool
def echo(text: str) -> str:
    """Give back the text."""
    return text


@server.tool
def add(a: int, b: int) -> Sum:
    """Add two numbers."""
    return Sum(a + b)


@server.tool
def fail() -> str:
    """Fail."""
    raise ValueError("it went wrong")


@server.tool
async def slow(steps: int, ctx: Context) -> str:
    """Take a few steps and say so."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return "done"


@server.tool
def picture() -> ImageContent:
    """Show a picture."""
    return ImageContent(data=PNG, mime_type="image/png")


@server.resource("notes://today", mime_type="text/plain")
def today() -> str:
    """What there is to do today."""
    return "buy milk"


@server.resource("notes://{day}", mime_type="text/plain")
def notes(day: str) -> str:
    """What there is to do on a day."""
    return f"notes of {day}"


@server.prompt
def plan(city: str) -> str:
    """Plan a day."""
    return f"Plan a day in {city}."


if __name__ == "__main__":
    server.run(http=sys.argv[1]) if len(sys.argv) > 1 else server.run()
