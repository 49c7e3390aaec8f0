"""Subscribers to tasks: what they receive of a task that changes before their subscription begins, or runs in another
process.
"""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from accord import Context, Limits, Server, StoreError, TaskLimits
from accord.server.tasks import notifier
from accord.server.tasks.notifier import subscription_key
from accord.stores import MemoryTasks, SQLiteTasks, TaskRecord
from accord.transport import memory

from tests.server.raw import RawPeer, raw_peer
from tests.server.tasks.test_calls import CORE, DECLARED, EXTENSION, Desk, Name
from tests.waiting import turns, until


class SlowTasks(MemoryTasks):
    """Tasks in memory; the lookup of an unknown one takes as long as `answer` is not set."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.answer = asyncio.Event(), asyncio.Event()

    async def load(self, id: str) -> TaskRecord | None:
        self.asked.set()
        await self.answer.wait()
        return await super().load(id)


async def ended_state(peer: RawPeer, about: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a task once it has ended."""
    state: dict[str, Any] = {"status": "working"}
    while state["status"] == "working":
        state = (await peer.ask("tasks/get", about))["result"]
    return state


async def test_a_task_that_ends_before_its_subscription_begins_is_not_missed() -> None:
    store = SlowTasks()
    desk = Desk(Limits(tasks=TaskLimits(polls_per_second=1e6)), store)
    async with raw_peer(desk.server, EXTENSION) as peer:
        id = (await peer.ask("tools/call", {"name": "work", **DECLARED}))["result"]["taskId"]
        listening = peer.send("subscriptions/listen", {"notifications": {"taskIds": [id, "unknown"]}, **DECLARED})
        await store.asked.wait()
        desk.let_on.set()
        runner = desk.server.task_service.runner(desk.server.limits)  # type: ignore[union-attr]
        await until(lambda: not runner.tasks)
        store.answer.set()
        assert (await peer.hear())["params"]["notifications"] == {"taskIds": [id]}
        state = await peer.hear(10)
        assert state["method"] == "notifications/tasks"
        assert state["params"]["status"] == "completed"
        assert state["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": listening}
        assert (await peer.ask("server/discover"))["result"]  # there is no second notification


async def test_a_task_that_asks_before_its_subscription_begins_is_not_missed() -> None:
    store = SlowTasks()
    desk = Desk(Limits(tasks=TaskLimits(polls_per_second=1e6)), store)
    asks = asyncio.Event()

    @desk.server.tool(task=True)
    async def ask_later(ctx: Context) -> str:
        await asks.wait()
        return str(await ctx.elicit("Who?", Name))

    async with raw_peer(desk.server, EXTENSION) as peer:
        id = (await peer.ask("tools/call", {"name": "ask_later", **DECLARED}))["result"]["taskId"]
        peer.send("subscriptions/listen", {"notifications": {"taskIds": [id, "unknown"]}, **DECLARED})
        await store.asked.wait()
        asks.set()
        await ended_state(peer, {"taskId": id, **DECLARED})
        store.answer.set()
        assert (await peer.hear())["params"]["notifications"] == {"taskIds": [id]}
        state = (await peer.hear(10))["params"]
        assert state["status"] == "input_required"
        assert state["inputRequests"]


async def test_a_subscriber_of_a_task_that_has_ended_receives_its_state(tmp_path: Path) -> None:
    desk = Desk(Limits(tasks=TaskLimits(polls_per_second=1e6)), SQLiteTasks(tmp_path / "tasks.db"))
    desk.let_on.set()
    async with raw_peer(desk.server, EXTENSION) as peer:
        id = (await peer.ask("tools/call", {"name": "work", **DECLARED}))["result"]["taskId"]
        await ended_state(peer, {"taskId": id, **DECLARED})
        peer.send("subscriptions/listen", {"notifications": {"taskIds": [id]}, **DECLARED})
        assert (await peer.hear())["params"]["notifications"] == {"taskIds": [id]}
        state = (await peer.hear(10))["params"]
        assert state["result"]["content"][0]["text"] == "worked "


