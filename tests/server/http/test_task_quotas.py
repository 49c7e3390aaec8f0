"""Quotas of tasks over HTTP: their number also for calls at the same time, and the memory that they hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord import Context, HTTPLimits, Limits, Server, TaskLimits
from accord.stores import MemoryTasks, SQLiteTasks

from tests.server.http.http_clients import Here, Modern, Stateful, site
from tests.server.http.raw import JSON
from tests.waiting import until

DECLARED: JSON = {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
MANY = [{}] * 1_000
"""Arguments of about 140 KB decoded."""


class Name(msgspec.Struct):
    name: str


def desk(**options: Any) -> Server:
    server = Server("desk", "1", **options)

    @server.tool(task=True)
    async def wait(items: list[Any]) -> str:
        await asyncio.sleep(3_600)
        return ""

    @server.tool(task=True)
    async def ask(ctx: Context) -> str:
        for number in range(10):
            await ctx.elicit(f"Who is number {number}?", Name)
        return ""

    return server


async def start(client: Modern, items: Any = (), tool: str = "wait") -> Any:
    return await (await client.call(tool, {"items": [*items]} if tool == "wait" else {})).result()


async def cancel(client: Modern, id: str) -> None:
    await (await client.post(client.request("tasks/cancel", {"taskId": id}), mcp_name=id)).result()


def held(here: Here) -> int:
    """The estimated bytes that running tasks hold."""
    context = here.endpoint.context
    quotas = context.dispatcher._tasks.runner(context.limits)._quotas  # type: ignore[attr-defined,union-attr]
    assert sum(size for size, _ in quotas._held.values()) == quotas._memory.total
    assert len(quotas._held) == quotas._running.total()
    assert not quotas._creating
    return int(quotas._memory.total)


@pytest.mark.parametrize("limit", ["running_per_principal", "tasks_per_principal", "tasks"])
@pytest.mark.parametrize("make", [lambda _: MemoryTasks(), lambda path: SQLiteTasks(path / "tasks.db")])
async def test_calls_at_the_same_time_do_not_exceed_the_limit(
    make: Callable[[Path], Any], limit: str, tmp_path: Path
) -> None:
    server = desk(tasks=make(tmp_path), limits=Limits(tasks=TaskLimits(**{limit: 3})))
    async with site(server) as here:
        client = Modern(here.raw, DECLARED)
        outcomes = await asyncio.gather(*(start(client) for _ in range(30)))
        assert sum("result" in each for each in outcomes) == 3
        assert all(limit in each["error"]["message"] for each in outcomes if "error" in each)


@pytest.mark.parametrize("make", [lambda _: MemoryTasks(), lambda path: SQLiteTasks(path / "tasks.db")])
async def test_the_arguments_that_running_tasks_hold_are_bounded(make: Callable[[Path], Any], tmp_path: Path) -> None:
    server = desk(tasks=make(tmp_path), limits=Limits(http=HTTPLimits(bodies_bytes_per_address=700_000)))
    async with site(server) as here:
        client = Modern(here.raw, DECLARED)
        outcomes = [await start(client, MANY) for _ in range(20)]
        ids = [each["result"]["taskId"] for each in outcomes if "result" in each]
        assert 2 < len(ids) < 10
        refused = outcomes[-1]["error"]["message"]
        assert "too many large tasks are running (HTTPLimits.bodies_bytes)" in refused
        assert 500_000 < held(here) <= 700_000
        for id in ids:
            await cancel(client, id)
        assert held(here) == 0
        assert "result" in await start(client, MANY)


async def test_the_answers_that_running_tasks_hold_are_bounded() -> None:
    server = desk(limits=Limits(http=HTTPLimits(bodies_bytes_per_address=40_000)))
    async with site(server) as here:
        client = Modern(here.raw, DECLARED)
        id = (await start(client, tool="ask"))["result"]["taskId"]

        async def asked() -> Any:
            while True:
                answer = await client.post(client.request("tasks/get", {"taskId": id}), mcp_name=id)
                if questions := (await answer.result())["result"].get("inputRequests"):
                    return questions
                await asyncio.sleep(0)

        async def answer(questions: Any, name: str) -> Any:
            given = {key: {"action": "accept", "content": {"name": name}} for key in questions}
            update = client.request("tasks/update", {"taskId": id, "inputResponses": given})
            return await (await client.post(update, mcp_name=id)).result()

        assert "result" in await answer(await asked(), "x" * 7_000)
        assert "result" in await answer(await asked(), "x" * 7_000)
        before, questions = held(here), await asked()
        assert before > 28_000
        assert "too many large tasks" in (await answer(questions, "x" * 7_000))["error"]["message"]
        assert held(here) == before
        assert await asked() == questions
        assert "result" in await answer(questions, "x" * 1_000)
        assert held(here) > before + 2_000


async def test_an_ended_session_is_charged_until_its_task_ends() -> None:
    server = desk()
    async with site(server) as here:
        client = await Stateful(here.raw, capabilities={"experimental": {"x": {"y": MANY}}}).open()
        called = await client.ask("tools/call", {"name": "wait", "arguments": {"items": []}, "task": {"ttl": 500}})
        assert "result" in await called.result()
        hellos = here.endpoint.context.handshake_budget
        charged = hellos.total
        assert charged > 50_000
        await (await client.delete()).end()
        assert not len(here.endpoint.sessions)
        assert hellos.total == charged
        await until(lambda: hellos.total == 0)
