"""`accord dev` over stdio, with real processes."""

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
from accord.dev import terminal_lines
from accord.dev.settings import DevSettings
from accord.dev.stdio import StdioReloader
from accord.messages.revision import REVISIONS
from accord.transport import memory

from tests.waiting import turns, until

RELOADS = int(os.environ.get("ACCORD_DEV_RELOADS", "4"))
"""Reloads under load, for each revision."""

CALLS = 16

PROGRAM = """
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


class Program:
    """A file with a server, and what the developer was shown."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "weather.py"
        self.shown: list[str] = []
        self.stderr: list[str] = []
        self.reloader: StdioReloader

    def write(self, version: str, more: str = "") -> None:
        self.file.write_text(PROGRAM.format(version=version, more=more))

    @asynccontextmanager
    async def connected(self, revision: str = "2025-11-25", **settings: Any) -> AsyncIterator[Client]:
        async with (
            self.served(**settings) as transport,
            Client(transport, revisions=[revision], elicitation=lambda _: True) as client,
        ):
            yield client

    @asynccontextmanager
    async def served(self, **settings: Any) -> AsyncIterator[Any]:
        ours, theirs = memory.pair()
        command = parse(str(self.file))
        assert isinstance(command, Command)
        self.reloader = StdioReloader(
            command, theirs, DevSettings(**settings), show=self.shown.append, show_stderr=self.stderr.append
        )
        running = asyncio.create_task(self.reloader.run())
        try:
            yield ours
        finally:
            await ours.close()
            await running

    async def until_reloaded(self, times: int = 1) -> None:
        await until(lambda: self.reloader.reloads >= times, lambda: (self.shown, self.stderr))

    async def until_shown(self, text: str) -> None:
        await until(lambda: any(text in line for line in self.shown), lambda: (self.shown, self.stderr))


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


