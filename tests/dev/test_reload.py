"""The stories of `accord dev`, over stdio and over HTTP, with real processes and clients."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from accord import Client
from accord.dev import reporter
from accord.dev.http import HTTPReloader
from accord.errors import InvalidParams
from accord.messages.revision import REVISIONS

from tests.dev.programs import ADDED, TRANSPORTS, Program, text_of
from tests.waiting import SECONDS, turns, until

RELOADS = int(os.environ.get("ACCORD_DEV_RELOADS", "3"))
"""Reloads under load, for each transport and revision."""

CALLS = 16

PAIRS = [
    (each, revision) for each in TRANSPORTS for revision in REVISIONS if (each, revision) != ("http", REVISIONS[0])
]
"""HTTP+SSE (2024-11-05) is another transport, whose connection ends with its process."""

REPEATED = """
from typing import Annotated
from accord import Header

@server.tool()
def repeated(region: Annotated[str, Header("Region")]) -> str:
    return region
"""
"""A tool with an argument that a header repeats."""

QUESTION = """
from accord import ToolAnnotations

server = Server("weather", state_keys={state_keys})

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def choose(ctx: Context) -> str:
    answer = await ctx.elicit("sure?", bool)
    return f"{version} {{answer.data}}"
"""
"""A call that may run again, so that any process with the same keys continues it."""

each_revision = pytest.mark.parametrize(("program", "revision"), PAIRS, indirect=["program"])
each_revision_with_questions = pytest.mark.parametrize(
    ("program", "revision"), [each for each in PAIRS if each[1] in REVISIONS[2:]], indirect=["program"]
)


@each_revision
async def test_a_saved_file_is_served_without_a_new_connection(program: Program, revision: str) -> None:
    program.write("one")
    async with program.connected(revision) as client:
        assert await text_of(client, "version") == "one"
        program.write("two", ADDED)
        await program.until_reloaded()
        assert await text_of(client, "version") == "two"
        assert await text_of(client, "added") == "new"
    assert any("tools.added" in line for line in program.shown)
    assert any("tools/call version: ok" in line for line in program.shown)


@each_revision
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


@each_revision_with_questions
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


async def answer_after_a_reload(program: Program, state_keys: str) -> str:
    """Return the result of a call whose question is answered when the process that asked is gone."""

    def write(version: str) -> None:
        program.write(version, QUESTION.format(version=version, state_keys=state_keys))

    async def answer(question: object) -> bool:
        write("two")
        await program.until_reloaded()
        await until(lambda: len(program.reloader._transports) == 1)
        return True

    write("one")
    async with (
        program.served(grace_seconds=0.01) as target,
        Client(target, revisions=["2026-07-28"], elicitation=answer) as client,
    ):
        return await text_of(client, "choose")


async def test_a_pending_question_outlives_its_process_with_the_same_state_keys(program: Program) -> None:
    assert await answer_after_a_reload(program, "[b'a secret of at least 16 bytes']") == "two True"


async def test_a_pending_question_ends_with_its_process_without_state_keys(program: Program) -> None:
    with pytest.raises(InvalidParams, match="state_keys"):
        await answer_after_a_reload(program, "None")


@each_revision
async def test_a_client_is_notified_of_changed_lists(program: Program, revision: str) -> None:
    program.write("one")
    async with program.connected(revision) as client, client.subscribe(tools=True) as changes:
        await text_of(client, "version")
        program.write("two", ADDED)
        change = await anext(changes)
        assert "tools" in str(change)
        assert "added" in [tool.name for tool in await client.list_tools()]


async def test_a_host_that_does_not_request_a_changed_list_is_named(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter, "LIST_SECONDS", 0.01)
    program.write("one")
    async with program.connected() as client:
        await text_of(client, "version")
        program.write("two", ADDED)
        await program.until_shown("probably ignores list_changed")


async def test_changes_that_a_session_is_not_notified_of_are_shown(program: Program) -> None:
    program.write("one")
    async with program.connected() as client:
        await text_of(client, "version")
        source = program.file.read_text()
        resource = "\n@server.resource('note://one')\ndef note() -> str:\n    return 'one'\n"
        program.file.write_text(source.replace('Server("weather")', 'Server("weather", instructions="Be brief.")'))
        await program.until_shown("the host still has the old instructions: reconnect it")
        program.file.write_text(source + resource)
        await program.until_shown("the host still has the old instructions and capabilities: reconnect it")
        before = len(program.shown)
        program.file.write_text(source + resource + ADDED)
        await program.until_reloaded(3)
        assert not any("still has the old" in line for line in program.shown[before:])


# --- programs that do not start, or end ------------------------------------------------------------------------------


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
        await text_of(client, "version")
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
        assert "the program ended during this call" in result.content[0].text  # type: ignore[union-attr]
        assert await text_of(client, "version") == "one"
    assert any("exited with code 3" in line for line in program.shown)


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


async def test_a_new_call_waits_for_the_calls_of_the_process_that_stops_first_only(program: Program) -> None:
    """It does not itself keep the old process, whose end is over before the new one starts."""
    lock, go = program.folder / "lock", program.folder / "go"
    alone = f"""
