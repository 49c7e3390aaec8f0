"""`RateLimit`: who is counted together, what is told, and what is remembered."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord import (
    APIKeys,
    DeclarationError,
    MemoryRates,
    RateLimit,
    RateStore,
    Request,
    Server,
    SQLiteRates,
    StoreError,
)
from accord.session.rate import Pace

from tests.server.http.http_clients import Modern, site
from tests.server.middleware.transports import WAYS, called, reached, text


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def limited(limit: RateLimit, **options: Any) -> Server:
    server = Server("test", middleware=[limit], **options)
    server.tool(name="a")(lambda: "a")
    server.tool(name="b")(lambda: "b")
    return server


def passed(answer: dict[str, Any]) -> bool:
    return "error" not in answer


@pytest.mark.parametrize("way", WAYS)
async def test_one_too_many_learns_when_to_come_back_and_comes_back_then(way: str) -> None:
    clock = Clock()
    server = limited(RateLimit(per_second=2, burst=3, store=MemoryRates(clock=clock)))
    async with reached(server, way) as ask:
        assert [passed(await ask(*called("a"))) for _ in range(4)] == [True, True, True, False]
        error = (await ask(*called("a")))["error"]
        assert error["code"] == 429
        assert error["message"] == "more than 2 a second: tools/call a; try again in 0.500 s"
        clock.now += error["data"]["retryAfter"]
        assert [passed(await ask(*called("a"))) for _ in range(2)] == [True, False]


async def test_principals_are_counted_apart_and_all_their_requests_together() -> None:
    server = limited(RateLimit(1, store=MemoryRates(clock=Clock())), auth=APIKeys({"k-ann": "ann", "k-bob": "bob"}))
    async with site(server) as here:
        ann, bob = (Modern(here.raw, authorization=f"Bearer {key}") for key in ("k-ann", "k-bob"))
        assert passed(await (await ann.call("a")).result())
        assert not passed(await (await ann.ask("tools/list")).result())
        assert passed(await (await bob.ask("tools/list")).result())


@pytest.mark.parametrize(
    ("by", "passing"),
    [
        ("principal", [True, False, False, False]),
        ("tool", [True, False, True, True]),
        ("method", [True, False, False, True]),
        (lambda request: "all" if request.name else None, [True, False, False, True]),
    ],
)
async def test_what_is_counted_together(by: Any, passing: list[bool]) -> None:
    server = limited(RateLimit(1, by=by, store=MemoryRates(clock=Clock())))
    asked = [called("a"), called("a"), called("b"), ("tools/list", {})]
    async with reached(server, "memory 2026-07-28") as ask:
        assert [passed(await ask(*each)) for each in asked] == passing


async def test_a_rate_of_zero_refuses_every_call() -> None:
    async with reached(limited(RateLimit(0)), "memory 2026-07-28") as ask:
        assert text(await ask(*called("a"))) == "more than 0 a second: tools/call a is not allowed"


@pytest.mark.parametrize("wrong", [{"per_second": -1}, {"burst": 0}, {"by": "colour"}])
def test_what_is_no_rate_is_refused(wrong: Any) -> None:
    with pytest.raises(DeclarationError):
        RateLimit(**wrong)


# --- the stores ----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def stored(kind: str, folder: Path) -> AsyncIterator[tuple[RateStore, Clock]]:
    clock = Clock()
    if kind == "memory":
        yield MemoryRates(clock=clock), clock
        return
    made = SQLiteRates(folder / "rates.db", clock=clock)
    yield made, clock
    await made.close()


both_stores = pytest.mark.parametrize("kind", ["memory", "sqlite"])


@pytest.mark.skipif(os.name == "nt", reason="a file has no mode there")
async def test_the_file_of_rates_is_its_owners_alone(tmp_path: Path) -> None:
    async with stored("sqlite", tmp_path) as (rates, _):
        await rates.take("a", Pace(1, 2))
        assert set(modes(tmp_path).values()) == {0o600}, modes(tmp_path)


def modes(folder: Path) -> dict[str, int]:
    return {each.name: each.stat().st_mode & 0o777 for each in folder.iterdir()}


@both_stores
async def test_both_stores_count_alike(kind: str, tmp_path: Path) -> None:
    pace = Pace(1, 2)
    async with stored(kind, tmp_path) as (rates, clock):
        assert [await rates.take("a", pace) for _ in range(3)] == [0, 0, pytest.approx(1)]
        assert await rates.take("b", pace) == 0
        clock.now += 1
        assert [await rates.take("a", pace) for _ in range(2)] == [0, pytest.approx(1)]
        never = Pace(0)
        assert await rates.take("c", never) == float("inf")


@both_stores
async def test_at_once_no_more_than_a_burst_get_through(kind: str, tmp_path: Path) -> None:
    async with stored(kind, tmp_path) as (rates, _):
        waits = await asyncio.gather(*(rates.take("a", Pace(1, 5)) for _ in range(50)))
    assert waits.count(0) == 5


@given(st.lists(st.floats(0, 3), max_size=40), st.integers(1, 4))
def test_in_no_second_more_than_the_burst_and_the_rate_get_through(pauses: list[float], burst: int) -> None:
    clock = Clock()
    rates, recent = MemoryRates(clock=clock), deque[float]()

    async def run() -> None:
        for pause in pauses:
            clock.now += pause
            if await rates.take("a", Pace(2, burst)) == 0:
                recent.append(clock.now)
            while recent and recent[0] < clock.now - 1:
                recent.popleft()
            assert len(recent) <= burst + 2 + 1

    asyncio.run(run())


async def test_memory_remembers_so_many_and_forgets_the_oldest() -> None:
    rates = MemoryRates(most=2, clock=Clock())
    pace = Pace(1, 1)
    for key in ("a", "b", "a", "c"):
        await rates.take(key, pace)
    assert len(rates) == 2
    assert await rates.take("a", pace) > 0
    assert await rates.take("b", pace) == 0


async def test_a_file_of_rates_holds_so_many_keys(tmp_path: Path) -> None:
    path, pace = tmp_path / "rates.db", Pace(0.001, 2)
    rates = SQLiteRates(path, most=200, clock=Clock())
    for _ in range(2):
        await rates.take("used up", pace)
    for number in range(1000):
        await rates.take(f"key {number}", pace)
    assert await rates.take("used up", pace) > 0
    await rates.close()
    with closing(sqlite3.connect(path)) as db:
        (count,) = db.execute("SELECT COUNT(*) FROM rates").fetchone()
    assert 200 <= count <= 202
    with pytest.raises(DeclarationError):
        SQLiteRates(path, most=0)


async def test_short_processes_do_not_fill_a_file_of_rates(tmp_path: Path) -> None:
    path = tmp_path / "rates.db"
    for number in range(250):
        rates = SQLiteRates(path, most=200, clock=Clock())
        assert await rates.take(f"key {number}", Pace(0.001, 2)) == 0
        await rates.close()
    with closing(sqlite3.connect(path)) as db:
        (count,) = db.execute("SELECT COUNT(*) FROM rates").fetchone()
    assert count <= 202


TAKES = """
import asyncio, sys
from accord import SQLiteRates
from accord.session.rate import Pace