class CountedTasks(SQLiteTasks):
    """Tasks in a file, which count how many are read."""

    loads = 0

    async def load(self, id: str) -> TaskRecord | None:
        self.loads += 1
        return await super().load(id)


def results_held() -> list[TaskRecord]:
    """Return the records in memory that have a result; the thread of the database may hold one for a moment."""
    gc.collect()
    return [each for each in gc.get_objects() if isinstance(each, TaskRecord) and each.result]


async def test_a_subscription_reads_the_next_task_only_once_its_client_has_read(tmp_path: Path) -> None:
    store = CountedTasks(tmp_path / "tasks.db")
    desk = Desk(Limits(tasks=TaskLimits(polls_per_second=1e6)), store)

    @desk.server.tool(task=True)
    async def whole() -> str:
        return "x" * (2 << 20)

    async with raw_peer(desk.server, EXTENSION) as peer:
        ids = [(await peer.ask("tools/call", {"name": "whole", **DECLARED}))["result"]["taskId"] for _ in range(6)]
        for id in ids:
            await ended_state(peer, {"taskId": id, **DECLARED})
        store.loads = 0
        peer.send("subscriptions/listen", {"notifications": {"taskIds": ids}, **DECLARED})
        await until(lambda: store.loads > len(ids))
        await turns(100)
        assert store.loads <= len(ids) + 2, "one for each task, and one for each notification"
        assert (await peer.hear())["params"]["notifications"] == {"taskIds": ids}
        for id in ids:
            assert (await peer.hear())["params"]["taskId"] == id
        gc.collect()
        await until(lambda: not results_held())


async def test_subscribers_receive_the_states_of_a_task_in_another_process(tmp_path: Path) -> None:
    here, there = (Desk(tasks=SQLiteTasks(tmp_path / "tasks.db")) for _ in range(2))
    async with raw_peer(here.server, EXTENSION) as runs, raw_peer(there.server, EXTENSION) as subscribes:
        id = (await runs.ask("tools/call", {"name": "ask", **DECLARED}))["result"]["taskId"]
        subscribes.send("subscriptions/listen", {"notifications": {"taskIds": [id]}, **DECLARED})
        assert (await subscribes.hear())["params"]["notifications"] == {"taskIds": [id]}
        state: dict[str, Any] = {"status": "working"}
        while state["status"] == "working":
            state = (await runs.ask("tasks/get", {"taskId": id, **DECLARED}))["result"]
        answers = {key: {"action": "accept", "content": {"name": "Zoe"}} for key in state["inputRequests"]}
        await runs.ask("tasks/update", {"taskId": id, "inputResponses": answers, **DECLARED})
        while state["status"] != "completed":
            state = (await subscribes.hear())["params"]
        assert state["result"]["content"][0]["text"] == "Hello, Zoe"
        runner = there.server.task_service.runner(Limits())  # type: ignore[union-attr]
        await until(lambda: runner._notifier._watching is None)


class CrowdedTasks(CountedTasks):
    """Tasks in a file, which count how many are read at once."""

    reading = most = 0

    async def load(self, id: str) -> TaskRecord | None:
        self.reading += 1
        self.most = max(self.most, self.reading)
        try:
            return await super().load(id)
        finally:
            self.reading -= 1


async def test_only_a_few_subscribed_tasks_of_another_process_are_read_at_once(tmp_path: Path) -> None:
    store = CrowdedTasks(tmp_path / "tasks.db")
    here, there = Desk(tasks=SQLiteTasks(tmp_path / "tasks.db")), Desk(tasks=store)
    async with raw_peer(here.server, EXTENSION) as runs, raw_peer(there.server, EXTENSION) as subscribes:
        ids = [(await runs.ask("tools/call", {"name": "work", **DECLARED}))["result"]["taskId"] for _ in range(20)]
        subscribes.send("subscriptions/listen", {"notifications": {"taskIds": ids}, **DECLARED})
        assert (await subscribes.hear())["params"]["notifications"] == {"taskIds": ids}
        await until(lambda: store.loads > 3 * len(ids))  # what was missed is read one by one
        here.let_on.set()
        ended = set()
        while len(ended) < len(ids):
            state = (await subscribes.hear())["params"]
            if state["status"] == "completed":
                ended.add(state["taskId"])
        assert store.most <= 4


