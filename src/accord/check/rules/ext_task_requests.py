"""The tasks extension (2026-07-28): changing a task, what it asks, and how the requests about it are routed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.engine.rule import HTTP, JudgedItems, NotObserved, rule
from accord.check.probes.content import get_object, preview_json
from accord.check.probes.extension_tasks import (
    CAPABILITY,
    PAGE,
    SINCE,
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
from accord.check.probes.tasks import TERMINAL_STATUSES
from accord.errors import HEADER_MISMATCH
from accord.messages.base import JSONObject

_TASK_FIELDS = frozenset(("taskId", "task", "status", "statusMessage", "createdAt", "lastUpdatedAt", "result", "error"))
"""Fields by which a result is about a task; unknown fields are allowed."""


@rule(
    "ext-tasks/empty-answers",
    "must",
    case="all answers to both",
    needs=CAPABILITY,
    at=(f"{PAGE}#task-update-requests", f"{PAGE}#task-cancellation"),
    since=SINCE,
    cause="The state of the task is given, as tasks/cancel of 2025-11-25 does: it may have changed by then.",
)
def ext_tasks_empty_answers(logs: Sequence[MessageLog]) -> JudgedItems:
    """tasks/update and tasks/cancel are answered with an empty result: what became of it is told by tasks/get."""
    for answered in answered_requests(logs, "tasks/update", "tasks/cancel"):
        if isinstance(answered.result, dict):
            yield
            more = sorted(_TASK_FIELDS & answered.result.keys())
            if more:
                raise answered.violation(f"the result of {answered.request['method']} holds {', '.join(more)}")


@rule(
    "ext-tasks/cancel",
    "must",
    case="a new task",
    needs=CAPABILITY,
    calls=True,
    at=f"{PAGE}#task-cancellation",
    since=SINCE,
    cause="What cannot be stopped is refused: the server owes nothing but the acknowledgment.",
)
async def ext_tasks_cancel(probe: Probe) -> None:
    """tasks/cancel of a task that is at work is acknowledged, whether it is stopped or not."""
    id = await start_task(probe)
    answer = await send_request(probe, "tasks/cancel", {"taskId": id})
    if answer.error is not None:
        status = get_object((await send_request(probe, "tasks/get", {"taskId": id})).result).get("status")
        if status in TERMINAL_STATUSES and status != "cancelled":
            raise NotObserved("it was over before it could be cancelled")
        raise probe.violation(f"tasks/cancel is answered with {preview_json(answer.error)}")


@rule(
    "ext-tasks/stray-answers",
    "should",
    case="an answer to what no task asked",
    needs=CAPABILITY,
    calls=True,
    at=f"{PAGE}#task-update-requests",
    since=SINCE,
    cause="An unknown key is refused: a client that sends an answer twice, to be sure, is told of an error.",
)
async def ext_tasks_stray_answers(probe: Probe) -> None:
    """Answers that a task does not wait for are ignored: never asked, or answered before."""
    id = await start_task(probe)
    params = {"taskId": id, "inputResponses": {probe.unknown_name: {"action": "decline"}}}
    answer = await send_request(probe, "tasks/update", params, misbehaved=True)
    await cancel_tasks(probe, id)
    if answer.error is not None:
        raise probe.violation(f"it is answered with {preview_json(answer.error)}")


@ext_tasks_stray_answers.case("the same answers twice", kind="own", needs=CAPABILITY, calls=True)
async def ext_tasks_stray_answers_same_answers_twice(probe: Probe) -> None:
    id, asked = await _task_requiring_input(probe)
    params = {"taskId": id, "inputResponses": input_responses(probe, asked)}
    first = await send_request(probe, "tasks/update", params)
    again = await send_request(probe, "tasks/update", params, misbehaved=True)
    await cancel_tasks(probe, id)
    if first.error is None and again.error is not None:
        raise probe.violation(f"the second time it is answered with {preview_json(again.error)}")


@rule(
    "ext-tasks/proceeds",
    "must",
    case="all answers to a task that asks",
    kind="own",
    needs=CAPABILITY,
    calls=True,
    at=(f"{PAGE}#task-polling", f"{PAGE}#task-update-requests"),
    since=SINCE,
    cause="Answers are looked up by another key than they were asked under, or more is wanted than is told.",
)
async def ext_tasks_proceeds(probe: Probe) -> None:
    """A task that has all the answers which it asked for goes on."""
    id, asked = await _task_requiring_input(probe)
    answer = await send_request(probe, "tasks/update", {"taskId": id, "inputResponses": input_responses(probe, asked)})
    if answer.error is not None:
        raise probe.violation(f"the answers are refused with {preview_json(answer.error)}")
    async for state in poll_task(probe, id):
        if state.get("status") != "input_required" or task_input_requests(state).keys() - asked.keys():
            await cancel_tasks(probe, id)
            return
    await cancel_tasks(probe, id)
    raise probe.violation("a task still waits for answers that it got")


async def _task_requiring_input(probe: Probe) -> tuple[str, JSONObject]:
    """A task that asks something now, and what. Raises `NotObserved` for none."""
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
    raise NotObserved("no task asks anything")


async def _tools_of(probe: Probe, ids: set[Any]) -> list[JSONObject]:
    """Return the tools whose calls became these tasks."""
    made = [each for each in answered_requests(probe.peer_logs, "tools/call") if is_task(each.result)]
    names = {get_object(each.request, "params").get("name") for each in made if each.result.get("taskId") in ids}
    return [tool for tool in await task_tools(probe) if tool.get("name") in names]


@rule(
    "ext-tasks/keys",
    "must",
    case="all that tasks asked",
    needs=CAPABILITY,
    at=f"{PAGE}#task-update-requests",
    since=SINCE,
    cause="The key is the kind of the question, or is counted anew in each round: an old answer meets a new question.",
)
def ext_tasks_keys(logs: Sequence[MessageLog]) -> JudgedItems:
    """A key under which a task asks something stands for that one question, as long as there is the task."""
    asked: dict[tuple[str, str], Any] = {}
    for state in task_states(logs):
        for key, question in task_input_requests(state.task).items():
            yield
            before = asked.setdefault((preview_json(state.id), key), question)
            if before != question:
                raise state.received.violation(
                    f"the key {key!r} stood for another question before: {preview_json(before)}"
                )


@rule(
    "ext-tasks/answered-keys",
    "must",
    case="all that tasks asked, after it was answered",
    needs=CAPABILITY,
    at=f"{PAGE}#task-update-requests",
    since=SINCE,
    cause="The same step is run again after the answer, and asks under the same key.",
)
def ext_tasks_answered_keys(logs: Sequence[MessageLog]) -> JudgedItems:
    """A key whose answer was taken is not used again by the task."""
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
            raise state.received.violation(f"the key {again[0]!r} was answered, had gone, and is there again")
        open_[id] = now
    yield from taken


@rule(
    "ext-tasks/name-header",
    "must",
    case="tasks/get with another Mcp-Name",
    needs=CAPABILITY,
    at=(f"{PAGE}#streamable-http-routing-headers", "basic/transports/streamable-http#server-validation"),
    since=SINCE,
    over=HTTP,
    cause="The header is compared for tools, prompts and resources only: a proxy routes, or allows, by another task.",
)
async def ext_tasks_name_header(probe: Probe) -> None:
    """A request about a task whose Mcp-Name is another id than that in its body gets status 400 and error -32020."""
    message = build_request(probe, "tasks/get", {"taskId": probe.unknown_name})
    response = await probe.post(message, {"Mcp-Name": "accord-check-another"})
    require_refusal(probe, response, "tasks/get with another Mcp-Name", status=400, code=HEADER_MISMATCH)
