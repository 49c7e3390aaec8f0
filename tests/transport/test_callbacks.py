"""Callbacks: in order, whether plain or async; what they raise harms nobody; and their end is bounded."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord.transport.callbacks import Callback


@given(st.lists(st.integers(0, 3), max_size=12), st.data())
def test_calls_are_made_in_order_and_one_after_the_other(turns: list[int], data: st.DataObject) -> None:
    """Each call is async with so many turns of the loop, plain (0), or raises; between them the loop may turn."""
    begun: list[int] = []
    ended: list[int] = []
    raises = data.draw(st.lists(st.booleans(), min_size=len(turns), max_size=len(turns)))
    pauses = data.draw(st.lists(st.integers(0, 2), min_size=len(turns), max_size=len(turns)))

    def function(number: int) -> Any:
        assert begun == ended, "the one before has not ended"
        begun.append(number)
        if turns[number]:
            return later(number)
        ended.append(number)
        if raises[number]:
            raise ValueError("no")
        return None

    async def later(number: int) -> None:
        for _ in range(turns[number]):
            await asyncio.sleep(0)
        ended.append(number)
        if raises[number]:
            raise ValueError("no")

    async def run() -> None:
        callback = Callback(function, 100)
        for number, pause in enumerate(pauses):
            callback.call(number)
            for _ in range(pause):
                await asyncio.sleep(0)
        await callback.finish(5)
        assert callback.dropped == 0

    logging.disable()
    try:
        asyncio.run(run())
    finally:
        logging.disable(logging.NOTSET)
    assert begun == ended == list(range(len(turns)))


async def test_at_the_bound_the_oldest_is_dropped_counted_and_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    made: list[int] = []
    release = asyncio.Event()

    async def slow(number: int) -> None:
        made.append(number)
        await release.wait()

    callback = Callback(slow, 2)
    for number in range(6):
        callback.call(number)
    assert callback.dropped == 3
    release.set()
    await callback.finish(5)
    assert made == [0, 4, 5]
    assert [record.getMessage() for record in caplog.records if "too slow" in record.getMessage()] == [
        f"accord: callback {slow!r} is too slow: the oldest of its calls are dropped"
    ]


@pytest.mark.parametrize("begun", [True, False])
async def test_one_that_does_not_end_is_cancelled_and_what_waited_is_dropped(
    begun: bool, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[int] = []

    async def never(number: int) -> None:
        made.append(number)
        await asyncio.Event().wait()

    callback = Callback(never, 10)
    callback.call(1)
    callback.call(2)
    if begun:
        await asyncio.sleep(0)
    await callback.finish(0.01)
    await asyncio.sleep(0)
    assert made == [1]
    assert "was cancelled" in caplog.text
    await callback.finish(0)  # nothing is left
    callback.call(3)
    await asyncio.sleep(0)
    assert made == [1, 3]
    callback.cancel()


async def test_one_that_is_cancelled_before_it_begins_leaves_no_warning() -> None:
    async def never() -> None:
        raise AssertionError

    callback = Callback(never, 10)
    callback.call()
    callback.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_one_may_wait_for_its_own_end_and_does_not() -> None:
    async def itself() -> None:
        await callback.finish(5)
        done.set()

    done = asyncio.Event()
    callback = Callback(itself, 10)
    callback.call()
    async with asyncio.timeout(100):
        await done.wait()


async def test_one_that_cancels_itself_has_failed_and_the_next_is_called(caplog: pytest.LogCaptureFixture) -> None:
    made: list[int] = []

    async def gives_up(number: int) -> None:
        made.append(number)
        raise asyncio.CancelledError

    callback = Callback(gives_up, 10)
    callback.call(1)
    callback.call(2)
    await callback.finish(5)
    assert made == [1, 2]
    assert caplog.text.count("a callback failed") == 1


async def test_failures_of_one_kind_are_logged_once_and_only_the_first_with_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(number: int) -> Any:
        if number % 2:
            return later(number)
        raise ValueError(f"\x1b[31mplain\n{number}")

    async def later(number: int) -> None:
        raise KeyError(number)

    callback = Callback(fails, 100)
    for number in range(10):
        callback.call(number)
    await callback.finish(5)
    one, two = caplog.records
    assert r"ValueError: \x1b[31mplain\n0" in one.getMessage()
    assert "KeyError: 1" in two.getMessage()
    assert (bool(one.exc_info), bool(two.exc_info)) == (True, False)


async def test_what_is_returned_may_be_any_awaitable() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    made: list[int] = []

    def function(number: int) -> Any:
        made.append(number)
        return future

    callback = Callback(function, 10)
    callback.call(1)
    callback.call(2)
    assert made == [1]
    future.set_result(None)
    await callback.finish(5)
    assert made == [1, 2]


async def test_calls_that_wait_are_bounded_in_bytes_too() -> None:
    go_on = asyncio.Event()
    seen: list[int] = []

    async def slow(value: int) -> None:
        seen.append(value)
        await go_on.wait()

    callback = Callback(slow, 100, 1_000)
    for value in range(10):
        callback.call(value, size=400)
    assert callback.dropped == 7
    go_on.set()
    await callback.finish(20)
    assert seen == [0, 8, 9]