class StuckTasks(SQLiteTasks):
    """Tasks in a file, of which one cannot be read, and the others not until `is_open`."""

    broken = ""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.loads, self.failures, self.is_open = 0, 0, asyncio.Event()

    async def load(self, id: str) -> TaskRecord | None:
        self.loads += 1
        if id == self.broken:
            self.failures += 1
            raise StoreError("the disk does not respond")
        if self.broken:
            await self.is_open.wait()
        return await super().load(id)


async def test_the_next_look_at_tasks_waits_for_the_one_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier, "_LOOK_SECONDS", 0.01)
    store = StuckTasks(tmp_path / "tasks.db")
    here, there = Desk(tasks=SQLiteTasks(tmp_path / "tasks.db")), Desk(tasks=store)
    async with raw_peer(here.server, EXTENSION) as runs, raw_peer(there.server, EXTENSION) as subscribes:
        ids = [(await runs.ask("tools/call", {"name": "work", **DECLARED}))["result"]["taskId"] for _ in range(3)]
        subscribes.send("subscriptions/listen", {"notifications": {"taskIds": ids}, **DECLARED})
        assert (await subscribes.hear())["params"]["notifications"] == {"taskIds": ids}
        await until(lambda: store.loads > 5 * len(ids))  # each lookup of a task elsewhere reads it twice
        store.broken = ids[0]
        await until(lambda: store.failures)
        for _ in range(3):
            await asyncio.sleep(0.02)
        assert store.failures == 1
        store.is_open.set()
        await until(lambda: "cannot be read" in caplog.text)
        store.broken = ""
        here.let_on.set()


async def test_a_subscriber_learns_that_the_process_of_its_task_has_ended(tmp_path: Path) -> None:
    here, there = (Desk(tasks=SQLiteTasks(tmp_path / "tasks.db")) for _ in range(2))
    async with raw_peer(here.server, EXTENSION) as runs, raw_peer(there.server, EXTENSION) as subscribes:
        id = (await runs.ask("tools/call", {"name": "work", **DECLARED}))["result"]["taskId"]
        subscribes.send("subscriptions/listen", {"notifications": {"taskIds": [id]}, **DECLARED})
        assert (await subscribes.hear())["params"]["notifications"] == {"taskIds": [id]}
        store = here.server.task_service._store  # type: ignore[union-attr]
        assert isinstance(store, SQLiteTasks)
        (lock,) = store._locks.values()
        await store._thread.run(lambda _: lock.close())  # as at the end of the process
        state = (await subscribes.hear())["params"]
        while state["status"] == "working":
            state = (await subscribes.hear())["params"]
        assert state["status"] == "failed"
        assert "whether it took effect is unknown" in state["error"]["message"]
        here.let_on.set()


class FailingTasks(SQLiteTasks):
    """Tasks in a file, of which the next few reads fail."""

    failures = 0

    async def load(self, id: str) -> TaskRecord | None:
        if self.failures:
            self.failures -= 1
            raise StoreError("the disk does not respond")
        return await super().load(id)


async def ends_of_unread_tasks(tmp_path: Path, failures: int) -> tuple[int, list[dict[str, Any]], list[str]]:
    """Let twelve tasks end while their subscriber reads nothing; return the bytes in its queue, what it then reads, and
    the ids."""
    store = FailingTasks(tmp_path / "tasks.db")
    desk = Desk(Limits(tasks=TaskLimits(polls_per_second=1e6)), store)

    @desk.server.tool(task=True)
    async def whole(ctx: Context) -> str:
        await desk.let_on.wait()
        for step in range(3):
            ctx.status(f"step {step}")
        return "x" * (1 << 20)

    async with raw_peer(desk.server, EXTENSION) as peer:
        ids = [(await peer.ask("tools/call", {"name": "whole", **DECLARED}))["result"]["taskId"] for _ in range(12)]
        peer.send("subscriptions/listen", {"notifications": {"taskIds": ids}, **DECLARED})
        assert (await peer.hear())["params"]["notifications"] == {"taskIds": ids}
        desk.let_on.set()
        runner = desk.server.task_service.runner(desk.server.limits)  # type: ignore[union-attr]
        await until(lambda: not runner.tasks)
        (index,) = desk.server.change_bus.indexes.values()
        (subscriber,) = index.subscribers(subscription_key(ids[0]))
        queued = sum(len(params) for _, _, params in subscriber.queue._queue)
        store.failures = failures
        states = [(await peer.hear(10))["params"]]
        while len({each["taskId"] for each in states if each["status"] == "completed"}) < len(ids):
            states.append((await peer.hear(10))["params"])
        return queued, states, ids


