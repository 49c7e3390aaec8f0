"""Tasks (2025-11-25): calls as tasks, and the states of tasks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from accord.check.engine.rule import LINE_TRANSPORTS, NotObserved, Violation
from accord.check.fuzz.schema_document import GenerationError
from accord.check.fuzz.smallest import smallest
from accord.check.probes.content import get_object, get_objects
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import ObservedMessage, answered_requests, received_messages
from accord.check.probes.pending_answer import Answer
from accord.check.probes.probe import Probe
from accord.messages.base import JSONObject
from accord.messages.capabilities import TOOL_TASKS
from accord.messages.meta import RELATED_TASK
from accord.messages.tasks import TERMINAL_STATUSES
from accord.wire.transcript import SENT

CAPABILITY = TOOL_TASKS
TASK_METHODS = ("tasks/get", "tasks/result", "tasks/cancel")
_TTL = 60_000
_SHORTEST, _LONGEST = 0.02, 0.5
"""Seconds between two polls of a task, at least."""
_TIMEOUT_FACTOR = 4
"""A task may take this many times as long as a response."""


class TaskObservation(NamedTuple):
    """A state of a task. `requested_at` is the time of the request, by the clock of the log."""

    received: ObservedMessage
    task: JSONObject
    requested_at: float

    @property
    def id(self) -> Any:
        return self.task.get("taskId")

    @property
    def status(self) -> Any:
        return self.task.get("status")

    @property
    def is_final(self) -> bool:
        """Whether the task has ended."""
        return self.status in TERMINAL_STATUSES


def task_support(tool: JSONObject) -> str:
    """Return the task support of a tool: `required`, `optional`, or `forbidden`."""
    return str(get_object(tool, "execution").get("taskSupport", "forbidden"))


async def tools_with_support(probe: Probe, *kinds: str) -> list[JSONObject]:
    """Return the callable tools with such support. Raises `NotObserved` if there are none."""
    found = [tool for tool in await probe.callable_tools() if task_support(tool) in kinds]
    if not found:
        raise NotObserved(f"no callable tool has the taskSupport {' or '.join(kinds)}")
    return found


def call_params(tool: JSONObject) -> JSONObject:
    """Return the params of a call with minimal arguments. Raises `NotObserved` if there are none for its schema."""
    try:
        return {"name": tool.get("name"), "arguments": smallest(tool.get("inputSchema"))}
    except GenerationError as exc:
        raise NotObserved(f"the checker has no arguments for {tool.get('name')!r}") from exc


async def call_as_task(probe: Probe, tool: JSONObject) -> Answer:
    """Call a tool as a task."""
    return await probe.request("tools/call", {**call_params(tool), "task": {"ttl": _TTL}})


async def start_task(probe: Probe) -> tuple[JSONObject, str]:
    """Return a tool with a running task, and the id of the task. Raises `NotObserved` if there is none."""
    for tool in await tools_with_support(probe, "optional", "required"):
        id = created_task_id(await call_as_task(probe, tool))
        if id is not None:
            return tool, id
    raise NotObserved("no call became a task")


def created_task_id(answer: Answer) -> str | None:
    """Return the id of the task that a call became."""
    id = get_object(answer.result, "task").get("taskId")
    return id if isinstance(id, str) else None


async def run_task_tools(probe: Probe) -> None:
    """Call each tool that supports tasks as a task, and read its states until it ends."""
    for tool in await probe.callable_tools() if probe.has_capability(CAPABILITY) else ():
        if task_support(tool) != "forbidden":
            with contextlib.suppress(NotObserved):  # it takes too long, or arguments that nobody knows
                await _run(probe, tool)


async def _run(probe: Probe, tool: JSONObject) -> None:
    id = created_task_id(await call_as_task(probe, tool))
    if id is None:
        return
    await probe.request("tasks/get", {"taskId": id})
    result = probe.begin("tasks/result", {"taskId": id})
    try:
        await result.wait(probe.settings.timeout * _TIMEOUT_FACTOR)
    finally:
        if not result.is_done:
            probe.notify("notifications/cancelled", {"requestId": result.id})
    if await finish_task(probe, id):
        await _read_finished_task(probe, id)


async def _read_finished_task(probe: Probe, id: str) -> None:
    """Read everything about a task that has ended."""
    await probe.request("tasks/result", {"taskId": id})
    if probe.has_capability("tasks.list"):
        await probe.request("tasks/list")
    if probe.has_capability("tasks.cancel"):
        await probe.request("tasks/cancel", {"taskId": id})
    await probe.request("tasks/get", {"taskId": id})


async def finish_task(probe: Probe, id: str) -> JSONObject:
    """Return the final state of a task; empty if it is deleted before. Raises `NotObserved` if it takes too long."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + probe.settings.timeout * _TIMEOUT_FACTOR
    while clock() < deadline:
        state = get_object((await probe.request("tasks/get", {"taskId": id})).result)
        if not state or state.get("status") in TERMINAL_STATUSES:
            return state
        pause = state.get("pollInterval")
        wished = pause / 1000 if isinstance(pause, int | float) else 0.0
        await asyncio.sleep(min(max(wished, _SHORTEST), _LONGEST))
    raise NotObserved(f"a task did not end in {probe.settings.timeout * _TIMEOUT_FACTOR:g} s")


