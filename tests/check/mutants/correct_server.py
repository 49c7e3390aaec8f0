"""The right server that mutants are made of: a little of everything, and quick."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
import uvicorn

from accord import Auth, Context, Elicit, Header, ResourceLink, Roots, Sample, Server, ToolError


class Day(msgspec.Struct):
    sky: str
    celsius: float


class Form(msgspec.Struct):
    name: str


def right(auth: Auth | None = None) -> Server:
    """A new one."""
    server = Server("right", "1.0.0", instructions="Use it.", auth=auth)

    @server.tool
    def add(a: int, b: Annotated[int, msgspec.Meta(ge=0)] = 0) -> int:
        """Add."""
        return a + b

    @server.tool
    def day(city: str) -> Day:
        """The weather."""
        return Day("clear", 20.0)

    @server.tool
    async def slow(ctx: Context) -> str:
        """Says how it goes."""
        for step in (1, 2, 3):
            ctx.report_progress(step, 3)
            ctx.info(f"step {step}")
            await asyncio.sleep(0.01)
        return "done"

    @server.tool
    def fails() -> str:
        """Fails."""
        raise ToolError("it failed")

    @server.tool
    def link() -> ResourceLink:
        """A link."""
        return ResourceLink(uri="right://text", name="text")

    @server.tool
    def ask(answer: Annotated[Form, Elicit("Who?")]) -> str:
        """Asks a person."""
        return answer.name

    @server.tool
    def model(said: Annotated[str, Sample("Say something", max_tokens=10)]) -> str:
        """Asks a model."""
        return "said"

    @server.tool
    async def roots(ctx: Context) -> str:
        """Asks for the roots."""
        (found,) = await ctx.ask(Roots())
        return str(len(found))

    @server.tool
    def regional(
        region: Annotated[str, Header("Region")],
        count: Annotated[int, Header("Count")],
        zone: Annotated[str, Header("Zone")] = "a",
    ) -> str:
        """Arguments that stand in headers."""
        return region

    @server.resource("right://text", mime_type="text/plain")
    def text() -> str:
        """A text."""
        return "text"

    @server.resource("right://blob", mime_type="application/octet-stream")
    def blob() -> bytes:
        """Bytes."""
        return b"\0\1"

    @server.resource("right://item/{number}")
    def item(number: int) -> str:
        """One of many."""
        return f"item {number}"

    @server.prompt
    def plan(city: str, days: int = 1) -> str:
        """Plan."""
        return f"Plan {days} in {city}"

    @plan.complete("city")
    def cities(typed: str) -> list[str]:
        return [city for city in ("Oslo", "Ottawa") if city.startswith(typed)]

    return server


@contextlib.asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """An ASGI application on loopback: the URL, without a path."""
    listener = socket.socket(proto=socket.IPPROTO_TCP)  # asyncio then sends at once: 3 ms a request, and not 50
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started:
            await asyncio.sleep(0.005)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listener.close()
