"""`accord dev --http`, with real processes and clients."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from accord import Client
from accord.client.target import Command, parse
from accord.dev.http import HTTPReloader
from accord.dev.settings import DevSettings
from accord.errors import TargetError
from accord.messages.revision import REVISIONS

from tests.dev.test_stdio import CALLS, PROGRAM, text_of
from tests.waiting import until

RELOADS = int(os.environ.get("ACCORD_DEV_RELOADS", "3"))
STREAMABLE = REVISIONS[1:]


class Program:
    """A file with a server, served over HTTP."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "weather.py"
        self.shown: list[str] = []
        self.stderr: list[str] = []
        self.reloader: HTTPReloader

    def write(self, version: str, more: str = "") -> None:
        self.file.write_text(PROGRAM.format(version=version, more=more))

    @asynccontextmanager
    async def served(self, **settings: Any) -> AsyncIterator[str]:
        command = parse(str(self.file))
        assert isinstance(command, Command)
        self.reloader = HTTPReloader(
            command, ":0", DevSettings(**settings), show=self.shown.append, show_stderr=self.stderr.append
        )
        running = asyncio.create_task(self.reloader.run())
        try:
            await self.reloader.started.wait()
            yield self.reloader.url
        finally:
            running.cancel()
            await asyncio.wait([running])

    @asynccontextmanager
    async def connected(self, revision: str = "2025-11-25", **settings: Any) -> AsyncIterator[Client]:
        async with (
            self.served(**settings) as url,
            Client(url, revisions=[revision], elicitation=lambda _: True) as client,
        ):
            yield client

    async def until_reloaded(self, times: int = 1) -> None:
        await until(lambda: self.reloader.reloads >= times, lambda: (self.shown, self.stderr))

    async def until_shown(self, text: str) -> None:
        await until(lambda: any(text in line for line in self.shown), lambda: (self.shown, self.stderr))


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.mark.parametrize("revision", STREAMABLE)
async def test_a_session_continues_in_the_new_process(program: Program, revision: str) -> None:
    program.write("one")
    async with program.connected(revision) as client:
        assert await text_of(client, "version") == "one"
        program.write("two", "\n@server.tool()\ndef added() -> str:\n    return 'new'\n")
        await program.until_reloaded()
        assert await text_of(client, "version") == "two"
        assert await text_of(client, "added") == "new"
    assert any("tools.added" in line for line in program.shown)


@pytest.mark.parametrize("revision", STREAMABLE)
async def test_a_call_in_flight_is_answered_by_the_version_that_received_it(program: Program, revision: str) -> None:
    program.write("one")
    file = program.folder / "go"
    async with program.connected(revision) as client:
        waiting = asyncio.create_task(text_of(client, "wait", file=str(file)))
        await text_of(client, "version")
        program.write("two")
        await program.until_reloaded()
        assert await text_of(client, "version") == "two"
        assert not waiting.done()
        file.touch()
        assert await waiting == "one"


@pytest.mark.parametrize("revision", STREAMABLE[1:])
async def test_a_question_of_the_old_version_is_answered_after_the_reload(program: Program, revision: str) -> None:
    program.write("one")
    file = program.folder / "go"
    async with program.connected(revision) as client:
        old = asyncio.create_task(text_of(client, "ask", file=str(file)))
        await text_of(client, "version")
        program.write("two")
        await program.until_reloaded()
        file.touch()
        assert await old == "one True"


async def test_a_call_that_outlives_the_grace_fails_as_reloaded(program: Program) -> None:
    program.write("one")
    async with program.connected(grace_seconds=0.01) as client:
        waiting = asyncio.create_task(client.call_tool("wait", {"file": str(program.folder / "never")}))
        await text_of(client, "version")
        program.write("two")
        result = await waiting
        assert result.is_error
        assert result.content[0].text.startswith("reloaded: ")  # type: ignore[union-attr]


@pytest.mark.parametrize("revision", STREAMABLE)
async def test_a_client_is_notified_of_changed_lists_on_its_open_stream(program: Program, revision: str) -> None:
    program.write("one")
    async with program.connected(revision) as client, client.subscribe(tools=True) as changes:
        await text_of(client, "version")
        program.write("two", "\n@server.tool()\ndef added() -> str:\n    return 'new'\n")
        change = await anext(changes)
        assert "tools" in str(change)
        assert "added" in [tool.name for tool in await client.list_tools()]


async def test_a_syntax_error_leaves_the_last_good_version(program: Program) -> None:
    program.write("one")
    async with program.connected() as client:
        assert await text_of(client, "version") == "one"
        program.write("two", "def broken(:\n")
        await program.until_shown("the last good version continues")
        assert await text_of(client, "version") == "one"


async def test_a_program_that_crashes_is_started_again(program: Program) -> None:
    program.write("one")
    async with program.connected() as client:
        assert await text_of(client, "version") == "one"
        result = await client.call_tool("crash", {})
        assert result.is_error
        assert await text_of(client, "version") == "one"


@pytest.mark.parametrize("revision", STREAMABLE)
async def test_no_call_is_lost_in_many_reloads(program: Program, revision: str) -> None:
    program.write("0")
    done = asyncio.Event()

    async def call(client: Client, number: int) -> int:
        calls = 0
        while not done.is_set():
            number += CALLS
            calls += 1
            assert await text_of(client, "double", number=number) == str(2 * number)
        return calls

    async with program.connected(revision) as client:
        calls = [asyncio.create_task(call(client, number)) for number in range(CALLS)]
        for number in range(1, RELOADS + 1):
            program.write(str(number))
            await program.until_reloaded(number)
        assert await text_of(client, "version") == str(RELOADS)
        done.set()
        assert sum(await asyncio.gather(*calls)) > CALLS


async def test_an_address_that_other_machines_reach_is_refused(program: Program) -> None:
    program.write("one")
    command = parse(str(program.file))
    assert isinstance(command, Command)
    reloader = HTTPReloader(command, "0.0.0.0:0", DevSettings(), show=print, show_stderr=print)
    with pytest.raises(TargetError, match=r"serves 127\.0\.0\.1 only"):
        await reloader.run()


def test_a_command_is_served_over_stdio_only() -> None:
    with pytest.raises(TargetError, match=r"--http needs FILE\.py"):
        HTTPReloader(Command(("node", "server.js")), ":0", DevSettings(), show=print, show_stderr=print)
