"""Rows of `TaskLimits`, in both protocols of tasks."""

from __future__ import annotations

import asyncio
from typing import Any

from accord import Limits, TaskLimits

from tests.bounds.client_rows import ended
from tests.bounds.server_rows import MOST
from tests.bounds.table import Outcome, drops, refuses
from tests.clock import Clock
from tests.server.tasks.test_calls import CORE, EXTENSION, Desk, client
from tests.waiting import turns

PROTOCOLS = (CORE, EXTENSION)


async def started(over: str, count: int, **limits: Any) -> Outcome:
    """Start so many tasks that go on; return how the last one is answered."""
    desk = Desk(Limits(tasks=TaskLimits(**limits)))
    async with client(desk, over) as each:
        for _ in range(count - 1):
            await each.start_tool("work")
        found = await ended(each.start_tool("work"))
        desk.let_on.set()
        return found


@refuses("TaskLimits.tasks", *PROTOCOLS)
async def tasks(over: str, extra: int) -> Outcome:
    return await started(over, MOST + extra, tasks=MOST)


@refuses("TaskLimits.tasks_per_principal", *PROTOCOLS)
async def tasks_of_a_principal(over: str, extra: int) -> Outcome:
    return await started(over, MOST + extra, tasks_per_principal=MOST)


@refuses("TaskLimits.running_per_principal", *PROTOCOLS)
async def running_tasks(over: str, extra: int) -> Outcome:
    return await started(over, MOST + extra, running_per_principal=MOST)


@refuses("TaskLimits.polls_per_second", *PROTOCOLS)
async def polls(over: str, extra: int) -> Outcome:
    desk = Desk(Limits(tasks=TaskLimits(polls_per_second=1e-6)))
    async with client(desk, over) as each:
        task = await each.start_tool("work")
        if extra:
            await task.state()
        found = await ended(task.state())
        desk.let_on.set()
        return found


@refuses("TaskLimits.result_bytes", *PROTOCOLS)
async def bytes_of_a_result(over: str, extra: int) -> Outcome:
    desk = Desk(Limits(tasks=TaskLimits(result_bytes=1_000 if extra else 3_000)))
    async with client(desk, over) as each:
        return await ended((await each.start_tool("large")).result())


@refuses("TaskLimits.kept_bytes", *PROTOCOLS)
async def bytes_of_tasks(over: str, extra: int) -> Outcome:
    desk = Desk(Limits(tasks=TaskLimits(kept_bytes=1_000 if extra else 1 << 20)))
    async with client(desk, over) as each:
        found = await ended(each.start_tool("work", {"label": "x" * 2_000}))
        desk.let_on.set()
        return found


@drops("TaskLimits.ttl_seconds", *PROTOCOLS)
async def time_of_a_task(over: str, extra: int) -> Outcome:
    clock = Clock()
    desk = Desk(Limits(tasks=TaskLimits(ttl_seconds=60)))
    async with client(desk, over) as each:
        clock.move(0)
        await each.start_tool("work")
        await turns(5)
        await clock.jump(62 if extra else 50)
        if extra:
            await asyncio.wait_for(desk.cancelled.wait(), 100)
        found = "cancelled" if desk.cancelled.is_set() else ""
        desk.let_on.set()
        return Outcome(found)
