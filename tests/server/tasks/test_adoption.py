"""Tasks of a process that has ended, whose records this version cannot use, or whose end cannot be stored at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord import Accepted, APIKeys, Client, Context, Principal, Server, StoreError, Task, ToolAnnotations
from accord.errors import InternalError
from accord.server.tasks import methods
from accord.store.tasks import TaskInput
from accord.stores import SQLiteTasks, TaskRecord

from tests.server.raw import raw_peer
from tests.server.tasks.test_calls import DECLARED
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


def questioner(store: SQLiteTasks, asks: asyncio.Event) -> Server:
    server = Server("questioner", tasks=store)

    @server.tool(task=True, annotations=ToolAnnotations(idempotent_hint=True))
    async def work(ctx: Context, label: str) -> str:
        await asks.wait()
        answer = await ctx.elicit(f"Who is {label}?", Name)
        return answer.data.name if isinstance(answer, Accepted) else answer.action

    return server


class Name(msgspec.Struct):
    name: str


async def asked_record(path: Path) -> TaskRecord:
    """Return the record of a task that has asked its question."""
    asks = asyncio.Event()
    asks.set()
    store = SQLiteTasks(path)
    async with raw_peer(questioner(store, asks), "2026-07-28") as peer:
        call = {"name": "work", "arguments": {"label": "it"}, **DECLARED}
        id = (await peer.ask("tools/call", call))["result"]["taskId"]
        found = None
        while found is None or not found.asked:
            found = await store.load(id)
        return found


@pytest.mark.parametrize("way", ["waits in the store", "comes before the question", "does not fit at first"])
async def test_an_answer_that_is_there_before_the_next_run_asks_is_used(way: str, tmp_path: Path) -> None:
    left = msgspec.structs.replace(await asked_record(tmp_path / "before.db"), runner="gone")
    path, key = tmp_path / "tasks.db", left.asked[0].key
    await leave(path, left)
    right, wrong = ({"action": "accept", "content": {"name": name}} for name in ("Zoe", 7))
    store, asks = SQLiteTasks(path), asyncio.Event()
    if way == "waits in the store":
        await store.open("other")
        await store.send(TaskInput(left.id, {key: msgspec.json.encode(right)}))
    server = questioner(store, asks)
    async with raw_peer(server, "2026-07-28") as peer:
        runner = server.task_service.runner(server.limits)  # type: ignore[union-attr]
        await until(lambda: left.id in runner.tasks)
        task = runner.tasks[left.id]
        about = {"taskId": left.id, **DECLARED}
        if way == "waits in the store":
            await until(lambda: task.record.asked[0].answer)
        else:
            first = wrong if way == "does not fit at first" else right
            assert "result" in await peer.ask("tasks/update", {"inputResponses": {key: first}, **about})
        asks.set()
        if way == "does not fit at first":
            await until(lambda: task.questions)
            assert "result" in await peer.ask("tasks/update", {"inputResponses": {key: right}, **about})
        await until(lambda: not runner.tasks)
        found = await store.load(left.id)
        assert found is not None
        assert b"Zoe" in (found.result or b"")
    if way == "waits in the store":
        await store.close("other")


class SlowAdoption(SQLiteTasks):
    """A store that has adopted tasks before its caller learns of them."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.is_open, self.waiting = asyncio.Event(), False

    async def adopt(self, runner: str) -> Sequence[TaskRecord]:
        adopted = await super().adopt(runner)
        self.waiting = bool(adopted)
        await self.is_open.wait()
        return adopted


