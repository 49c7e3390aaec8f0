"""Tasks of a process that has ended, whose records this version cannot use, or whose end cannot be stored at once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord import Client, Server, StoreError, ToolAnnotations
from accord.errors import InternalError
from accord.stores import SQLiteTasks, TaskRecord

from tests.waiting import until


def desk(store: SQLiteTasks) -> tuple[Server, list[str]]:
    server, ran = Server("desk", tasks=store), []

    @server.tool(task=True, annotations=ToolAnnotations(idempotent_hint=True))
    async def work(label: str) -> str:
        ran.append(label)
        return f"worked {label}"

    @server.tool(task=True)
    async def unsafe(label: str) -> str:
        raise AssertionError(label)

    return server, ran


def record(id: str, tool: str = "work", **fields: Any) -> TaskRecord:
    standard = TaskRecord(
        id=id,
        owner="",
        account="",
        revision="2026-07-28",
        tool=tool,
        params=msgspec.json.encode({"name": tool, "arguments": {"label": id}}),
        capabilities=b"{}",
        created_at=time.time(),
        updated_at=time.time(),
        ttl=60,
        poll=0.01,
        runner="gone",
    )
    return msgspec.structs.replace(standard, **fields)


async def leave(path: Path, *records: TaskRecord) -> None:
    """Leave tasks as a process does that is killed."""
    store = SQLiteTasks(path)
    await store.open("gone")
    for each in records:
        await store.create(each)
    await store.close("gone")


@pytest.mark.parametrize(
    "damage",
    [
        {"revision": "2036-07-28"},
        {"capabilities": b"no JSON"},
        {"capabilities": b"[]"},
        {"params": b"{"},
        {"params": b"[]"},
        {"params": b""},
    ],
    ids=str,
)
async def test_a_record_that_cannot_be_used_fails_alone(damage: dict[str, Any], tmp_path: Path) -> None:
    await leave(tmp_path / "tasks.db", record("bad", **damage), record("good"))
    server, ran = desk(SQLiteTasks(tmp_path / "tasks.db"))
    async with Client(server, revisions=["2026-07-28"]) as client:
        assert (await client.task("good").result()).text == "worked good"
        with pytest.raises(InternalError, match="the record of this task cannot be read"):
            await client.task("bad").result()
    assert ran == ["good"]


class FullDisk(SQLiteTasks):
    """A store that cannot save as often as it says."""

    failures = 1

    async def save(self, record: TaskRecord) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreError("the disk is full")
        await super().save(record)


async def test_the_end_of_an_adopted_task_is_stored_later_if_the_store_fails(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    await leave(path, record("a", "unsafe"), record("b", "unsafe"), record("c"))
    store = FullDisk(path)
    server, ran = desk(store)
    async with Client(server, revisions=["2026-07-28"]) as client:
        for id in ("a", "b"):
            with pytest.raises(InternalError, match="whether it took effect is unknown"):
                await client.task(id).result()
        assert (await client.task("c").result()).text == "worked c"
        runner = server.task_service.runner(server.limits)  # type: ignore[union-attr]
        await until(lambda: not runner._unstored)
        found = await store.load("a")
        assert found is not None
        assert found.status == "failed"
    assert ran == ["c"]
