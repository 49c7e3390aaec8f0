"""Many at once, and for long: nothing is crossed, and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import random
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from accord import Context, HTTPLimits, Limits, Server
from accord.server.http.app import HTTPApp

from tests.server.http.http_clients import Modern, Stateful, encode, request, site, text
from tests.server.http.raw import Answer, Raw, Socket

AT_ONCE = 2_000
CALLS = 20_000
SESSIONS = 500
KILOBYTES = 40

PROGRAM = """
from accord import Server

Server("many").run(http="127.0.0.1:0")
"""


def crowd(count: int) -> Server:
    """A server whose calls wait until so many are in it, and then end in any order."""
    server = Server("crowd", limits=Limits(http=HTTPLimits(requests=count)))
    inside: list[asyncio.Event] = []

    @server.tool
    async def echo(text: str) -> str:
        let_go = asyncio.Event()
        inside.append(let_go)
        if len(inside) == count:
            random.shuffle(inside)
            for each in inside:
                each.set()
        await let_go.wait()
        return text

    return server


async def test_two_thousand_calls_with_one_id_each_get_their_own_answer() -> None:
    async with site(crowd(AT_ONCE)) as here:
        client = Modern(here.raw)
        await all_are_answered(lambda number: client.call("echo", {"text": str(number)}, id=1))


async def test_two_thousand_calls_of_a_hundred_sessions_that_use_the_same_ids_each_get_their_own_answer() -> None:
    async with site(crowd(AT_ONCE)) as here:
        clients = [await Stateful(here.raw).open() for _ in range(100)]
        await all_are_answered(
            lambda number: clients[number % 100].call("echo", {"text": str(number)}, id=number // 100)
        )


async def test_two_thousand_calls_on_as_many_connections_each_get_their_own_answer() -> None:
    async with site(crowd(AT_ONCE), "socket") as here:
        client = Modern(here.raw)
        await all_are_answered(lambda number: client.call("echo", {"text": str(number)}, id=1))


async def all_are_answered(call: Callable[[int], Awaitable[Answer]]) -> None:
    async def said(number: int) -> str:
        return text(await (await call(number)).result())

    assert await asyncio.gather(*(said(number) for number in range(AT_ONCE))) == [str(n) for n in range(AT_ONCE)]


class Caller:
    """Sends one message again and again, with nothing around it that could keep something."""

    def __init__(self, app: HTTPApp, headers: dict[str, str], message: Any) -> None:
        self._app = app
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._event = {"type": "http.request", "body": encode(message)}
        self._status = 0

    async def call(self) -> None:
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": self._headers}
        asked = iter([self._event])

        async def receive() -> Any:
            return next(asked, None) or await asyncio.Event().wait()

        await self._app(scope, receive, self._send)
        assert self._status == 200

    async def _send(self, message: Any) -> None:
        self._status = message.get("status", self._status)


def grown(server: Server) -> Server:
    @server.tool
    async def echo(text: str) -> str:
        return text

    @server.tool
    async def count(ctx: Context) -> None:
        ctx.report_progress(1)

    return server


async def least_left_by(calls: int, call: Callable[[], Awaitable[None]]) -> int:
    """Return how many more objects there are after a round of so many calls: the least of a few, once it is warm.

    What is kept for a while, as cancelled timers are, comes and goes: after some rounds there is more of it, after
    others less. What leaks is there after each round.
    """
    await _times(calls // 5, call)
    least, before = calls, _objects()
    for _ in range(8):
        await _times(calls, call)
        after = _objects()
        least, before = min(least, after - before), after
        if least < calls // 100:
            break
    return least


async def _times(calls: int, call: Callable[[], Awaitable[None]]) -> None:
    for _ in range(calls):
        await call()


def _objects() -> int:
    gc.collect()
    return sys.getallocatedblocks()


async def test_twenty_thousand_calls_leave_nothing_behind() -> None:
    async with site(grown(Server("grown"))) as here:
        client = Modern(here.raw)
        message = request("tools/call", {"name": "echo", "arguments": {"text": "hello"}, "_meta": client.meta()})
        caller = Caller(here.app, client.head(message), message)
        assert await least_left_by(CALLS, caller.call) < CALLS // 100


async def test_twenty_thousand_calls_of_one_session_leave_nothing_behind() -> None:
    async with site(grown(Server("grown"))) as here:
        client = await Stateful(here.raw).open()
        caller = Caller(here.app, client.headers, client.calling("echo", {"text": "hello"}))
        assert await least_left_by(CALLS, caller.call) < CALLS // 100


async def test_streams_leave_no_more_than_may_be_stored_of_them() -> None:
    async with site(grown(Server("grown", limits=Limits(http=HTTPLimits(events_bytes=20_000))))) as here:
        client = await Stateful(here.raw).open()
        caller = Caller(here.app, client.headers, client.calling("count", progressToken=1))
        assert await least_left_by(CALLS // 4, caller.call) < CALLS // 400


async def test_sessions_that_were_ended_leave_nothing_behind() -> None:
    async with site(grown(Server("grown"))) as here:

        async def visit() -> None:
            client = await Stateful(here.raw).open()
            assert (await client.delete()).status == 200

        assert await least_left_by(2_000, visit) < 1_000


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Raw, int]]:
    """A server in a process of its own, and the process."""
    program = folder / "many.py"
    program.write_text(PROGRAM)
    with subprocess.Popen([sys.executable, str(program)], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            port = re.search(r"http://127\.0\.0\.1:(\d+)", process.stderr.readline())
            assert port is not None
            yield Socket(int(port[1])), process.pid
        finally:
            process.kill()


def resident(pid: int) -> int:
    """Kilobytes of memory that a process has."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


@asynccontextmanager
async def streams(clients: list[Stateful]) -> AsyncIterator[None]:
    """The GET stream of each."""
    opened = [await client.listen() for client in clients]
    assert [each.status for each in opened] == [200] * len(clients)
    yield
    for each in opened:
        await each.leave()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory of a process is read where Linux tells it")
async def test_five_hundred_open_sessions_take_forty_kilobytes_each_at_most_with_their_streams(tmp_path: Path) -> None:
    with serving(tmp_path) as (raw, pid):
        for _ in range(50):
            await (await Stateful(raw).open()).delete()
        before = resident(pid)
        clients = [await Stateful(raw).open() for _ in range(SESSIONS)]
        assert resident(pid) - before <= SESSIONS * KILOBYTES
        async with streams(clients):
            assert resident(pid) - before <= SESSIONS * KILOBYTES