async def test_a_request_that_is_cancelled_while_it_adopts_tasks_does_not_lose_them(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    store = SlowAdoption(path)
    store.is_open.set()
    server, ran = desk(store)
    async with raw_peer(server, "2026-07-28") as peer:
        assert "result" in await peer.ask("server/discover")
        runner = server.task_service.runner(server.limits)  # type: ignore[union-attr]
        await runner.open()
        await until(lambda: not runner._background)
        store.is_open.clear()
        await leave(path, record("a"))
        runner._adopted = float("-inf")
        adopting = asyncio.create_task(runner.adopt())
        await until(lambda: store.waiting)
        adopting.cancel()
        await asyncio.wait([adopting])
        store.is_open.set()
        await until(lambda: ran == ["a"])


class FullOnce(SQLiteTasks):
    """A store whose disk is full when it first saves an answer."""

    failed = 0

    async def save(self, record: TaskRecord) -> None:
        if not self.failed and any(each.answer is not None for each in record.asked):
            self.failed += 1
            raise StoreError("disk full")
        await super().save(record)


async def test_an_early_answer_from_another_process_is_not_lost_if_its_save_fails(tmp_path: Path) -> None:
    left = msgspec.structs.replace(await asked_record(tmp_path / "before.db"), runner="gone")
    path, key = tmp_path / "tasks.db", left.asked[0].key
    await leave(path, left)
    store, asks = FullOnce(path), asyncio.Event()
    await store.open("other")
    await store.send(TaskInput(left.id, {key: b'{"action":"accept","content":{"name":"Zoe"}}'}))
    server = questioner(store, asks)
    async with raw_peer(server, "2026-07-28"):
        runner = server.task_service.runner(server.limits)  # type: ignore[union-attr]
        await until(lambda: store.failed)
        asks.set()
        await until(lambda: not runner.tasks)
        found = await store.load(left.id)
        assert found is not None
        assert b"Zoe" in (found.result or b"")
    await store.close("other")


async def test_tasks_are_not_adopted_by_a_server_that_is_closing(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    store = SlowAdoption(path)
    store.is_open.set()
    server, ran = desk(store)
    stopping, stopped = asyncio.Event(), asyncio.Event()

    @server.tool(task=True)
    async def slow_to_stop() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopping.set()
            await stopped.wait()

    async with raw_peer(server, "2026-07-28") as peer:
        assert "result" in await peer.ask("tools/call", {"name": "slow_to_stop", **DECLARED})
        runner = server.task_service.runner(server.limits)  # type: ignore[union-attr]
        await until(lambda: not runner._background)
        store.is_open.clear()
        await leave(path, record("a"))
        runner._adopted = float("-inf")
        adopting = asyncio.create_task(runner.adopt())
        await until(lambda: store.waiting)

        async def finish() -> None:
            await stopping.wait()
            store.is_open.set()
            await asyncio.wait([adopting])
            stopped.set()

        finishing = asyncio.create_task(finish())
    await finishing
    assert not ran
    next_server, ran = desk(SQLiteTasks(path))
    async with Client(next_server, revisions=["2026-07-28"]) as client:
        assert (await client.task("a").result()).text == "worked a"
    assert ran == ["a"]


async def test_a_list_has_the_states_of_tasks_that_have_ended(tmp_path: Path) -> None:
    """2025-11-25: of tasks whose process has ended, and of those whose end is not stored yet."""
    store, ann = FullDisk(tmp_path / "tasks.db"), Principal("ann")
    store.failures = 0
    server = Server("desk", tasks=store, auth=APIKeys({"ann-key": ann}))

    @server.tool(task=True)
    async def quick() -> None:
        store.failures = 1_000

    async with raw_peer(server, "2025-11-25", principal=ann) as peer:
        fields: dict[str, Any] = {"owner": "ann", "account": "ann", "revision": "2025-11-25"}
        await peer.ask("tasks/list")
        runner = server.task_service.runner(server.limits)  # type: ignore[union-attr]
        await leave(tmp_path / "tasks.db", record("gone", "unsafe", **fields))
        runner._adopted = float("-inf")  # as a second later
        (listed,) = (await peer.ask("tasks/list"))["result"]["tasks"]
        assert (listed["taskId"], listed["status"]) == ("gone", "failed")
        peer.send("tools/call", {"name": "quick", "task": {}})
        await until(lambda: runner._unstored)
        listing = peer.send("tasks/list")
        while (answer := await peer.hear()).get("id") != listing:
            pass
        assert {each["status"] for each in answer["result"]["tasks"]} == {"failed", "completed"}
        store.failures = 0


async def test_a_request_for_a_result_asks_also_after_the_adoption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2025-11-25: it began to wait while another process ran the task."""
    monkeypatch.setattr(methods, "_POLL_SECONDS", 0.01)
    loads = 0

    class Counting(SQLiteTasks):
        async def load(self, id: str) -> TaskRecord | None:
            nonlocal loads
            loads += 1
            return await super().load(id)

    other = SQLiteTasks(tmp_path / "tasks.db")
    await other.open("gone")
    fields: dict[str, Any] = {"revision": "2025-11-25", "capabilities": b'{"elicitation": {}}'}
    await other.create(record("a", "ask", status="input_required", **fields))
    server = Server("desk", tasks=Counting(tmp_path / "tasks.db"))

    @server.tool(task=Task(restart=True))
    async def ask(label: str, ctx: Context) -> str:
        return f"{label}: {isinstance(await ctx.elicit('Really?', bool), Accepted)}"

    async with Client(server, revisions=["2025-11-25"], elicitation=lambda _: True) as client:
        waiting = asyncio.create_task(client.task("a").result())
        await until(lambda: loads > 10)
        await other.close("gone")
        assert (await waiting).text == "a: True"


async def test_a_task_that_is_adopted_while_it_is_loaded_is_the_one_that_runs(tmp_path: Path) -> None:
    """2025-11-25: the answer to a cancellation has the state after it, and not that in the store before it."""
    is_adopted, is_loaded, includes, shows = (asyncio.Event() for _ in range(4))

    class Stepwise(SQLiteTasks):
        async def adopt(self, runner: str) -> Sequence[TaskRecord]:
            adopted = await super().adopt(runner)
            is_adopted.set()
            await includes.wait()
            return adopted

        async def load(self, id: str) -> TaskRecord | None:
            found = await super().load(id)
            is_loaded.set()
            await shows.wait()
            return found

    await leave(tmp_path / "tasks.db", record("a", "wait", revision="2025-11-25"))
    server = Server("desk", tasks=Stepwise(tmp_path / "tasks.db"))

    @server.tool(task=Task(restart=True))
    async def wait(label: str) -> None:
        await asyncio.get_running_loop().create_future()

    async with raw_peer(server) as peer:
        await is_adopted.wait()
        cancelling = peer.send("tasks/cancel", {"taskId": "a"})
        await is_loaded.wait()
        includes.set()
        runner = server.task_service.runner(server.limits)  # type: ignore[union-attr]
        await until(lambda: runner.tasks)
        shows.set()
        while (answer := await peer.hear()).get("id") != cancelling:
            pass
        assert answer["result"]["status"] == "cancelled"