async def main():
    rates = SQLiteRates(sys.argv[1])
    print(sum([await rates.take("a", Pace(0.001, 5)) == 0 for _ in range(20)]))
    await rates.close()

asyncio.run(main())
"""


def test_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rates.db"
    running = [
        subprocess.Popen([sys.executable, "-c", TAKES, str(path)], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    assert sum(int(process.communicate(timeout=30)[0]) for process in running) == 5


async def test_a_clock_that_is_set_back_refuses_no_client(tmp_path: Path) -> None:
    clock = Clock()
    rates = SQLiteRates(tmp_path / "rates.db", clock=clock)
    pace = Pace(1, 2)
    for _ in range(3):
        await rates.take("a", pace)
    clock.now -= 900
    assert await rates.take("a", pace) <= 2
    clock.now += 2
    assert await rates.take("a", pace) == 0
    await rates.close()


async def test_a_file_that_cannot_be_used_fails_the_request_and_says_which(tmp_path: Path) -> None:
    rates = SQLiteRates(tmp_path / "nowhere" / "rates.db")
    with pytest.raises(StoreError, match=r"nowhere/rates\.db"):
        await rates.take("a", Pace(1))
    async with reached(limited(RateLimit(1, store=rates)), "memory 2026-07-28") as ask:
        answer = await ask(*called("a"))
        assert answer["result"]["isError"]
    await rates.close()


async def test_a_limit_can_be_counted_by_what_the_request_says() -> None:
    def by_city(request: Request) -> str | None:
        return request.arguments.get("city") if request.name == "look" else None

    server = Server("test", middleware=[RateLimit(1, by=by_city, store=MemoryRates(clock=Clock()))])
    server.tool(name="look")(lambda city: city)
    async with reached(server, "memory 2026-07-28") as ask:
        found = [passed(await ask(*called("look", city=city))) for city in ("Oslo", "Oslo", "Bergen")]
    assert found == [True, False, True]
