"""Answers of a client to what its tasks ask: none is lost, and a task that nobody will answer is cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from accord import Client, StoreError
from accord.errors import InternalError, RequestTimeout
from accord.stores import MemoryTasks, TaskRecord

from tests.client.raw import raw_server
from tests.clock import Clock, without_waiting
from tests.server.tasks.test_calls import BOTH, EXTENSION, Desk
from tests.waiting import until

SUPPORT = {"taskSupport": "required"}


class FailingOnce(MemoryTasks):
    """A store that fails to store the first answer."""

    has_failed = False

    async def save(self, record: TaskRecord) -> None:
        if any(each.answer for each in record.asked) and not self.has_failed:
            self.has_failed = True
            raise StoreError("the disk is full")
        await super().save(record)


async def test_an_answer_that_the_server_could_not_store_is_sent_again() -> None:
    asked: list[Any] = []

    def answer(params: Any) -> dict[str, str]:
        asked.append(params)
        return {"name": "Zoe"}

    async with Client(Desk(tasks=FailingOnce()).server, revisions=[EXTENSION], elicitation=answer) as client:
        task = await client.start_tool("ask")
        with pytest.raises(InternalError, match="send them again"):
            await task.result()
        assert (await task.result(total_timeout=50)).text == "Hello, Zoe"
        assert len(asked) == 1


@BOTH
async def test_a_call_whose_elicitation_handler_fails_leaves_no_task(revision: str) -> None:
    desk = Desk()

    def answer(params: Any) -> dict[str, str]:
        raise RuntimeError("the window was closed")

    async with Client(desk.server, revisions=[revision], elicitation=answer) as client:
        if revision == EXTENSION:
            with pytest.raises(Exception, match="the window was closed"):
                await client.call_tool("ask")
        else:  # the error is the client's response, which the handler of the tool gets
            assert (await client.call_tool("ask")).is_error
        runner = desk.server.task_service.runner(desk.server.limits)  # type: ignore[union-attr]
        await until(lambda: not runner.tasks)


async def test_a_task_that_works_on_after_its_question_outlasts_the_timeout_of_a_request() -> None:
    clock, offers = Clock(), {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    state = {"taskId": "t", "createdAt": "", "lastUpdatedAt": "", "ttl": None}
    async with raw_server("2025-11-25", offers=offers) as (server, client):
        call = asyncio.ensure_future(client.call_tool("ask", timeout=10))
        server.answer(await server.hear(), tools=[{"name": "ask", "inputSchema": {}, "execution": SUPPORT}])
        server.answer(await server.hear(), task={**state, "status": "working"})
        server.answer(await server.hear(), **state, status="input_required")
        waiting = await server.hear()
        assert waiting["method"] == "tasks/result"
        await clock.jump(11)
        assert (await server.hear())["params"]["requestId"] == waiting["id"]
        await clock.jump(2)
        server.answer(await server.hear(), **state, status="completed")
        server.done(await server.hear())
        assert (await call).text == "done"


@BOTH
@without_waiting
async def test_the_total_timeout_of_a_client_bounds_the_wait_for_a_task(revision: str) -> None:
    desk = Desk()
    async with Client(desk.server, revisions=[revision], total_timeout=30) as client:
        task = await client.start_tool("work")
        begun = asyncio.get_running_loop().time()
        with pytest.raises(RequestTimeout, match="raise total_timeout="):
            await task.result()
        with pytest.raises(RequestTimeout, match="raise total_timeout="):
            await client.call_tool("work")
        assert asyncio.get_running_loop().time() < begun + 70
        desk.let_on.set()
        assert (await task.result()).text == "worked "


@BOTH
@without_waiting
async def test_the_total_timeout_of_a_client_does_not_count_the_time_of_a_user(revision: str) -> None:
    async def answer(params: Any) -> dict[str, str]:
        await asyncio.sleep(100)
        return {"name": "Zoe"}

    async with Client(Desk().server, revisions=[revision], total_timeout=30, elicitation=answer) as client:
        task = await client.start_tool("ask")
        assert (await task.result()).text == "Hello, Zoe"