import atexit, time
lock = Path({str(lock)!r})
lock.touch(exist_ok=False)
atexit.register(lambda: (time.sleep(0.5), lock.unlink()))
"""
    program.write("one", alone)
    async with program.connected(stop_first=True, grace_seconds=1000) as client:
        waiting = asyncio.create_task(text_of(client, "wait", file=str(go)))
        assert await text_of(client, "version") == "one"
        program.write("two", alone)
        await until(lambda: not _is_active(program))
        new = asyncio.create_task(text_of(client, "version"))
        await turns(20)
        go.touch()
        async with asyncio.timeout(SECONDS):
            assert [await waiting, await new] == ["one", "two"]


async def test_a_process_that_still_starts_is_stopped_first_too(program: Program) -> None:
    lock, started, go = program.folder / "lock", program.folder / "started", program.folder / "go"
    alone = f"""
import atexit, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
lock = Path({str(lock)!r})
lock.touch(exist_ok=False)
atexit.register(lambda: (time.sleep(1.5), lock.unlink()))
"""
    slow = f"""
Path({str(started)!r}).touch()
while not Path({str(go)!r}).exists():
    time.sleep(0.01)
"""
    program.write("one", alone)
    async with program.connected(stop_first=True) as client:
        assert await text_of(client, "version") == "one"
        program.write("two", alone + slow)
        await until(started.exists)
        program.write("three", alone)
        assert await text_of(client, "version") == "three"


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_process_that_stops_first_gets_the_answers_to_its_questions(program: Program, revision: str) -> None:
    program.write("one")
    (program.folder / "go").touch()
    asked, go = asyncio.Event(), asyncio.Event()

    async def answer(_: Any) -> bool:
        asked.set()
        await go.wait()
        return True

    async with (
        program.served(stop_first=True, grace_seconds=1000) as target,
        Client(target, revisions=[revision], elicitation=answer) as client,
    ):
        call = asyncio.create_task(text_of(client, "ask", file=str(program.folder / "go")))
        await asked.wait()
        program.write("two")
        await until(lambda: not _is_active(program))
        go.set()
        async with asyncio.timeout(SECONDS):
            assert await call == "one True"
        assert await text_of(client, "version") == "two"


def _is_active(program: Program) -> bool:
    if isinstance(program.reloader, HTTPReloader):
        return program.reloader._processes.current is not None
    return program.reloader._has_active


async def test_a_file_that_is_written_in_two_halves_is_served_when_it_is_whole(program: Program) -> None:
    program.write("one")
    async with program.connected() as client:
        await text_of(client, "version")
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


# --- tools for searching ---------------------------------------------------------------------------------------------


@each_revision
async def test_a_new_tool_is_found_and_called_with_the_tools_for_searching(program: Program, revision: str) -> None:
    program.write("one")
    async with program.connected(revision, search=True) as client:
        assert {"search_tools", "call_tool", "version"} <= {tool.name for tool in await client.list_tools()}
        program.write("two", ADDED + REPEATED)
        await program.until_reloaded()
        assert '"name":"added"' in await text_of(client, "search_tools", query="added")
        assert await text_of(client, "call_tool", name="added") == "new"
        assert await text_of(client, "call_tool", name="double", arguments={"number": 4}) == "8"
        assert await text_of(client, "call_tool", name="repeated", arguments={"region": "north"}) == "north"


async def test_a_call_of_no_tool_with_the_tools_for_searching_is_an_error(program: Program) -> None:
    program.write("one")
    async with program.connected(search=True) as client:
        with pytest.raises(InvalidParams, match="no tool 'nothing'"):
            await client.call_tool("call_tool", {"name": "nothing"})


# --- many reloads ----------------------------------------------------------------------------------------------------


@each_revision
async def test_no_call_is_lost_in_many_reloads(program: Program, revision: str) -> None:
    """With 16 calls in flight. ACCORD_DEV_RELOADS=1000 is the long form, with --timeout=0."""
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
        answered = sum(await asyncio.gather(*calls))
    print(f"{program.transport} {revision}: {RELOADS} reloads, {answered} calls answered, none lost")
    assert answered > CALLS
