"""A server with one of each thing, for the tests of the client; run as a program, it serves stdio."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from typing import Any

from accord import Context, ImageContent, Server, TextContent, ToolError

server = Server("example", "1.2.3", title="An example", instructions="Use it to test.")


@dataclass
class Day:
    city: str
    degrees: float


@server.tool
async def echo(text: str) -> str:
    """Say it back."""
    return text


@server.tool
def echo_sync(text: str) -> str:
    return text


@server.tool
async def forecast(city: str, days: int = 2) -> list[Day]:
    """Tell the weather.

    Args:
        city: Where.
        days: How many days.
    """
    return [Day(city, 20.5 + day) for day in range(days)]


@server.tool
async def today(city: str) -> Day:
    return Day(city, 21)


@server.tool
async def nothing() -> int | None:
    return None


@server.tool
async def fail(why: str) -> str:
    raise ToolError(why)


@server.tool
async def slow(steps: int, ctx: Context) -> str:
    for step in range(1, steps + 1):
        ctx.report_progress(step, steps, f"step {step}")
        await asyncio.sleep(0.06)
    return f"{steps} steps"


@server.tool
async def wait(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"


@server.tool
async def picture() -> Any:
    return [TextContent(text="a dot"), ImageContent(data="AAAA", mime_type="image/png")]


@server.tool
async def who(ctx: Context) -> dict[str, Any]:
    return {"revision": ctx.revision, "client": ctx.client.name if ctx.client else None, "meta": ctx.meta}


@server.tool
async def die(code: int, words: str = "") -> str:
    print(words, file=sys.stderr, flush=True)
    os._exit(code)


@server.resource("test://fixed", mime_type="text/plain")
def fixed() -> str:
    return "fixed text"


@server.resource("test://blob")
async def blob() -> bytes:
    return b"\x00\x01"


@server.resource("test://items/{name}{?n}")
async def item(name: str, n: int = 1) -> dict[str, Any]:
    return {"name": name, "n": n}


@server.prompt
def greet(name: str, loud: bool = False) -> str:
    """Greet somebody."""
    text = f"Hello, {name}"
    return text.upper() if loud else text


if __name__ == "__main__":
    server.run()
