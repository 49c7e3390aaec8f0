"""The tasks extension (2026-07-28): calls that may become tasks, the states of tasks, and their types.

The server decides whether a call becomes a task. Each request declares anew whether its client supports tasks, so that
one session has requests of both kinds.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import cache
from typing import Any, TypeAlias

import msgspec

from accord.check.engine.rule import LINE_TRANSPORTS, NotObserved, Violation
from accord.check.probes.content import get_object
from accord.check.probes.input_requests import INPUT_REQUIRED, input_responses, request_with_input
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import answered_requests, received_messages
from accord.check.probes.pending_answer import NO_ANSWER, Answer, PendingAnswer
from accord.check.probes.probe import Probe
from accord.check.probes.tasks import TaskObservation, call_params
from accord.errors import INVALID_PARAMS
from accord.messages.base import JSONObject, Model
from accord.messages.capabilities import TASKS_EXTENSION
from accord.messages.envelope import ErrorObject
from accord.messages.input_required import InputRequest
from accord.messages.meta import CLIENT_CAPABILITIES
from accord.messages.tasks import TERMINAL_STATUSES, TaskStatus
from accord.messages.tools import CallToolResult
from accord.messages.views import view
from accord.wire.headers import encode_value

EXTENSION = TASKS_EXTENSION
CAPABILITY = f"extensions:{EXTENSION}"
PAGE = "https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/draft/tasks.md"
PROPOSAL = "https://modelcontextprotocol.io/seps/2663-tasks-extension"
SINCE = "2026-07-28"
TASK_METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
STATUS_NOTIFICATION = "notifications/tasks"
_SHORTEST, _LONGEST = 0.02, 1.0
"""Seconds between two polls of a task, at least: a server may refuse frequent requests."""
_TIMEOUT_FACTOR = 4
"""A task may take this many times as long as a response."""


def start_request(
    probe: Probe, method: str, params: JSONObject, *, ours: JSONObject | None = None, misbehaved: bool = False
) -> PendingAnswer:
    """Send a request of a client that supports tasks, or that declares `ours`."""
    message = build_request(probe, method, params, ours)
    id = params.get("taskId")
    # "the client MUST set the `Mcp-Name` header to the value of `params.taskId`"
    headers = {"Mcp-Name": encode_value(id)} if isinstance(id, str) and id else None
    return probe.send(message, headers=headers, misbehaved=misbehaved)


def build_request(probe: Probe, method: str, params: JSONObject, ours: JSONObject | None = None) -> JSONObject:
    """Build the request only."""
    able = {**probe.client_capabilities, "extensions": {EXTENSION: {}}}
    return probe.build_request(method, params, meta={CLIENT_CAPABILITIES: able if ours is None else ours})


async def send_request(
    probe: Probe, method: str, params: JSONObject, *, ours: JSONObject | None = None, misbehaved: bool = False
) -> Answer:
    """Send the request, and wait for the response."""
    return await start_request(probe, method, params, ours=ours, misbehaved=misbehaved).wait()


async def call_tool(
    probe: Probe, tool: JSONObject, *, ours: JSONObject | None = None, task: JSONObject | None = None
) -> Answer:
    """Call a tool, and answer its input requests until it returns a result or becomes a task. `task` is added to the
    params, as in 2025-11-25. Raises `NotObserved` for a tool that takes too long.
    """
    params = call_params(tool) if task is None else {**call_params(tool), "task": task}
    try:
        return await request_with_input(
            probe, params, lambda params: send_request(probe, "tools/call", params, ours=ours)
        )
    except Violation as exc:
        if exc.symptom.startswith(NO_ANSWER):
            raise NotObserved(f"the tool {tool.get('name')!r} takes too long") from exc
        raise


def is_task(result: Any) -> bool:
    """Return whether a result is a task."""
    return isinstance(result, dict) and result.get("resultType") == "task"


def declares_extension(asked: JSONObject) -> bool:
    """Return whether a request declared that its client supports tasks."""
    return EXTENSION in get_object(asked, "params", "_meta", CLIENT_CAPABILITIES, "extensions")


async def callable_tools(probe: Probe) -> list[JSONObject]:
    """Return the callable tools, including those that take too long without a task."""
    return [tool for tool in await probe.tools() if probe.may_call(tool)]


async def task_tools(probe: Probe) -> list[JSONObject]:
    """Return the tools whose calls became tasks in this visit; if none is known, some are tried. Raises `NotObserved`
    if there are none.
    """
    tools = await callable_tools(probe)
    tried = _observed_calls(probe)
    enough = asyncio.get_running_loop().time() + probe.settings.timeout
    for tool in [tool for tool in tools if tool.get("name") not in tried]:
        if any(_observed_calls(probe).values()) or asyncio.get_running_loop().time() > enough:
            break
        with contextlib.suppress(NotObserved):
            result = (await call_tool(probe, tool)).result
            await cancel_tasks(probe, *([str(result.get("taskId"))] if is_task(result) else []))
    tried = _observed_calls(probe)
    found = [tool for tool in tools if tried.get(tool.get("name"))]
    if not found:
        raise NotObserved("no call becomes a task")
    return found


def _observed_calls(probe: Probe) -> dict[Any, bool]:
    """Return the tools that were called in this visit by a client that supports tasks, and whether they
    became tasks.
    """
    found: dict[Any, bool] = {}
    for each in answered_requests(probe.peer_logs, "tools/call"):
        if declares_extension(each.request):
            name = get_object(each.request, "params").get("name")
            found[name] = found.get(name, False) or is_task(each.result)
    return found


async def start_task(probe: Probe) -> str:
    """Return the id of a new task. Raises `NotObserved` if no call becomes one."""
    for tool in await task_tools(probe):
        result = (await call_tool(probe, tool)).result
        if is_task(result) and isinstance(result.get("taskId"), str):
            return str(result["taskId"])
    raise NotObserved("no call becomes a task again")


async def run_task_tools(probe: Probe) -> None:
    """Call each tool as a client that supports tasks, and poll the tasks until they end."""
    for tool in await callable_tools(probe) if probe.has_capability(CAPABILITY) else ():
        with contextlib.suppress(NotObserved):  # it takes too long, or arguments that nobody knows
            result = (await call_tool(probe, tool)).result
            if is_task(result) and isinstance(result.get("taskId"), str):
                await _run(probe, result["taskId"])


async def _run(probe: Probe, id: str) -> None:
    """Poll a task until it ends, then once more, and once more after a late cancellation."""
    await finish_task(probe, id)
    await send_request(probe, "tasks/get", {"taskId": id})
    await send_request(probe, "tasks/cancel", {"taskId": id})
    await send_request(probe, "tasks/get", {"taskId": id})


async def finish_task(probe: Probe, id: str) -> JSONObject:
    """Return the final state of a task, with all its input requests answered; empty if it is deleted before. Raises
    `NotObserved` if it takes too long.
    """
    answered: set[str] = set()
    async for state in poll_task(probe, id):
        if not state or state.get("status") in TERMINAL_STATUSES:
            return state
        open_ = {key: each for key, each in task_input_requests(state).items() if key not in answered}
        if open_:
            answered |= open_.keys()
            await send_request(probe, "tasks/update", {"taskId": id, "inputResponses": input_responses(probe, open_)})
    raise NotObserved(f"a task did not end in {probe.settings.timeout * _TIMEOUT_FACTOR:g} s")


async def poll_task(probe: Probe, id: str) -> AsyncIterator[JSONObject]:
    """Yield the states of a task at its poll interval, for a limited time; an empty one if it is deleted."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + probe.settings.timeout * _TIMEOUT_FACTOR
    pause = _SHORTEST
    while clock() < deadline:
        answer = await send_request(probe, "tasks/get", {"taskId": id})
        state = get_object(answer.result)
        wished = state.get("pollIntervalMs")
        if isinstance(wished, int | float):
            pause = min(max(wished / 1000, _SHORTEST), _LONGEST)
        if state or answer.code == INVALID_PARAMS:  # others may be of a server that is asked too often
            yield state
        await asyncio.sleep(pause)


