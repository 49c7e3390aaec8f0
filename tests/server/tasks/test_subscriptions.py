"""Subscribers to tasks: what they receive of a task that changes before their subscription begins, or runs in another
process.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from accord import Context, Limits, TaskLimits
from accord.stores import MemoryTasks, SQLiteTasks, TaskRecord

from tests.server.raw import RawPeer, raw_peer
from tests.server.tasks.test_calls import DECLARED, EXTENSION, Desk, Name
from tests.waiting import until


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