async def text_of(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    return str(result.content[0].text)  # type: ignore[union-attr]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_saved_file_is_served_without_a_new_connection(program: Program, revision: str) -> None:
    program.write("one")
    async with program.connected(revision) as client:
        assert await text_of(client, "version") == "one"
        program.write("two", "\n@server.tool()\ndef added() -> str:\n    return 'new'\n")
        await program.until_reloaded()
        assert await text_of(client, "version") == "two"
        assert await text_of(client, "added") == "new"
    assert any("tools.added" in line for line in program.shown)
    assert any("tools/call version: ok" in line for line in program.shown)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_call_in_flight_is_answered_by_the_version_that_received_it(program: Program, revision: str) -> None:
    program.write("one")
    file = program.folder / "go"
    async with program.connected(revision) as client:
        waiting = asyncio.create_task(text_of(client, "wait", file=str(file)))
        await text_of(client, "version")  # the call before it has been received
        program.write("two")
        await program.until_reloaded()
        assert await text_of(client, "version") == "two"
        assert not waiting.done()
        file.touch()
        assert await waiting == "one"


async def test_a_call_that_outlives_the_grace_fails_as_reloaded(program: Program) -> None:
    program.write("one")
    async with program.connected(grace_seconds=0.01) as client:
        waiting = asyncio.create_task(client.call_tool("wait", {"file": str(program.folder / "never")}))
        await text_of(client, "version")
        program.write("two")
        result = await waiting
        assert result.is_error
        assert result.content[0].text.startswith("reloaded: ")  # type: ignore[union-attr]


@pytest.mark.parametrize("revision", REVISIONS[2:])
async def test_a_question_of_the_old_version_is_answered_after_the_reload(program: Program, revision: str) -> None:
    program.write("one")
    file = program.folder / "go"
    async with program.connected(revision) as client:
        old = asyncio.create_task(text_of(client, "ask", file=str(file)))
        await text_of(client, "version")
        program.write("two")
        await program.until_reloaded()
        new = asyncio.create_task(text_of(client, "ask", file=str(file)))
        await text_of(client, "version")
        file.touch()
        assert (await old, await new) == ("one True", "two True")


async def test_a_syntax_error_leaves_the_last_good_version(program: Program) -> None:
    program.write("one")
    async with program.connected() as client:
        assert await text_of(client, "version") == "one"
        program.write("two", "def broken(:\n")
        await program.until_shown("the last good version continues")
        assert any("weather.py:" in line and "invalid syntax" in line for line in program.stderr)
        assert await text_of(client, "version") == "one"
        program.write("three")
        await program.until_reloaded()
        assert await text_of(client, "version") == "three"


async def test_a_program_that_is_broken_from_the_start_is_served_once_it_is_repaired(program: Program) -> None:
    program.write("one", "import weather_that_does_not_exist\n")
    async with program.connected() as client:
        assert await client.list_tools() == []
        result = await client.call_tool("version", {})
        assert result.is_error
        assert "weather_that_does_not_exist" in result.content[0].text  # type: ignore[union-attr]
        program.write("two")
        await until(lambda: any("reloaded in" in line for line in program.shown), lambda: program.shown)
        assert await text_of(client, "version") == "two"


async def test_an_imported_module_is_watched_even_if_it_was_broken(program: Program) -> None:
    module = program.folder / "clouds.py"
    module.write_text("NAME = 'cirrus'\n")
    program.write("one", "import clouds\n\n@server.tool()\ndef cloud() -> str:\n    return clouds.NAME\n")
    async with program.connected() as client:
        assert await text_of(client, "cloud") == "cirrus"
        module.write_text("NAME = \n")
        await program.until_shown("the last good version continues")
        module.write_text("NAME = 'cumulus'\n")
        await program.until_reloaded()
        assert await text_of(client, "cloud") == "cumulus"


async def test_two_modules_that_import_each_other_leave_the_last_good_version(program: Program) -> None:
    first, second = program.folder / "first.py", program.folder / "second.py"
    second.write_text("VALUE = 1\n")
    first.write_text("from second import VALUE\n")
    program.write("one", "import first\n")
    async with program.connected() as client:
        second.write_text("from first import VALUE\n")
        await program.until_shown("the last good version continues")
        assert any("circular import" in line for line in program.stderr)
        assert await text_of(client, "version") == "one"


async def test_a_program_that_crashes_is_started_again(program: Program) -> None:
    program.write("one")
    async with program.connected() as client:
        assert await text_of(client, "version") == "one"
        result = await client.call_tool("crash", {})
        assert result.is_error
        assert "exited with code 3" in result.content[0].text  # type: ignore[union-attr]
        assert await text_of(client, "version") == "one"


async def test_the_old_process_may_stop_before_the_new_one_starts(program: Program) -> None:
    lock = program.folder / "lock"
    alone = f"""
import atexit
lock = Path({str(lock)!r})
lock.touch(exist_ok=False)
atexit.register(lock.unlink)
"""
    program.write("one", alone)
    async with program.connected(stop_first=True) as client:
        assert await text_of(client, "version") == "one"
        program.write("two", alone)
        await program.until_reloaded()
        assert await text_of(client, "version") == "two"


async def test_a_host_that_does_not_request_a_changed_list_is_named(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal_lines, "LIST_SECONDS", 0.01)
    program.write("one")
    async with program.connected() as client:
        await text_of(client, "version")
        program.write("two", "\n@server.tool()\ndef added() -> str:\n    return 'new'\n")
        await program.until_shown("probably ignores list_changed")


async def test_a_file_that_is_written_in_two_halves_is_served_when_it_is_whole(program: Program) -> None:
    program.write("one")
    async with program.connected() as client:
        program.write("two")
        text = program.file.read_text()
        program.file.write_text(text[: len(text) // 2])
        program.file.write_text(text)
        await program.until_reloaded()
        assert await text_of(client, "version") == "two"


async def test_a_hundred_saves_lead_to_few_starts_and_the_last_version(program: Program) -> None:
    program.write("one")
    async with program.connected() as client:
        await text_of(client, "version")
        for number in range(100):
            program.write(f"save {number}")
            await turns(10)
        while await text_of(client, "version") != "save 99":
            await turns(10)
        assert program.reloader.starts < 10


@pytest.mark.parametrize("revision", REVISIONS)
async def test_no_call_is_lost_in_many_reloads(program: Program, revision: str) -> None:
    program.write("0")
    done = asyncio.Event()

    async def call(client: Client, number: int) -> int:
        calls = 0
        while not done.is_set():
            number += CALLS
            calls += 1
            result = await client.call_tool("double", {"number": number})
            assert str(2 * number) == result.content[0].text  # type: ignore[union-attr]
        return calls

    async with program.connected(revision) as client:
        calls = [asyncio.create_task(call(client, number)) for number in range(CALLS)]
        for number in range(1, RELOADS + 1):
            program.write(str(number))
            await program.until_reloaded(number)
        assert await text_of(client, "version") == str(RELOADS)
        done.set()
        assert sum(await asyncio.gather(*calls)) > CALLS
