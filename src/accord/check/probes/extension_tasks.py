"""Tasks of the extension (2026-07-28): calling tools as a client that can wait, and reading what was said of its tasks.

Whether a call becomes a task is for the server to decide. With each request a client says anew whether it could wait,
so that one conversation holds requests of both kinds.

The exact types of a task of the extension (2026-07-28), for each of its states.
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
from accord.check.probes.tasks import TERMINAL_STATUSES, TaskObservation, call_params
from accord.errors import INVALID_PARAMS
from accord.messages.base import JSONObject, Model
from accord.messages.envelope import ErrorObject
from accord.messages.input_required import InputRequest
from accord.messages.meta import CLIENT_CAPABILITIES
from accord.messages.tasks import TaskStatus
from accord.messages.tools import CallToolResult
from accord.messages.views import view
from accord.wire.headers import encode_value

EXTENSION = "io.modelcontextprotocol/tasks"
CAPABILITY = f"extensions:{EXTENSION}"
PAGE = "https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/draft/tasks.md"
PROPOSAL = "https://modelcontextprotocol.io/seps/2663-tasks-extension"
SINCE = "2026-07-28"
TASK_METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
STATUS_NOTIFICATION = "notifications/tasks"
_SHORTEST, _LONGEST = 0.02, 1.0
"""Seconds between two looks at a task, whatever it wishes: it may refuse who comes too often, and is asked again."""
_TIMEOUT_FACTOR = 4
"""A task may take so many times as long as an answer."""


def start_request(
    probe: Probe, method: str, params: JSONObject, *, ours: JSONObject | None = None, misbehaved: bool = False
) -> PendingAnswer:
    """Send a request as a client that can wait for tasks; or as one that has declared `ours`."""
    message = build_request(probe, method, params, ours)
    id = params.get("taskId")
    # "the client MUST set the `Mcp-Name` header to the value of `params.taskId`"
    headers = {"Mcp-Name": encode_value(id)} if isinstance(id, str) and id else None
    return probe.send(message, headers=headers, misbehaved=misbehaved)


def build_request(probe: Probe, method: str, params: JSONObject, ours: JSONObject | None = None) -> JSONObject:
    """The message alone."""
    able = {**probe.client_capabilities, "extensions": {EXTENSION: {}}}
    return probe.build_request(method, params, meta={CLIENT_CAPABILITIES: able if ours is None else ours})


async def send_request(
    probe: Probe, method: str, params: JSONObject, *, ours: JSONObject | None = None, misbehaved: bool = False
) -> Answer:
    """The same, and wait for the answer."""
    return await start_request(probe, method, params, ours=ours, misbehaved=misbehaved).wait()


async def call_tool(
    probe: Probe, tool: JSONObject, *, ours: JSONObject | None = None, task: JSONObject | None = None
) -> Answer:
    """Call a tool, and answer what it asks before it has a result, or becomes a task. `task` is put into the params, as
    2025-11-25 has it. Raises `NotObserved` for a tool that takes too long.
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
    """Whether a result is a task."""
    return isinstance(result, dict) and result.get("resultType") == "task"


def declares_extension(asked: JSONObject) -> bool:
    """Whether a request of ours said that its client can wait for tasks."""
    return EXTENSION in get_object(asked, "params", "_meta", CLIENT_CAPABILITIES, "extensions")


async def callable_tools(probe: Probe) -> list[JSONObject]:
    """The tools that may be called: also those that take too long without a task."""
    return [tool for tool in await probe.tools() if probe.may_call(tool)]


