"""Subscribers to tasks that run in another process, or on another event loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accord import Limits
from accord.stores import SQLiteTasks

from tests.server.raw import raw_peer
from tests.server.tasks.test_calls import DECLARED, EXTENSION, Desk
from tests.waiting import until


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
