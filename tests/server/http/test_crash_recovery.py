"""The server is killed at any point: its client comes back to the next one, and misses nothing that was said."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.server.http.http_clients import Stateful, text
from tests.server.http.killed_server import REPORTS
from tests.server.http.raw import Answer, Ended, Event, Socket

KILLS = 40
CALLS = 3


class Servers:
    """One server after the other, each of which is killed."""

    def __init__(self, forker: asyncio.subprocess.Process) -> None:
        self._forker = forker
        self.pid = 0

    async def start(self, file: Path, steps: int = 0) -> Socket | None:
        """The next one; None if it was killed before it served."""
        assert self._forker.stdin is not None
        self._forker.stdin.write(f"{file} {steps}\n".encode())
        words = await self._told()
        if words == ["over"]:
            return None
        self.pid = int(words[1])
        return Socket(int(words[0]))

    async def kill(self) -> None:
        """Kill the one that runs, if it still does."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        assert await self._told() in (["over"], [])

    async def _told(self) -> list[str]:
        assert self._forker.stdout is not None
        return (await self._forker.stdout.readline()).decode().split()


@asynccontextmanager
async def servers() -> AsyncIterator[Servers]:
    forker = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "tests.server.http.killed_server"],
        cwd=Path(__file__).parents[3],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    running = Servers(forker)
    try:
        yield running
    except BaseException:
        forker.kill()
        await running.kill()
        raise
    finally:
        assert forker.stdin is not None
        forker.stdin.close()
        code = await asyncio.wait_for(forker.wait(), 100)
    assert code == 0


async def read(answer: Answer, most: int = 1_000_000) -> list[Event]:
    """What comes until the end, or so many events; each has an id to come back with."""
    found: list[Event] = []
    with contextlib.suppress(Ended):
        while len(found) < most:
            found.append(await answer.event())
            assert found[-1].id is not None, found
    return found


async def called(client: Stateful, name: str, most: int, count: int = REPORTS) -> list[Event]:
    """What is heard of a call until the server is gone, or so many events were heard."""
    arguments = {"name": name, "count": count}
    try:
        return await read(await client.call("steps", arguments, id=name, progressToken=name), most)
    except (Ended, ConnectionError):
        return []


def check(found: list[Event], name: str, count: int = REPORTS) -> str:
    """All that was said of a call, once and in order; how it ended."""
    assert [int((event.id or "").rpartition("-")[2]) for event in found] == list(range(1, len(found) + 1))
    assert len({(event.id or "").rpartition("-")[0] for event in found}) == 1
    assert found[0].data is None
    reports, end = found[1:-1], found[-1].data
    assert [event.data["params"]["message"] for event in reports] == [f"{name} {step}" for step in range(len(reports))]
    assert end["id"] == name
    if "error" in end:
        assert "restarted" in end["error"]["message"]
        return "cut off"
    assert len(reports) == count
    assert text(end) == f"{name} done"
    return "done"


async def one_kill(running: Servers, file: Path, seeded: random.Random, steps: int) -> list[str]:
    """Open, call, be cut off; come back, and hear the rest: how the calls ended of which anything was heard."""
    raw = await running.start(file, steps)
    client, heard = None, {}
    if raw is not None:
        client = Stateful(raw)
        with contextlib.suppress(Ended, ConnectionError):
            await client.open()
            heard["early"] = await called(client, "early", 1_000, 3)
        if client.id and not steps:
            most = [seeded.randint(1, REPORTS + 2) for _ in range(CALLS)]
            found = await asyncio.gather(*(called(client, f"c{n}", most[n]) for n in range(CALLS)))
        elif client.id:
            found = await asyncio.gather(*(called(client, f"c{n}", 1_000) for n in range(CALLS)))
        else:
            found = []
        heard |= {f"c{n}": each for n, each in enumerate(found)}
        await running.kill()
    if client is None or not client.id:
        return []
    raw = await running.start(file)
    assert raw is not None
    again = Stateful(raw).join(client.id)
    ends = []
    for name, found in heard.items():
        if found:
            rest = await again.listen(found[-1].id)
            assert rest.status == 200, await rest.body()
            ends.append(check(found + await read(rest), name, 3 if name == "early" else REPORTS))
    await running.kill()
    return ends


@pytest.mark.timeout(300)
async def test_messages_of_a_killed_server_arrive_once_in_order_and_every_call_ends(tmp_path: Path) -> None:
    seeded = random.Random(4)
    ends: list[str] = []
    async with servers() as running:
        for run in range(KILLS):
            steps = seeded.randint(1_000, 30_000) if run % 2 else 0
            ends += await one_kill(running, tmp_path / f"{run % 4}.db", seeded, steps)
    assert len(ends) > KILLS
    assert {"cut off", "done"} == set(ends)


async def test_a_call_that_reported_nothing_ends_with_an_error_after_the_kill(tmp_path: Path) -> None:
    async with servers() as running:
        raw = await running.start(tmp_path / "e.db")
        assert raw is not None
        client = await Stateful(raw).open()
        call = await client.call("forever", id="f")
        primed = await call.event()
        await running.kill()
        assert await read(call) == []
        raw = await running.start(tmp_path / "e.db")
        assert raw is not None
        client = Stateful(raw).join(client.id)
        both = await asyncio.gather(*(client.listen(primed.id) for _ in range(2)))
        heard = [event for answer in both for event in await read(answer)]
        assert {event.data["id"] for event in heard} == {"f"}
        assert all("restarted" in event.data["error"]["message"] for event in heard)
        assert {event.id for event in heard} == {(primed.id or "")[:-1] + "2"}
        await running.kill()