async def task_tools(probe: Probe) -> list[JSONObject]:
    """The tools whose calls become tasks, as far as this visit knows; where it knows none, some are tried.

    Raises `NotObserved` for none.
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
    """The tools that were called in this visit so that they could have become tasks, and whether they did."""
    found: dict[Any, bool] = {}
    for each in answered_requests(probe.peer_logs, "tools/call"):
        if declares_extension(each.request):
            name = get_object(each.request, "params").get("name")
            found[name] = found.get(name, False) or is_task(each.result)
    return found


async def start_task(probe: Probe) -> str:
    """The id of a new task. Raises `NotObserved` when no call becomes one."""
    for tool in await task_tools(probe):
        result = (await call_tool(probe, tool)).result
        if is_task(result) and isinstance(result.get("taskId"), str):
            return str(result["taskId"])
    raise NotObserved("no call becomes a task again")


async def run_task_tools(probe: Probe) -> None:
    """Call each tool as a client that can wait, and follow those that become tasks to their end."""
    for tool in await callable_tools(probe) if probe.has_capability(CAPABILITY) else ():
        with contextlib.suppress(NotObserved):  # it takes too long, or arguments that nobody knows
            result = (await call_tool(probe, tool)).result
            if is_task(result) and isinstance(result.get("taskId"), str):
                await _run(probe, result["taskId"])


async def _run(probe: Probe, id: str) -> None:
    """Look at a task until it is over, and once more after that and after a cancellation which comes too late."""
    await finish_task(probe, id)
    await send_request(probe, "tasks/get", {"taskId": id})
    await send_request(probe, "tasks/cancel", {"taskId": id})
    await send_request(probe, "tasks/get", {"taskId": id})


async def finish_task(probe: Probe, id: str) -> JSONObject:
    """What a task is in the end, when all that it asks was answered; empty when it is deleted before.

    Raises `NotObserved` when it takes too long.
    """
    answered: set[str] = set()
    async for state in poll_task(probe, id):
        if not state or state.get("status") in TERMINAL_STATUSES:
            return state
        open_ = {key: each for key, each in task_input_requests(state).items() if key not in answered}
        if open_:
            answered |= open_.keys()
            await send_request(probe, "tasks/update", {"taskId": id, "inputResponses": input_responses(probe, open_)})
    raise NotObserved(f"a task is not done in {probe.settings.timeout * _TIMEOUT_FACTOR:g} s")


async def poll_task(probe: Probe, id: str) -> AsyncIterator[JSONObject]:
    """Each state of a task, looked at as often as it wishes, for a bounded time; an empty one when it is deleted."""
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
    """What a task asks, by its keys."""
    return get_object(state, "inputRequests") if state.get("status") == INPUT_REQUIRED else {}


async def cancel_tasks(probe: Probe, *ids: str) -> None:
    """Cancel tasks. What goes wrong is for the rules about that."""
    with contextlib.suppress(Violation):
        for id in ids:
            await send_request(probe, "tasks/cancel", {"taskId": id})


def task_states(logs: Iterable[MessageLog]) -> Iterator[TaskObservation]:
    """All that was said of tasks: in answers, and in notifications where they cannot overtake them."""
    for log in logs:
        for answer in answered_requests([log], "tools/call", "tasks/get"):
            task = get_object(answer.result)
            if is_task(task) or (answer.request["method"] == "tasks/get" and "taskId" in task):
                yield TaskObservation(answer.received, task, answer.request_entry.at)
        for told in received_messages([log]) if log.transport in LINE_TRANSPORTS else ():
            if told.message.get("method") == STATUS_NOTIFICATION:
                yield TaskObservation(told, get_object(told.message, "params"), told.entry.at)


class _TaskFields(Model):
    """What is known of a task in every state: times are ISO 8601, a `ttl_ms` of None is without end."""

    task_id: str
    created_at: str
    last_updated_at: str
    ttl_ms: int | None
    status_message: str | None = None
    poll_interval_ms: int | None = None


class TaskHandle(_TaskFields):
    """What a call is answered with that becomes a task."""

    status: TaskStatus


class WorkingTask(_TaskFields, tag_field="status", tag="working"):
    """At work."""


class InputRequiredTask(_TaskFields, tag_field="status", tag="input_required"):
    """It waits for answers."""

    input_requests: dict[str, InputRequest]


class CompletedTask(_TaskFields, tag_field="status", tag="completed"):
    """Done: with what the call would have been answered."""

    result: JSONObject


class FailedTask(_TaskFields, tag_field="status", tag="failed"):
    """It ended with an error of JSON-RPC."""

    error: ErrorObject


class CancelledTask(_TaskFields, tag_field="status", tag="cancelled"):
    """It was given up."""


DetailedTask: TypeAlias = WorkingTask | InputRequiredTask | CompletedTask | FailedTask | CancelledTask


def handle_fault(task: JSONObject, revision: str) -> str:
    """What is wrong with a new task, in words; empty if nothing is. `resultType` and `_meta` are for other rules."""
    return _fault(task, TaskHandle, revision)


def state_fault(task: JSONObject, revision: str) -> str:
    """The same for a state of a task, as tasks/get and notifications tell it."""
    return _fault(task, DetailedTask, revision)


def result_fault(result: JSONObject, revision: str) -> str:
    """The same for the result of a tool inside a task, which may leave out what every answer must say."""
    return _fault({"resultType": "complete", **result}, CallToolResult, revision)


def _fault(value: JSONObject, type_: Any, revision: str) -> str:
    try:
        msgspec.convert(value, _strict_type(type_, revision))
    except msgspec.ValidationError as exc:
        return str(exc)
    except RecursionError:
        return "it is nested too deep"
    return ""


@cache
def _strict_type(type_: Any, revision: str) -> Any:
    return view(type_, revision, strict=True, closed=False)
