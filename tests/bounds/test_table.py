"""Every limit at its value and above it: who is within it is served, who exceeds it learns which limit it was, and
nobody else waits for it.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

import tests.bounds.client_rows
import tests.bounds.http_rows
import tests.bounds.server_rows
import tests.bounds.task_rows
import tests.bounds.waiting_rows  # noqa: F401
from tests.bounds.table import ELSEWHERE, GROUPS, ROWS, Row
from tests.measure import processor_seconds

HELD_SECONDS = 0.05
"""The longest that one step of the event loop may take, in time of its thread."""
ANSWER_BYTES = 1_024
"""The text of an error that refuses a short request."""


class LongestStep:
    seconds = 0.0


@contextmanager
def longest_step() -> Iterator[LongestStep]:
    """Measure the steps of event loops, each in processor time of its thread."""
    found, run = LongestStep(), asyncio.Handle._run

    def measured(handle: asyncio.Handle) -> None:
        begun = time.thread_time()
        run(handle)
        found.seconds = max(found.seconds, time.thread_time() - begun)

    asyncio.Handle._run = measured  # type: ignore[method-assign]
    try:
        yield found
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]


@pytest.mark.parametrize("extra", [0, 1], ids=["at", "above"])
@pytest.mark.parametrize("row", ROWS, ids=repr)
async def test_the_last_one_within_a_limit_is_accepted_and_the_next_one_is_refused(row: Row, extra: int) -> None:
    with longest_step() as step:
        found = await row.work(row.over, extra)
    if step.seconds > HELD_SECONDS:  # the first time, modules are imported and patterns are compiled
        with longest_step() as step:
            found = await row.work(row.over, extra)
    if not extra:
        assert found.refused == ""
    else:
        assert found.refused != ""
        assert row.name in found.refused
    unit = processor_seconds(lambda: sorted(map(str, range(80_000))))
    assert step.seconds < max(HELD_SECONDS, 5 * unit)
    assert found.received <= 2 * found.sent + ANSWER_BYTES


def test_each_limit_has_a_row() -> None:
    limits = {
        f"{group}.{field.name}"
        for group, type_ in GROUPS.items()
        for field in msgspec.structs.fields(type_)
        if not isinstance(field.default, msgspec.Struct)
    }
    rows = {row.limit for row in ROWS}
    assert limits - rows - ELSEWHERE.keys() == set(), "limits without a row"
    assert (rows | ELSEWHERE.keys()) - limits == set(), "rows of no limit"
    assert rows & ELSEWHERE.keys() == set()


@pytest.mark.parametrize("limit", ELSEWHERE)
def test_the_row_that_is_another_test_exists_and_sets_its_limit(limit: str) -> None:
    path, _, name = ELSEWHERE[limit].partition("::")
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    assert callable(getattr(module, name))
    assert limit.partition(".")[2] in (Path(__file__).parents[2] / path).read_text()


async def test_a_step_that_takes_long_is_measured() -> None:
    def work() -> None:
        begun = time.thread_time()
        while time.thread_time() - begun < 2 * HELD_SECONDS:
            sum(range(1_000))

    with longest_step() as step:
        asyncio.get_running_loop().call_soon(work)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert step.seconds > HELD_SECONDS
