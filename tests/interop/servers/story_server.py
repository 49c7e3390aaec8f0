"""What the peer servers on Python SDKs offer (see story): these differ in their imports, and in how they are run."""

# Annotations are evaluated here, where an SDK's types are parameters: no `from __future__ import annotations`.

import asyncio
import base64
from typing import Any

import anyio
from pydantic import BaseModel

from story import PNG


class Sum(BaseModel):
    sum: int


def add_story(server: Any, context_type: Any, image_type: Any) -> None:
    """Register the tools, resources and the prompt of the story, with the SDK's types of a context and an image."""

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
    async def slow(steps: int, ctx: context_type) -> str:
        """Take a few steps and say so."""
        for step in range(1, steps + 1):
            await ctx.report_progress(step, steps, f"step {step}")
        return "done"

    @server.tool()
    def picture() -> image_type:
        """Show a picture."""
        return image_type(data=base64.b64decode(PNG), format="png")

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


def add_slow_tools(server: Any) -> None:
    """Register a tool whose calls last, and two that tell of it (see test_http_cancellation)."""
    begins: asyncio.Queue[str] = asyncio.Queue()
    ends: asyncio.Queue[str] = asyncio.Queue()

    @server.tool()
    async def wait() -> str:
        """Wait until nobody waits for it."""
        begins.put_nowait("begun")
        try:
            await anyio.sleep_forever()
        finally:
            ends.put_nowait("cancelled")

    @server.tool()
    async def begun() -> str:
        """Return once `wait` has begun."""
        return await begins.get()

    @server.tool()
    async def ended() -> str:
        """Return once `wait` was cancelled."""
        return await ends.get()