async def test_the_ends_of_tasks_wait_in_the_store_for_a_client_that_does_not_read(tmp_path: Path) -> None:
    queued, states, ids = await ends_of_unread_tasks(tmp_path, failures=0)
    assert queued < 10_000
    ends = [each for each in states if each["status"] == "completed"]
    assert sorted(each["taskId"] for each in ends) == sorted(ids), "each once"
    assert {len(each["result"]["content"][0]["text"]) for each in ends} == {1 << 20}


async def test_an_end_that_cannot_be_read_at_once_is_read_again(tmp_path: Path) -> None:
    _, states, ids = await ends_of_unread_tasks(tmp_path, failures=2)
    assert {each["taskId"] for each in states if each["status"] == "completed"} == set(ids)


async def unread(server: Server, revision: str) -> tuple[RawPeer, asyncio.Task[None]]:
    """Return a peer of a server, and the task that serves it."""
    ours, theirs = memory.pair(server.limits)
    peer = RawPeer(ours)
    serving = asyncio.get_running_loop().create_task(server.serve(theirs))
    await peer.open(revision)
    return peer, serving


async def test_resource_updates_do_not_push_out_the_end_of_a_task() -> None:
    desk = Desk(Limits(subscriptions=10, pending_bytes=1_000))
    desk.server.resource("test://items/{n}")(lambda n: n)
    peer, serving = await unread(desk.server, EXTENSION)
    id = (await peer.ask("tools/call", {"name": "work", **DECLARED}))["result"]["taskId"]
    wanted = {"taskIds": [id], "resourceSubscriptions": ["test://items/"]}
    peer.send("subscriptions/listen", {"notifications": wanted, **DECLARED})
    assert (await peer.hear())["params"]["notifications"] == wanted
    runner = desk.server.task_service.runner(desk.server.limits)  # type: ignore[union-attr]
    for first in (0, 100):
        for number in range(first, first + 100):
            desk.server.resource_updated(f"test://items/{number}")
        await turns(5)
        desk.let_on.set()
        await until(lambda: not runner.tasks)
    while (message := await peer.hear(10))["method"] != "notifications/tasks":
        pass
    assert message["params"]["status"] == "completed"
    await peer.transport.close()
    await serving


async def test_a_session_that_does_not_read_is_owed_the_last_state_of_a_task() -> None:
    """2025-11-25."""
    server, changes = Server("desk", limits=Limits(pending_bytes=1_000)), asyncio.Queue[str]()

    @server.tool(task=True)
    async def report(ctx: Context) -> str:
        while (change := await changes.get()) != "end":
            ctx.status(change)
        return "ended"

    peer, serving = await unread(server, CORE)
    id = (await peer.ask("tools/call", {"name": "report", "task": {}}))["result"]["task"]["taskId"]
    task = server.task_service.runner(server.limits).tasks[id]  # type: ignore[union-attr]
    for number in range(100):
        changes.put_nowait(f"{number} {'x' * 900}")
        await until(lambda number=number: (task.record.message or "").startswith(f"{number} "))  # type: ignore[misc]
        task._table._notifier._after_interval(task)  # type: ignore[attr-defined]  # as 50 ms later
    changes.put_nowait("end")
    await until(task.ended.done)
    states = [(await peer.hear(10))["params"]]
    while states[-1]["status"] == "working":
        states.append((await peer.hear(10))["params"])
    assert states[-1]["status"] == "completed"
    assert len(states) < 10
    await peer.transport.close()
    await serving
