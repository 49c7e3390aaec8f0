"""Answers of a client to what its tasks ask: none is lost, and a task that nobody will answer is cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from accord import Client, StoreError
from accord.errors import InternalError
from accord.stores import MemoryTasks, TaskRecord

from tests.server.tasks.test_calls import BOTH, EXTENSION, Desk
from tests.waiting import until


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
