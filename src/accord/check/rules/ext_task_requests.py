"""The tasks extension (2026-07-28): requests that change a task, input requests, and routing headers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.engine.rule import HTTP, JudgedItems, NotObserved
from accord.check.probes.content import get_object, preview_json
from accord.check.probes.extension_tasks import (
    CAPABILITY,
    PAGE,
    build_request,
    call_tool,
    cancel_tasks,
    is_task,
    poll_task,
    send_request,
    start_task,
    task_input_requests,
    task_states,
    task_tools,
)
from accord.check.probes.input_requests import input_responses
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import answered_requests
from accord.check.probes.probe import Probe
from accord.check.probes.raw_http import require_refusal
from accord.check.rules.ext_tasks import ext_task_rule
from accord.errors import HEADER_MISMATCH
from accord.messages.base import JSONObject
from accord.messages.tasks import TERMINAL_STATUSES

_TASK_FIELDS = frozenset(("taskId", "task", "status", "statusMessage", "createdAt", "lastUpdatedAt", "result", "error"))
"""Fields of a result that are about a task; unknown fields are allowed."""


@ext_task_rule(
    "ext-tasks/empty-answers",
    "must",
    case="all results of both methods",
    at=(f"{PAGE}#task-update-requests", f"{PAGE}#task-cancellation"),
    cause="The result has the status of the task, as in 2025-11-25: the status may have changed by then.",
)
def ext_tasks_empty_answers(logs: Sequence[MessageLog]) -> JudgedItems:
    """tasks/update and tasks/cancel return an empty result: tasks/get shows their effect."""
    for answered in answered_requests(logs, "tasks/update", "tasks/cancel"):
        if isinstance(answered.result, dict):
            yield
            more = sorted(_TASK_FIELDS & answered.result.keys())
            if more:
                raise answered.violation(f"the result of {answered.request['method']} has {', '.join(more)}")


@ext_task_rule(
    "ext-tasks/cancel",
    "must",
    case="a new task",
    calls=True,
    at=f"{PAGE}#task-cancellation",
    cause="A task that cannot be stopped returns an error: the server has to acknowledge the request only.",
)
async def ext_tasks_cancel(probe: Probe) -> None:
    """The server acknowledges tasks/cancel of a running task, whether it stops the task or not."""
    id = await start_task(probe)
    answer = await send_request(probe, "tasks/cancel", {"taskId": id})
    if answer.error is not None:
        status = get_object((await send_request(probe, "tasks/get", {"taskId": id})).result).get("status")
        if status in TERMINAL_STATUSES and status != "cancelled":
            raise NotObserved("the task ended before the cancellation")
        raise probe.violation(f"tasks/cancel returned {preview_json(answer.error)}")


@ext_task_rule(
    "ext-tasks/stray-answers",
    "should",
    case="an input response with an unknown key",
    calls=True,
    at=f"{PAGE}#task-update-requests",
    cause="An unknown key is refused: a client that repeats its responses gets an error.",
)
async def ext_tasks_stray_answers(probe: Probe) -> None:
    """The server ignores input responses that the task does not wait for."""
    id = await start_task(probe)
    params = {"taskId": id, "inputResponses": {probe.unknown_name: {"action": "decline"}}}
    answer = await send_request(probe, "tasks/update", params, misbehaved=True)
    await cancel_tasks(probe, id)
    if answer.error is not None:
        raise probe.violation(f"the server answered with {preview_json(answer.error)}")


@ext_tasks_stray_answers.case("the same input responses twice", kind="own", needs=CAPABILITY, calls=True)
async def ext_tasks_stray_answers_twice(probe: Probe) -> None:
    id, asked = await _task_requiring_input(probe)
    params = {"taskId": id, "inputResponses": input_responses(probe, asked)}
    first = await send_request(probe, "tasks/update", params)
    again = await send_request(probe, "tasks/update", params, misbehaved=True)
    await cancel_tasks(probe, id)
    if first.error is None and again.error is not None:
        raise probe.violation(f"the second request returned {preview_json(again.error)}")


@ext_task_rule(
    "ext-tasks/proceeds",
    "must",
    case="all input responses for a task that requires input",
    kind="own",
    calls=True,
    at=(f"{PAGE}#task-polling", f"{PAGE}#task-update-requests"),
    cause="The responses are looked up by another key than that of the input request, or further "
    "input is required without a request.",
)
async def ext_tasks_proceeds(probe: Probe) -> None:
    """A task continues when it has all requested input."""
    id, asked = await _task_requiring_input(probe)
    answer = await send_request(probe, "tasks/update", {"taskId": id, "inputResponses": input_responses(probe, asked)})
    if answer.error is not None:
        raise probe.violation(f"the input responses were refused with {preview_json(answer.error)}")
    async for state in poll_task(probe, id):
        if state.get("status") != "input_required" or task_input_requests(state).keys() - asked.keys():
            await cancel_tasks(probe, id)
            return
    await cancel_tasks(probe, id)
    raise probe.violation("a task still waits for input that it received")


async def _task_requiring_input(probe: Probe) -> tuple[str, JSONObject]:
    """Return a task that requires input, with its input requests. Raises `NotObserved` if there is none."""
    known = {state.id for state in task_states(probe.peer_logs) if task_input_requests(state.task)}
    for tool in await _tools_of(probe, known):
        result = (await call_tool(probe, tool)).result
        if is_task(result) and isinstance(result.get("taskId"), str):
            id = str(result["taskId"])
            async for state in poll_task(probe, id):
                if task_input_requests(state):
                    return id, task_input_requests(state)
                if not state or state.get("status") in TERMINAL_STATUSES:
                    break
            await cancel_tasks(probe, id)
    raise NotObserved("no task requires input")


async def _tools_of(probe: Probe, ids: set[Any]) -> list[JSONObject]:
    """Return the tools whose calls became these tasks."""
    made = [each for each in answered_requests(probe.peer_logs, "tools/call") if is_task(each.result)]
    names = {get_object(each.request, "params").get("name") for each in made if each.result.get("taskId") in ids}
    return [tool for tool in await task_tools(probe) if tool.get("name") in names]


@ext_task_rule(
    "ext-tasks/keys",
    "must",
    case="all input requests of tasks",
    at=f"{PAGE}#task-update-requests",
    cause="The key is the method of the input request, or restarts in each round: an old response "
    "matches a new request.",
)
def ext_tasks_keys(logs: Sequence[MessageLog]) -> JudgedItems:
    """A key of an input request identifies the same request for the lifetime of the task."""
    asked: dict[tuple[str, str], Any] = {}
    for state in task_states(logs):
        for key, question in task_input_requests(state.task).items():
            yield
            before = asked.setdefault((preview_json(state.id), key), question)
            if before != question:
                raise state.received.violation(
                    f"the key {key!r} had another input request before: {preview_json(before)}"
                )


@ext_task_rule(
    "ext-tasks/answered-keys",
    "must",
    case="all input requests of tasks after their responses",
    at=f"{PAGE}#task-update-requests",
    cause="The same step runs again after the response, and sends an input request with the same key.",
)
def ext_tasks_answered_keys(logs: Sequence[MessageLog]) -> JudgedItems:
    """A task does not reuse a key whose response it accepted."""
    answered: set[tuple[str, str]] = set()
    for each in answered_requests(logs, "tasks/update"):
        params = get_object(each.request, "params")
        answered |= {(preview_json(params.get("taskId")), key) for key in get_object(params, "inputResponses")}
    open_: dict[str, set[str]] = {}
    taken: set[tuple[str, str]] = set()
    for state in sorted(task_states(logs), key=lambda each: each.requested_at):
        id, now = preview_json(state.id), set(task_input_requests(state.task))
        # an answer counts as taken when its key has gone: "The acknowledgement is _eventually consistent_"
        taken |= {(id, key) for key in open_.get(id, set()) - now} & answered
        again = [key for key in now if (id, key) in taken]
        if again:
            raise state.received.violation(f"the key {again[0]!r} was answered and removed, and is used again")
        open_[id] = now
    yield from taken


@ext_task_rule(
    "ext-tasks/name-header",
    "must",
    case="tasks/get with another Mcp-Name",
    at=(f"{PAGE}#streamable-http-routing-headers", "basic/transports/streamable-http#server-validation"),
    over=HTTP,
    cause="The header is compared for tools, prompts and resources only: a proxy routes or authorizes another task.",
)
async def ext_tasks_name_header(probe: Probe) -> None:
    """A request about a task with another id in Mcp-Name than in its body gets status 400 and error -32020."""
    message = build_request(probe, "tasks/get", {"taskId": probe.unknown_name})
    response = await probe.post(message, {"Mcp-Name": "accord-check-another"})
    require_refusal(probe, response, "tasks/get with another Mcp-Name", status=400, code=HEADER_MISMATCH)