async def cancel_tasks(probe: Probe, *ids: str) -> None:
    """Cancel tasks, if possible, and ignore errors, which other rules judge."""
    with contextlib.suppress(Violation):
        for id in ids if probe.has_capability("tasks.cancel") else ():
            await probe.request("tasks/cancel", {"taskId": id})


def task_states(logs: Iterable[MessageLog]) -> Iterator[TaskObservation]:
    """Yield all states of tasks: from responses, and from notifications that cannot overtake them."""
    for log in logs:
        for answer in answered_requests([log], "tools/call", "tasks/get", "tasks/cancel", "tasks/list"):
            for task in _tasks(answer.request["method"], get_object(answer.result)):
                yield TaskObservation(answer.received, task, answer.request_entry.at)
        for each in received_messages([log]) if log.transport in LINE_TRANSPORTS else ():
            if each.message.get("method") == "notifications/tasks/status":
                yield TaskObservation(each, get_object(each.message, "params"), each.entry.at)


def _tasks(method: str, result: JSONObject) -> list[JSONObject]:
    if method == "tools/call":
        return [result["task"]] if isinstance(result.get("task"), dict) else []
    if method == "tasks/list":
        return get_objects(result, "tasks")
    return [result] if "taskId" in result else []


def related_task_id(message: JSONObject) -> Any:
    """Return the task in the `_meta` of a request, a notification or a result; None if it has none."""
    return get_object(message, "params" if "method" in message else "result", "_meta", RELATED_TASK).get("taskId")


def requests_during_tasks(log: MessageLog) -> Iterator[tuple[ObservedMessage, set[str]]]:
    """Yield the requests of the server while only tasks ran, each with the ids of the tasks."""
    plain: set[str] = set()
    open_: set[str] = set()
    asked: dict[str, JSONObject] = {}
    for entry, message in log.messages:
        key = repr(message.get("id"))
        params = get_object(message, "params")
        if entry.direction == SENT and message.get("method") in ("tools/call", "tasks/result"):
            asked[key] = message
            plain |= {key} if "task" not in params and message["method"] == "tools/call" else set()
        elif entry.direction != SENT and "method" not in message and key in asked:
            plain.discard(key)
            request = asked.pop(key)
            made = get_object(message, "result", "task").get("taskId")
            open_ |= {made} if isinstance(made, str) else set()
            open_.discard(str(get_object(request, "params").get("taskId")))
        elif entry.direction != SENT and "method" in message and "id" in message and open_ and not plain:
            yield ObservedMessage(log, entry, message), set(open_)
