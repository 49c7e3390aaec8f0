"""Tasks of one server on several event loops: a client on one loop uses a task that runs on another."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from accord import Accepted, Client, Context, Limits, Server, TaskLimits
from accord.stores import MemoryTasks, SQLiteTasks

from tests.server.raw import raw_peer
from tests.server.tasks.test_calls import DECLARED, EXTENSION, Name, poll


def made(store: Any) -> Server:
    server = Server("desk", tasks=store, limits=Limits(tasks=TaskLimits(polls_per_second=1e6)))

    @server.tool(task=True)
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", Name)
        return f"Hello, {answer.data.name}" if isinstance(answer, Accepted) else answer.action

    @server.tool(task=True)
    async def hang(ctx: Context) -> str:
        await asyncio.get_running_loop().create_future()
        return ""

    return server


async def use(server: Server, asking: str, hanging: str) -> None:
    async with raw_peer(server, EXTENSION) as peer:
        about = {"taskId": asking, **DECLARED}
        (key,) = (await peer.ask("tasks/get", about))["result"]["inputRequests"]
        answer = {"action": "accept", "content": {"name": "Zoe"}}
        assert "result" in await peer.ask("tasks/update", {**about, "inputResponses": {key: answer}})
        assert (await poll(peer, about))["result"]["content"][0]["text"] == "Hello, Zoe"
        assert "result" in await peer.ask("tasks/cancel", {"taskId": hanging, **DECLARED})
        assert (await poll(peer, {"taskId": hanging, **DECLARED}))["status"] == "cancelled"


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_task_is_answered_and_cancelled_from_another_loop(kind: str, tmp_path: Path) -> None:
    server = made(MemoryTasks() if kind == "memory" else SQLiteTasks(tmp_path / "tasks.db"))
    options: Any = {"revisions": [EXTENSION], "elicitation": lambda _: None}
    async with Client(server, **options) as client:
        asking, hanging = [await client.start_tool(name) for name in ("ask", "hang")]
        while (await asking.state()).status != "input_required":
            pass
        await asyncio.to_thread(asyncio.run, use(server, asking.id, hanging.id))
        assert (await asking.state()).status == "completed"
        assert (await hanging.state()).status == "cancelled"
