"""A server whose calls last, written with accord: what the peer clients of sessions_story open over HTTP."""

from __future__ import annotations

import asyncio
import sys

from accord import Context, HTTPOptions, Server

server = Server("sessions", "1.0")

begins: asyncio.Queue[str] = asyncio.Queue()
ends: asyncio.Queue[str] = asyncio.Queue()
release = asyncio.Event()


@server.tool
async def wait() -> str:
    """Wait until nobody waits for it."""
    begins.put_nowait("begun")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        ends.put_nowait("cancelled")
        raise
    return "never"


@server.tool
async def begun() -> str:
    """Return once `wait` has begun."""
    return await begins.get()


@server.tool
async def ended() -> str:
    """Return once `wait` was cancelled."""
    return await ends.get()


@server.tool
async def poll(ctx: Context) -> str:
    """End the stream of this call before its answer: the client has to come back for that."""
    ctx.close_sse_stream(0.01)
    await asyncio.sleep(0.05)
    return "polled"


@server.tool
async def steps(ctx: Context) -> str:
    """The first step at once, the others when `go` is called."""
    await ctx.report_progress(1, 3, "one")
    await release.wait()
    release.clear()
    await ctx.report_progress(2, 3, "two")
    await ctx.report_progress(3, 3, "three")
    return "all three"


@server.tool
async def go() -> str:
    """Let `steps` go on."""
    release.set()
    return "gone on"


if __name__ == "__main__":
    server.run(http=sys.argv[1], options=HTTPOptions(access_log=True))
