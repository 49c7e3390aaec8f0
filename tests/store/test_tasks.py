"""The contract of `Tasks`, for both stores; runners that end, and what is sent to them."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from glob import glob
from pathlib import Path

import pytest

from accord.errors import StoreError
from accord.limits import Limits, TaskLimits
from accord.store.sqlite_tasks import SQLiteTasks
from accord.store.tasks import MemoryTasks, TaskInput, TaskRecord, Tasks

NOW = 1_000.0


def record(id: str, owner: str = "ann", runner: str = "here", ttl: float | None = 60, **fields: object) -> TaskRecord:
    return TaskRecord(
        id=id,
        owner=owner,
        account=owner,
        revision="2026-07-28",
        tool="work",
        params=b"{}",
        capabilities=b"{}",
        created_at=NOW,
        updated_at=NOW,
        ttl=ttl,
        poll=1,
        runner=runner,
        **fields,  # type: ignore[arg-type]
    )


class Times:
    now = NOW


@pytest.fixture
def times() -> Times:
    return Times()


@pytest.fixture(params=["memory", "sqlite"])
def closed(request: pytest.FixtureRequest, tmp_path: Path, times: Times) -> Tasks:
    if request.param == "memory":
        return MemoryTasks(clock=lambda: times.now)
    return SQLiteTasks(tmp_path / "tasks.db", clock=lambda: times.now)


@asynccontextmanager
async def opened(store: Tasks) -> AsyncIterator[Tasks]:
    await store.open("here")
    try:
        yield store
    finally:
        await store.close("here")


async def test_a_record_is_read_as_it_was_saved(closed: Tasks) -> None:
    async with opened(closed) as store:
        await store.create(record("a"))
        changed = record("a", status="completed", result=b'{"content":[]}', once={"key": b"1"})
        await store.save(changed)
        assert await store.load("a") == changed
        assert await store.load("b") is None


async def test_records_are_counted_and_listed_by_owner(closed: Tasks) -> None:
    async with opened(closed) as store:
        for id in ("c", "a", "b"):
            await store.create(record(id))
        await store.create(record("d", "ben"))
        assert await store.count("ann") == (3, 4)
        assert [each.id for each in await store.page("ann", "", 2)] == ["a", "b"]
        assert [each.id for each in await store.page("ann", "b", 2)] == ["c"]
        assert await store.page("zoe", "", 2) in ([], ())


async def test_a_record_is_dropped_after_its_time(closed: Tasks, times: Times) -> None:
    async with opened(closed) as store:
        await store.create(record("a", ttl=60))
        await store.create(record("b", ttl=None))
        times.now += 61
        assert await store.load("a") is None
        assert await store.load("b") is not None
        assert await store.count("ann") == (1, 1)


async def test_inputs_are_taken_once_by_the_runner_of_the_task(closed: Tasks) -> None:
    async with opened(closed) as store:
        await store.create(record("a"))
        await store.create(record("b", runner="there"))
        sent = [TaskInput("a", {"key": b"{}"}), TaskInput("a"), TaskInput("b")]
        for each in sent:
            await store.send(each)
        assert list(await store.take("here")) == sent[:2]
        assert list(await store.take("here")) == []
        assert list(await store.take("there")) == sent[2:]


async def test_memory_is_bounded() -> None:
    store = MemoryTasks(Limits(tasks=TaskLimits(kept_bytes=2_000)), clock=lambda: NOW)
    await store.create(record("a"))
    with pytest.raises(StoreError, match="kept_bytes"):
        await store.create(record("b"))


async def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"SQLiteTasks|could not be"):
        await SQLiteTasks(tmp_path).open("here")


PROGRAM = """
import asyncio, sys
from accord.store.sqlite_tasks import SQLiteTasks
from tests.store.test_tasks import record

async def main():
    store = SQLiteTasks(sys.argv[1], clock=lambda: 1_000.0)
    await store.open("there")
    await store.create(record("a", runner="there"))
    await store.create(record("b", runner="there", status="completed"))
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_the_tasks_of_a_killed_process_are_adopted_by_one_other(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, str(path), stdout=PIPE)
    assert process.stdout is not None
    store = SQLiteTasks(path, clock=lambda: NOW)
    try:
        assert await process.stdout.readline() == b"ready\n"
        await store.open("here")
        assert list(await store.adopt("here")) == []  # it runs
    finally:
        process.kill()
        await process.wait()
    adopted = list(await store.adopt("here"))
    assert [each.id for each in adopted] == ["a"]
    assert adopted[0].runner == "here"
    assert list(await store.adopt("other")) == []
    await store.close("here")
    assert not glob("*runner*", root_dir=tmp_path)
