"""A program under `accord dev`, over stdio and over HTTP, with real processes and clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from accord import Client
from accord.client.target import Command, parse
from accord.dev.http import HTTPReloader
from accord.dev.settings import DevSettings
from accord.dev.stdio import StdioReloader
from accord.transport import memory

from tests.waiting import until

TRANSPORTS = ("stdio", "http")

SOURCE = """
import asyncio, os
from pathlib import Path
from accord import Server, Context

server = Server("weather")

@server.tool()
def version() -> str:
    return "{version}"

@server.tool()
async def wait(file: str) -> str:
    while not Path(file).exists():
        await asyncio.sleep(0.005)
    return "{version}"

@server.tool()
async def double(number: int) -> int:
    await asyncio.sleep(0.002 * (number % 7))
    return 2 * number

@server.tool()
async def ask(file: str, ctx: Context) -> str:
    while not Path(file).exists():
        await asyncio.sleep(0.005)
    answer = await ctx.elicit("{version}?", bool)
    return f"{version} {{answer.data}}"

@server.tool()
def crash() -> str:
    os._exit(3)
{more}
"""

ADDED = "\n@server.tool()\ndef added() -> str:\n    return 'new'\n"


class Program:
    """A file with a server, and what the developer was shown."""

    def __init__(self, folder: Path, transport: str = "stdio") -> None:
        self.folder = folder
        self.transport = transport
        self.file = folder / "weather.py"
        self.shown: list[str] = []
        self.stderr: list[str] = []
        self.reloader: StdioReloader | HTTPReloader

    @property
    def command(self) -> Command:
        command = parse(str(self.file))
        assert isinstance(command, Command)
        return command

    def write(self, version: str, more: str = "") -> None:
        self.file.write_text(SOURCE.format(version=version, more=more))

    @asynccontextmanager
    async def served(self, **settings: Any) -> AsyncIterator[Any]:
        """Serve the file; yield what a client connects to."""
        show: Any = {"show": self.shown.append, "show_stderr": self.stderr.append}
        if self.transport == "http":
            self.reloader = http = HTTPReloader(self.command, ":0", DevSettings(**settings), **show)
            running = asyncio.create_task(http.run())
            try:
                await http.started.wait()
                yield http.url
            finally:
                running.cancel()
                await asyncio.wait([running])
        else:
            ours, theirs = memory.pair()
            self.reloader = StdioReloader(self.command, theirs, DevSettings(**settings), **show)
            running = asyncio.create_task(self.reloader.run())
            try:
                yield ours
            finally:
                await ours.close()
                await running

    @asynccontextmanager
    async def connected(self, revision: str = "2025-11-25", **settings: Any) -> AsyncIterator[Client]:
        async with (
            self.served(**settings) as target,
            Client(target, revisions=[revision], elicitation=lambda _: True) as client,
        ):
            yield client

    async def until_reloaded(self, times: int = 1) -> None:
        await until(lambda: self.reloader.reloads >= times, lambda: (self.shown, self.stderr))

    async def until_shown(self, text: str) -> None:
        await until(lambda: any(text in line for line in self.shown), lambda: (self.shown, self.stderr))


async def text_of(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    return str(result.content[0].text)  # type: ignore[union-attr]
