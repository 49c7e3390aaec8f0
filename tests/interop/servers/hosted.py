"""The server that other people's ASGI servers host: its tools show when something is streamed, cut or cancelled."""

from __future__ import annotations

import asyncio
import os

from accord import Context, HTTPLimits, Limits, Server

limits = {name.removeprefix("LIMIT_"): float(value) for name, value in os.environ.items() if name.startswith("LIMIT_")}
server = Server("hosted", "1", limits=Limits(http=HTTPLimits(**limits)))  # type: ignore[arg-type]

fates: dict[str, str] = {}
going_on = asyncio.Event()


@server.tool
async def echo(text: str) -> str:
    return text


@server.tool
def large(size: int) -> str:
    return "x" * size


@server.tool
async def held(ctx: Context) -> str:
    """It says something, and ends only when `go_on` is called."""
    going_on.clear()
    await ctx.report_progress(1, 2)
    await going_on.wait()
    return "went on"


@server.tool
async def go_on() -> None:
    going_on.set()


@server.tool
async def hang(name: str) -> None:
    """Its end can be asked for with `fate`."""
    fates[name] = "hangs"
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        fates[name] = "cancelled"
        raise


@server.tool
async def until_exists(name: str, path: str) -> str:
    """It ends when there is this file, which needs no connection."""
    fates[name] = "hangs"
    while not os.path.exists(path):  # noqa: ASYNC240 - it takes no time
        await asyncio.sleep(0.01)
    return name


@server.tool
async def pour(ctx: Context, name: str) -> None:
    """More than anybody takes."""
    fates[name] = "hangs"
    try:
        for step in range(100_000):
            await ctx.report_progress(step, message="x" * 1_000_000)
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        fates[name] = "cancelled"
        raise


@server.tool
async def fate(name: str) -> str:
    return fates.get(name, "unknown")


@server.tool
async def grow() -> None:
    """One tool more: clients are told that the list has changed."""
    server.tool(name=f"tool-{len(server.registry.tools)}")(lambda: "grown")


@server.tool
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("Your name?", str)
    return f"hello {answer.data}"