def task_input_requests(state: JSONObject) -> JSONObject:
    """Return the input requests of a task, by their keys."""
    return get_object(state, "inputRequests") if state.get("status") == INPUT_REQUIRED else {}


async def cancel_tasks(probe: Probe, *ids: str) -> None:
    """Cancel tasks, and ignore errors, which other rules judge."""
    with contextlib.suppress(Violation):
        for id in ids:
            await send_request(probe, "tasks/cancel", {"taskId": id})


def task_states(logs: Iterable[MessageLog]) -> Iterator[TaskObservation]:
    """Yield all states of tasks: from responses, and from notifications that cannot overtake them."""
    for log in logs:
        for answer in answered_requests([log], "tools/call", "tasks/get"):
            task = get_object(answer.result)
            if is_task(task) or (answer.request["method"] == "tasks/get" and "taskId" in task):
                yield TaskObservation(answer.received, task, answer.request_entry.at)
        for each in received_messages([log]) if log.transport in LINE_TRANSPORTS else ():
            if each.message.get("method") == STATUS_NOTIFICATION:
                yield TaskObservation(each, get_object(each.message, "params"), each.entry.at)


class _TaskFields(Model):
    """The fields of a task in each state: times are ISO 8601, and a `ttl_ms` of None means no limit."""

    task_id: str
    created_at: str
    last_updated_at: str
    ttl_ms: int | None
    status_message: str | None = None
    poll_interval_ms: int | None = None


class ProbedTask(_TaskFields):
    """The result of a call that becomes a task."""

    status: TaskStatus


class WorkingTask(_TaskFields, tag_field="status", tag="working"):
    """The task is running."""


class InputRequiredTask(_TaskFields, tag_field="status", tag="input_required"):
    """The task waits for input."""

    input_requests: dict[str, InputRequest]


class CompletedTask(_TaskFields, tag_field="status", tag="completed"):
    """The task has a result."""

    result: JSONObject


class FailedTask(_TaskFields, tag_field="status", tag="failed"):
    """The task has a JSON-RPC error."""

    error: ErrorObject


class CancelledTask(_TaskFields, tag_field="status", tag="cancelled"):
    """The task is cancelled."""


DetailedTask: TypeAlias = WorkingTask | InputRequiredTask | CompletedTask | FailedTask | CancelledTask


def handle_fault(task: JSONObject, revision: str) -> str:
    """Describe what is wrong with a new task; empty if nothing is. Other rules judge `resultType` and `_meta`."""
    return _fault(task, ProbedTask, revision)


def state_fault(task: JSONObject, revision: str) -> str:
    """Describe what is wrong with a state of a task, in tasks/get and notifications."""
    return _fault(task, DetailedTask, revision)


def result_fault(result: JSONObject, revision: str) -> str:
    """Describe what is wrong with a tool result inside a task, which needs no fields of responses."""
    return _fault({"resultType": "complete", **result}, CallToolResult, revision)


def _fault(value: JSONObject, type_: Any, revision: str) -> str:
    try:
        msgspec.convert(value, _strict_type(type_, revision))
    except msgspec.ValidationError as exc:
        return str(exc)
    except RecursionError:
        return "it is nested too deeply"
    return ""


@cache
def _strict_type(type_: Any, revision: str) -> Any:
    return view(type_, revision, strict=True, closed=False)
