"""Tasks (2025-11-25): running a tool as one, and reading what a server said of its tasks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from accord.check.blocks import inside, items
from accord.check.generated.document import Unserved
from accord.check.generated.smallest import smallest
from accord.check.reading import Heard, answers, heard, messages
from accord.check.record import Record
from accord.check.rule import LINES, Broken, NotObserved
from accord.check.talk import Talk
from accord.check.waiting import Answer
from accord.messages.base import JSONObject
from accord.messages.meta import RELATED_TASK
from accord.wire.transcript import SENT

CAPABILITY = "tasks.requests.tools.call"
FINISHED = ("completed", "failed", "cancelled")
TASK_METHODS = ("tasks/get", "tasks/result", "tasks/cancel")
_TTL = 60_000
_SHORTEST, _LONGEST = 0.02, 0.5
"""Seconds between two looks at a task, whatever it wishes."""
_PATIENCE = 4
"""A task may take so many times as long as an answer."""


class State(NamedTuple):
    """What a server said of a task. `asked` is when we asked, by the clock of the record."""

    heard: Heard
    task: JSONObject
    asked: float

    @property
    def id(self) -> Any:
        return self.task.get("taskId")

    @property
    def status(self) -> Any:
        return self.task.get("status")

    @property
    def is_final(self) -> bool:
        """Whether it is over."""
        return self.status in FINISHED


def support(tool: JSONObject) -> str:
    """Whether a tool can be run as a task: `required`, `optional`, or `forbidden`."""
    return str(inside(tool, "execution").get("taskSupport", "forbidden"))


async def taking(talk: Talk, *kinds: str) -> list[JSONObject]:
    """The tools that may be called, and have such support. Raises `NotObserved` for none."""
    found = [tool for tool in await talk.callable() if support(tool) in kinds]
    if not found:
        raise NotObserved(f"no tool that may be called has the taskSupport {' or '.join(kinds)}")
    return found


def call_of(tool: JSONObject) -> JSONObject:
    """The params of a call with the least arguments. Raises `NotObserved` where its schema takes none we can make."""
    try:
        return {"name": tool.get("name"), "arguments": smallest(tool.get("inputSchema"))}
    except Unserved as exc:
        raise NotObserved(f"no arguments are known for {tool.get('name')!r}") from exc


async def call_as_task(talk: Talk, tool: JSONObject) -> Answer:
    """Call a tool as a task."""
    return await talk.request("tools/call", {**call_of(tool), "task": {"ttl": _TTL}})


async def created(talk: Talk) -> tuple[JSONObject, str]:
    """A tool that runs as a task now, and the id of that. Raises `NotObserved` when none does."""
    for tool in await taking(talk, "optional", "required"):
        id = task_id(await call_as_task(talk, tool))
        if id is not None:
            return tool, id
    raise NotObserved("no call became a task")


def task_id(answer: Answer) -> str | None:
    """The id of the task that a call has become."""
    id = inside(answer.result, "task").get("taskId")
    return id if isinstance(id, str) else None


async def run_all(talk: Talk) -> None:
    """Run each tool that can be a task as one, to its end, and look at all that can be seen of it on the way."""
    for tool in await talk.callable() if talk.has(CAPABILITY) else ():
        if support(tool) != "forbidden":
            with contextlib.suppress(NotObserved):  # it takes too long, or arguments that nobody knows
                await _run(talk, tool)


async def _run(talk: Talk, tool: JSONObject) -> None:
    id = task_id(await call_as_task(talk, tool))
    if id is None:
        return
    await talk.request("tasks/get", {"taskId": id})
    result = talk.begin("tasks/result", {"taskId": id})
    try:
        await result.answer(talk.settings.timeout * _PATIENCE)
    finally:
        if not result.arrived:
            talk.notify("notifications/cancelled", {"requestId": result.id})
    if await ended(talk, id):
        await _look_again(talk, id)


async def _look_again(talk: Talk, id: str) -> None:
    """Ask for all that there is of a task which is over."""
    await talk.request("tasks/result", {"taskId": id})
    if talk.has("tasks.list"):
        await talk.request("tasks/list")
    if talk.has("tasks.cancel"):
        await talk.request("tasks/cancel", {"taskId": id})
    await talk.request("tasks/get", {"taskId": id})


async def ended(talk: Talk, id: str) -> JSONObject:
    """What a task is in the end; empty when it is deleted before. Raises `NotObserved` when it takes too long."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + talk.settings.timeout * _PATIENCE
    while clock() < deadline:
        state = inside((await talk.request("tasks/get", {"taskId": id})).result)
        if not state or state.get("status") in FINISHED:
            return state
        pause = state.get("pollInterval")
        wished = pause / 1000 if isinstance(pause, int | float) else 0.0
        await asyncio.sleep(min(max(wished, _SHORTEST), _LONGEST))
    raise NotObserved(f"a task is not done in {talk.settings.timeout * _PATIENCE:g} s")


async def give_up(talk: Talk, *ids: str) -> None:
    """Cancel tasks, where that is possible. What goes wrong is for the rules about that."""
    with contextlib.suppress(Broken):
        for id in ids if talk.has("tasks.cancel") else ():
            await talk.request("tasks/cancel", {"taskId": id})


def states(records: Iterable[Record]) -> Iterator[State]:
    """All that was said of tasks: in answers, and in notifications where they cannot overtake them."""
    for record in records:
        for answer in answers([record], "tools/call", "tasks/get", "tasks/cancel", "tasks/list"):
            for task in _tasks(answer.request["method"], inside(answer.result)):
                yield State(answer.heard, task, answer.asked.at)
        for told in heard([record]) if record.transport in LINES else ():
            if told.message.get("method") == "notifications/tasks/status":
                yield State(told, inside(told.message, "params"), told.said.at)


def _tasks(method: str, result: JSONObject) -> list[JSONObject]:
    if method == "tools/call":
        return [result["task"]] if isinstance(result.get("task"), dict) else []
    if method == "tasks/list":
        return items(result, "tasks")
    return [result] if "taskId" in result else []


def related(message: JSONObject) -> Any:
    """The task that the `_meta` of a request, a notification or a result names; None if it names none."""
    return inside(message, "params" if "method" in message else "result", "_meta", RELATED_TASK).get("taskId")


def alone_at_work(record: Record) -> Iterator[tuple[Heard, set[str]]]:
    """What the server asked while tasks were at work, and no other call was; the ids of the tasks."""
    plain: set[str] = set()
    open_: set[str] = set()
    asked: dict[str, JSONObject] = {}
    for said, message in messages(record):
        key = repr(message.get("id"))
        params = inside(message, "params")
        if said.direction == SENT and message.get("method") in ("tools/call", "tasks/result"):
            asked[key] = message
            plain |= {key} if "task" not in params and message["method"] == "tools/call" else set()
        elif said.direction != SENT and "method" not in message and key in asked:
            plain.discard(key)
            request = asked.pop(key)
            made = inside(message, "result", "task").get("taskId")
            open_ |= {made} if isinstance(made, str) else set()
            open_.discard(str(inside(request, "params").get("taskId")))
        elif said.direction != SENT and "method" in message and "id" in message and open_ and not plain:
            yield Heard(record, said, message), set(open_)
