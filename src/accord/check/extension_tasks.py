"""Tasks of the extension (2026-07-28): calling tools as a client that can wait, and reading what was said of its tasks.

Whether a call becomes a task is for the server to decide. With each request a client says anew whether it could wait,
so that one conversation holds requests of both kinds.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from accord.check.asked import INPUT_REQUIRED, good_answers, in_rounds
from accord.check.blocks import inside
from accord.check.reading import answers, heard
from accord.check.record import Record
from accord.check.rule import LINES, Broken, NotObserved
from accord.check.talk import Talk
from accord.check.tasked import FINISHED, State, call_of
from accord.check.waiting import SILENT, Answer, Pending
from accord.errors import INVALID_PARAMS
from accord.messages.base import JSONObject
from accord.messages.meta import CLIENT_CAPABILITIES
from accord.wire.headers import encode_value

EXTENSION = "io.modelcontextprotocol/tasks"
CAPABILITY = f"extensions:{EXTENSION}"
PAGE = "https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/draft/tasks.md"
PROPOSAL = "https://modelcontextprotocol.io/seps/2663-tasks-extension"
SINCE = "2026-07-28"
TASK_METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
NEWS = "notifications/tasks"
_SHORTEST, _LONGEST = 0.02, 1.0
"""Seconds between two looks at a task, whatever it wishes: it may refuse who comes too often, and is asked again."""
_PATIENCE = 4
"""A task may take so many times as long as an answer."""


def begin(
    talk: Talk, method: str, params: JSONObject, *, ours: JSONObject | None = None, misbehaved: bool = False
) -> Pending:
    """Send a request as a client that can wait for tasks; or as one that has declared `ours`."""
    message = request(talk, method, params, ours)
    id = params.get("taskId")
    # "the client MUST set the `Mcp-Name` header to the value of `params.taskId`"
    headers = {"Mcp-Name": encode_value(id)} if isinstance(id, str) and id else None
    return talk.send(message, headers=headers, misbehaved=misbehaved)


def request(talk: Talk, method: str, params: JSONObject, ours: JSONObject | None = None) -> JSONObject:
    """The message alone."""
    able = {**talk.declared, "extensions": {EXTENSION: {}}}
    return talk.message(method, params, meta={CLIENT_CAPABILITIES: able if ours is None else ours})


async def ask(
    talk: Talk, method: str, params: JSONObject, *, ours: JSONObject | None = None, misbehaved: bool = False
) -> Answer:
    """The same, and wait for the answer."""
    return await begin(talk, method, params, ours=ours, misbehaved=misbehaved).answer()


async def call(
    talk: Talk, tool: JSONObject, *, ours: JSONObject | None = None, task: JSONObject | None = None
) -> Answer:
    """Call a tool, and answer what it asks before it has a result, or becomes a task. `task` is put into the params, as
    2025-11-25 has it. Raises `NotObserved` for a tool that takes too long.
    """
    params = call_of(tool) if task is None else {**call_of(tool), "task": task}
    try:
        return await in_rounds(talk, params, lambda params: ask(talk, "tools/call", params, ours=ours))
    except Broken as exc:
        if exc.symptom.startswith(SILENT):
            raise NotObserved(f"the tool {tool.get('name')!r} takes too long") from exc
        raise


def is_task(result: Any) -> bool:
    """Whether a result is a task."""
    return isinstance(result, dict) and result.get("resultType") == "task"


def could_wait(asked: JSONObject) -> bool:
    """Whether a request of ours said that its client can wait for tasks."""
    return EXTENSION in inside(asked, "params", "_meta", CLIENT_CAPABILITIES, "extensions")


async def usable(talk: Talk) -> list[JSONObject]:
    """The tools that may be called: also those that take too long without a task."""
    return [tool for tool in await talk.tools() if talk.may_call(tool)]


async def deferring(talk: Talk) -> list[JSONObject]:
    """The tools whose calls become tasks, as far as this visit knows; where it knows none, some are tried.

    Raises `NotObserved` for none.
    """
    tools = await usable(talk)
    tried = _tried(talk)
    enough = asyncio.get_running_loop().time() + talk.settings.timeout
    for tool in [tool for tool in tools if tool.get("name") not in tried]:
        if any(_tried(talk).values()) or asyncio.get_running_loop().time() > enough:
            break
        with contextlib.suppress(NotObserved):
            result = (await call(talk, tool)).result
            await give_up(talk, *([str(result.get("taskId"))] if is_task(result) else []))
    tried = _tried(talk)
    found = [tool for tool in tools if tried.get(tool.get("name"))]
    if not found:
        raise NotObserved("no call becomes a task")
    return found


def _tried(talk: Talk) -> dict[Any, bool]:
    """The tools that were called in this visit so that they could have become tasks, and whether they did."""
    found: dict[Any, bool] = {}
    for each in answers(talk.beside, "tools/call"):
        if could_wait(each.request):
            name = inside(each.request, "params").get("name")
            found[name] = found.get(name, False) or is_task(each.result)
    return found


async def begun(talk: Talk) -> str:
    """The id of a new task. Raises `NotObserved` when no call becomes one."""
    for tool in await deferring(talk):
        result = (await call(talk, tool)).result
        if is_task(result) and isinstance(result.get("taskId"), str):
            return str(result["taskId"])
    raise NotObserved("no call becomes a task again")


async def run_all(talk: Talk) -> None:
    """Call each tool as a client that can wait, and follow those that become tasks to their end."""
    for tool in await usable(talk) if talk.has(CAPABILITY) else ():
        with contextlib.suppress(NotObserved):  # it takes too long, or arguments that nobody knows
            result = (await call(talk, tool)).result
            if is_task(result) and isinstance(result.get("taskId"), str):
                await _run(talk, result["taskId"])


async def _run(talk: Talk, id: str) -> None:
    """Look at a task until it is over, and once more after that and after a cancellation which comes too late."""
    await ended(talk, id)
    await ask(talk, "tasks/get", {"taskId": id})
    await ask(talk, "tasks/cancel", {"taskId": id})
    await ask(talk, "tasks/get", {"taskId": id})


async def ended(talk: Talk, id: str) -> JSONObject:
    """What a task is in the end, when all that it asks was answered; empty when it is deleted before.

    Raises `NotObserved` when it takes too long.
    """
    answered: set[str] = set()
    async for state in looks(talk, id):
        if not state or state.get("status") in FINISHED:
            return state
        open_ = {key: each for key, each in requests_of(state).items() if key not in answered}
        if open_:
            answered |= open_.keys()
            await ask(talk, "tasks/update", {"taskId": id, "inputResponses": good_answers(talk, open_)})
    raise NotObserved(f"a task is not done in {talk.settings.timeout * _PATIENCE:g} s")


async def looks(talk: Talk, id: str) -> AsyncIterator[JSONObject]:
    """Each state of a task, looked at as often as it wishes, for a bounded time; an empty one when it is deleted."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + talk.settings.timeout * _PATIENCE
    pause = _SHORTEST
    while clock() < deadline:
        answer = await ask(talk, "tasks/get", {"taskId": id})
        state = inside(answer.result)
        wished = state.get("pollIntervalMs")
        if isinstance(wished, int | float):
            pause = min(max(wished / 1000, _SHORTEST), _LONGEST)
        if state or answer.code == INVALID_PARAMS:  # others may be of a server that is asked too often
            yield state
        await asyncio.sleep(pause)


def requests_of(state: JSONObject) -> JSONObject:
    """What a task asks, by its keys."""
    return inside(state, "inputRequests") if state.get("status") == INPUT_REQUIRED else {}


async def give_up(talk: Talk, *ids: str) -> None:
    """Cancel tasks. What goes wrong is for the rules about that."""
    with contextlib.suppress(Broken):
        for id in ids:
            await ask(talk, "tasks/cancel", {"taskId": id})


def states(records: Iterable[Record]) -> Iterator[State]:
    """All that was said of tasks: in answers, and in notifications where they cannot overtake them."""
    for record in records:
        for answer in answers([record], "tools/call", "tasks/get"):
            task = inside(answer.result)
            if is_task(task) or (answer.request["method"] == "tasks/get" and "taskId" in task):
                yield State(answer.heard, task, answer.asked.at)
        for told in heard([record]) if record.transport in LINES else ():
            if told.message.get("method") == NEWS:
                yield State(told, inside(told.message, "params"), told.said.at)
