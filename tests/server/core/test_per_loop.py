"""The state of a server on each event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from accord.server.core.per_loop import PerLoop


@contextmanager
def new_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    try:
        yield loop
    finally:
        loop.close()


async def add(values: PerLoop[str], value: str) -> str:
    return values.add(value)


def test_the_value_of_a_closed_loop_is_dropped_when_another_loop_gets_one() -> None:
    dropped: list[str] = []
    values = PerLoop[str](dropped.append)
    with new_loop() as first, new_loop() as second:
        assert first.run_until_complete(add(values, "first")) == "first"
        second.run_until_complete(add(values, "second"))
        assert (values[first], values[second], dropped) == ("first", "second", [])
    with new_loop() as third:
        third.run_until_complete(add(values, "third"))
        assert (list(values.values()), dropped) == (["third"], ["first", "second"])


def test_closed_loops_are_dropped_on_demand() -> None:
    values = PerLoop[str]()
    with new_loop() as loop:
        loop.run_until_complete(add(values, "value"))
        values.drop_closed()
        assert list(values.values()) == ["value"]
    values.drop_closed()
    assert not values
