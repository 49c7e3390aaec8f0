"""Wrong clients of the tasks extension (2026-07-28)."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.check.clients.ext_task_client import REVISION, ExtTaskClient
from tests.check.clients.wrong import Change, mutant


def wrong(rule: str, client: type[ExtTaskClient]) -> None:
    """A row of the table: the name of the class says what is wrong."""

    def make(change: Change) -> None:
        change.main = lambda url: client().main(url)

    make.__name__ = client.__name__
    mutant(rule, revision=REVISION, over="http")(make)


class TakesNoNoticeOfTasks(ExtTaskClient):
    async def look_after(self, task: dict[str, Any]) -> None:
        return


class LooksForTasksEverywhere(ExtTaskClient):
    async def read(self, result: dict[str, Any]) -> None:
        if "taskId" in result:
            await self.ask("tasks/get", taskId=result["taskId"])


class TakesMillisecondsForMicroseconds(ExtTaskClient):
    async def pause(self, milliseconds: float) -> None:
        await asyncio.sleep(milliseconds / 1_000_000)


class LooksOnce(ExtTaskClient):
    async def look_after(self, task: dict[str, Any]) -> None:
        if "taskId" in task:
            await self.ask("tasks/get", taskId=task["taskId"])


class AnswersNothing(ExtTaskClient):
    async def look_after(self, task: dict[str, Any]) -> None:
        for _ in range(3 if "taskId" in task else 0):
            await self.ask("tasks/get", taskId=task["taskId"])
            await self.pause(task["pollIntervalMs"])


class AnswersUnderItsOwnKeys(ExtTaskClient):
    async def answer(self, id: str, keys: set[str]) -> None:
        self.answered |= keys
        await self.ask("tasks/update", taskId=id, inputResponses={"1": {"action": "decline"}})


class AnswersAtEachLook(ExtTaskClient):
    def unanswered(self, task: dict[str, Any]) -> set[str]:
        return set(task.get("inputRequests", {}))


class CancelsTheCall(ExtTaskClient):
    async def look_after(self, task: dict[str, Any]) -> None:
        await super().look_after(task)
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
        await self.post(cancelled, {"Mcp-Method": "notifications/cancelled"})


class NamesNoTask(ExtTaskClient):
    async def post(self, message: Any, headers: dict[str, str]) -> dict[str, Any]:
        if message["method"].startswith("tasks/"):
            del headers["Mcp-Name"]
        return await super().post(message, headers)


wrong("client-ext-tasks/handled", TakesNoNoticeOfTasks)
wrong("client-ext-tasks/calls-only", LooksForTasksEverywhere)
wrong("client-ext-tasks/interval", TakesMillisecondsForMicroseconds)
wrong("client-ext-tasks/to-the-end", LooksOnce)
wrong("client-ext-tasks/answers", AnswersNothing)
wrong("client-ext-tasks/keys", AnswersUnderItsOwnKeys)
wrong("client-ext-tasks/once", AnswersAtEachLook)
wrong("client-ext-tasks/cancelled", CancelsTheCall)
wrong("client-ext-tasks/name-header", NamesNoTask)
