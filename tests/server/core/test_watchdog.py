"""A function that holds the event loop is named, with file, line and what to do instead."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pytest

from accord import Client, Depends, Server
from accord.server.core.watchdog import HELD_SECONDS, WATCHDOG, LoopMonitor

MOST_SECONDS = 60.0
LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


class Warned(logging.Handler):
    """Says when a warning has come, so that a handler need not block for a time that some machine finds too short."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.come = threading.Event()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
        self.come.set()


@pytest.fixture
def warned() -> Iterator[Warned]:
    handler = Warned()
    logging.getLogger("accord.server").addHandler(handler)
    WATCHDOG._muted.clear()
    yield handler
    logging.getLogger("accord.server").removeHandler(handler)


def blocked(warned: Warned) -> None:
    assert warned.come.wait(MOST_SECONDS)


async def test_a_handler_that_blocks_is_named_with_the_line_that_holds(warned: Warned) -> None:
    server = Server("x")

    @server.tool
    async def slow() -> str:
        blocked(warned)
        return "done"

    async with Client(server) as client:
        assert (await client.call_tool("slow")).text == "done"
    (message,) = warned.messages
    found = re.fullmatch(
        r"accord: slow\(\) blocked the event loop for more than 1 s at (\S+):(\d+) \((.*)\); "
        r"the server answers no other request meanwhile: declare it with `def`, so that it runs in a thread, "
        r"or await asyncio.to_thread\(...\)",
        message,
    )
    assert found is not None, message
    assert found[3] == "assert warned.come.wait(MOST_SECONDS)"
    assert Path(found[1]).name == Path(__file__).name
    assert LINES[int(found[2]) - 1].strip() == found[3]


async def test_a_line_is_reported_once_a_minute(warned: Warned) -> None:
    server = Server("x")
    asked: list[float] = []

    @server.tool
    async def slow() -> None:
        watch = LoopMonitor(asyncio.get_running_loop(), threading.get_ident())
        for now in (0.0, HELD_SECONDS, 30.0, 30.0 + HELD_SECONDS, 61.5, 61.5 + HELD_SECONDS):
            if now in (30.0, 61.5):
                watch._pong()  # as the loop does between two calls that block
            asked.append(now)
            WATCHDOG._report(watch, now)

    async with Client(server) as client:
        await client.call_tool("slow")
    assert len(asked) == 6
    assert len(warned.messages) == 2


async def test_a_dependency_that_blocks_is_named_and_a_handler_in_a_thread_is_not(warned: Warned) -> None:
    server = Server("x")

    def connected() -> str:
        blocked(warned)
        return "connected"

    @server.tool
    async def query(database: Annotated[str, Depends(connected)]) -> str:
        return database

    async with Client(server) as client:
        assert (await client.call_tool("query")).text == "connected"
    (message,) = warned.messages
    assert message.startswith("accord: connected() blocked the event loop")


async def test_a_loop_that_runs_is_never_suspected_for_long() -> None:
    loop, watch = asyncio.get_running_loop(), LoopMonitor(asyncio.get_running_loop(), threading.get_ident())
    server = Server("x")

    @server.tool
    async def looks() -> list[str | None]:
        now, seen = 0.0, []
        for _ in range(10):
            now += HELD_SECONDS * 2
            seen.append(watch.check(now))
            await asyncio.sleep(0)
        return seen

    async with Client(server) as client:
        assert (await client.call_tool("looks")).data == [None] * 10
    assert watch.check(1e9) is None  # this is no handler
    assert loop.is_running()


def watching() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "accord-watchdog"]


async def test_the_thread_ends_with_the_last_server() -> None:
    for thread in watching():
        thread.join(MOST_SECONDS)
    async with Client(Server("x")), Client(Server("y")):
        (thread,) = watching()
    thread.join(MOST_SECONDS)
    assert not thread.is_alive()


BLOCKING = '''
import sys, threading, time
from accord import Server

server = Server("blocking")


class Stderr:
    """Releases the handler once it is reported."""
    seen = threading.Event()

    def write(self, text):
        if "blocked the event loop" in text:
            self.seen.set()
        return sys.__stderr__.write(text)

    def flush(self):
        sys.__stderr__.flush()


@server.tool
async def slow() -> str:
    sys.stderr = Stderr()
    Stderr.seen.wait(60)
    return "done"
'''


@pytest.mark.parametrize("over", ["stdio", "http"])
async def test_a_server_in_a_process_prints_it_on_stderr(tmp_path: Path, over: str) -> None:
    (tmp_path / "blocking.py").write_text(BLOCKING, encoding="utf-8")
    lines: list[str] = []
    if over == "stdio":
        async with Client(str(tmp_path / "blocking.py"), on_stderr=lines.append) as client:
            assert (await client.call_tool("slow")).text == "done"
    else:
        command = [sys.executable, "-m", "accord", "run", "blocking.py", "--http", "127.0.0.1:0"]
        process = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stderr=asyncio.subprocess.PIPE)
        try:
            assert process.stderr is not None
            first = (await process.stderr.readline()).decode()
            async with Client(first.split(" at ")[1].split(";")[0]) as client:
                assert (await client.call_tool("slow")).text == "done"
        finally:
            process.terminate()
        lines += (await process.communicate())[1].decode().splitlines()
    (told,) = [line for line in lines if "blocked" in line]
    assert "slow() blocked the event loop for more than 1 s" in told
    assert re.search(r"blocking\.py:\d+ \(Stderr\.seen\.wait\(60\)\)", told)
