"""The pool for plain handlers: every call is run and answered, whatever comes together and whatever blocks."""

from __future__ import annotations

import asyncio
import random
import selectors
import threading
import time
from functools import partial
from typing import Any

import pytest

from accord.errors import InternalError
from accord.limits import Limits
from accord.server.core.workers import WorkerPool

from tests.waiting import until


async def test_calls_that_come_together_are_all_answered() -> None:
    workers = WorkerPool(Limits(workers=4, worker_queue=10_000))
    results = await asyncio.gather(*(workers.run(lambda n=n: n) for n in range(5_000)))
    assert results == list(range(5_000))


async def test_calls_that_come_at_any_time_are_all_answered() -> None:
    workers = WorkerPool(Limits(workers=3, worker_queue=10_000))
    chance = random.Random(1)

    def job(n: int, seconds: float) -> int:
        if seconds:
            time.sleep(seconds)
        return n

    async def caller(first: int) -> None:
        for n in range(first, first + 40):
            assert await workers.run(job, n, chance.choice([0, 0, 0, 0.0005, 0.002])) == n
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)

    async with asyncio.timeout(100):
        await asyncio.gather(*(caller(first * 1000) for first in range(20)))


async def test_blocking_calls_run_side_by_side() -> None:
    workers = WorkerPool(Limits(workers=8))
    together = threading.Barrier(8)
    async with asyncio.timeout(100):
        await asyncio.gather(*(workers.run(together.wait, 5) for _ in range(8)))


async def test_a_result_does_not_wait_for_a_call_behind_it_that_blocks() -> None:
    workers = WorkerPool(Limits(workers=1))
    release = threading.Event()
    first = asyncio.ensure_future(workers.run(lambda: "first"))
    second = asyncio.ensure_future(workers.run(lambda: "second"))
    blocked = asyncio.ensure_future(workers.run(release.wait, 10))
    try:
        async with asyncio.timeout(100):
            assert (await first, await second) == ("first", "second")
        assert not blocked.done()
    finally:
        release.set()
    assert await blocked is True


class Counting(selectors.DefaultSelector):  # type: ignore[valid-type,misc]
    """Counts how often the loop turns."""

    turns = 0

    def select(self, timeout: float | None = None) -> Any:
        self.turns += 1
        return super().select(timeout)


def test_an_idle_pool_does_not_keep_the_loop_busy() -> None:
    selector = Counting()

    async def story() -> None:
        workers = WorkerPool(Limits(workers=2))
        both, release = threading.Barrier(3), threading.Event()
        blocked = [
            asyncio.ensure_future(workers.run(lambda: both.wait(20) >= 0 and release.wait(20))) for _ in range(2)
        ]
        await asyncio.to_thread(both.wait, 20)
        before = selector.turns
        await asyncio.sleep(0.2)
        assert selector.turns - before < 20
        release.set()
        assert await asyncio.gather(*blocked) == [True, True]

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(story())


async def test_a_call_that_was_cancelled_while_it_waited_is_not_run() -> None:
    workers = WorkerPool(Limits(workers=1))
    began, release, ran = threading.Event(), threading.Event(), threading.Event()
    blocked = asyncio.ensure_future(workers.run(lambda: began.set() or release.wait(10)))
    waits = asyncio.ensure_future(workers.run(ran.set))
    await until(began.is_set)
    waits.cancel()
    await asyncio.sleep(0)
    release.set()
    await blocked
    assert await workers.run(lambda: "after") == "after"
    assert not ran.is_set()


async def test_a_coroutine_that_a_plain_function_returns_is_awaited_on_the_loop() -> None:
    async def name() -> str:
        return threading.current_thread().name

    workers = WorkerPool()
    assert await workers.run(partial(name)) == threading.current_thread().name
    assert await workers.run(lambda: threading.current_thread().name) != threading.current_thread().name


async def test_too_many_calls_are_refused_and_room_comes_back() -> None:
    workers = WorkerPool(Limits(workers=1, worker_queue=1))
    release = threading.Event()
    held = [asyncio.ensure_future(workers.run(release.wait, 10)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(InternalError, match="all 1 worker threads are busy and 1 calls wait"):
        await workers.run(release.wait, 10)
    release.set()
    await asyncio.gather(*held)
    assert await workers.run(lambda: "room") == "room"
