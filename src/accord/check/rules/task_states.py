"""Tasks (2025-11-25): their states, judged by all that was said of them.

Tasks (2025-11-25): requests about them that are in order, and others that are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.engine.rule import JudgedItems, NotApplicable, NotObserved, rule
from accord.check.probes.content import get_object, preview_json, time_fault
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import answered_requests, received_messages
from accord.check.probes.pending_answer import Answer
from accord.check.probes.probe import Probe
from accord.check.probes.tasks import (
    CAPABILITY,
    TASK_METHODS,
    TaskObservation,
    call_as_task,
    cancel_tasks,
    created_task_id,
    related_task_id,
    start_task,
    task_states,
)
from accord.errors import INVALID_PARAMS
from accord.messages.meta import RELATED_TASK

_PLACE = "basic/utilities/tasks"
_SINCE, _UNTIL = "2025-11-25", "2026-07-28"


@rule(
    "tasks/times",
    "must",
    case="all states of tasks",
    needs="tasks",
    at=f"{_PLACE}#ttl-and-resource-management",
    since=_SINCE,
    until=_UNTIL,
    cause="Seconds since 1970, or a local time without a zone.",
)
def tasks_times(logs: Sequence[MessageLog]) -> JudgedItems:
    """A task says when it was made and when it last changed, as times of ISO 8601 with their zone."""
    for state in task_states(logs):
        for name in ("createdAt", "lastUpdatedAt"):
            yield
            fault = time_fault(state.task.get(name), zoned=True)
            if fault:
                raise state.received.violation(f"{name} {fault}")


@rule(
    "tasks/final",
    "must",
    case="all states of tasks",
    needs="tasks",
    at=(f"{_PLACE}#task-status-lifecycle", f"{_PLACE}#task-cancellation"),
    since=_SINCE,
    until=_UNTIL,
    cause="Work that goes on after a cancellation writes its end over it.",
)
def tasks_final(logs: Sequence[MessageLog]) -> JudgedItems:
    """A task that is completed, failed or cancelled stays so."""
    over: dict[Any, TaskObservation] = {}
    for state in sorted(task_states(logs), key=lambda each: each.received.entry.at):
        yield
        # only what was asked after the end was heard: answers may overtake each other
        last = over.get(preview_json(state.id))
        if last is not None and state.requested_at > last.received.entry.at and state.status != last.status:
            raise state.received.violation(f"a task was {last.status}, and is {preview_json(state.status)} now")
        if state.is_final:
            over.setdefault(preview_json(state.id), state)


@rule(
    "tasks/cancel-finished",
    "must",
    case="all answers to tasks/cancel of tasks that were over",
    needs="tasks.cancel",
    at=(f"{_PLACE}#task-cancellation", f"{_PLACE}#protocol-errors"),
    since=_SINCE,
    until=_UNTIL,
    cause="The status is overwritten, or the cancellation is a success whatever it is for.",
)
def tasks_cancel_finished(logs: Sequence[MessageLog]) -> JudgedItems:
    """A task that is over cannot be cancelled: error -32602."""
    told = list(task_states(logs))
    for answered in answered_requests(logs, "tasks/cancel"):
        id = get_object(answered.request, "params").get("taskId")
        if any(
            state.id == id and state.is_final and state.received.entry.at < answered.request_entry.at for state in told
        ):
            yield
            error = answered.received.message.get("error")
            if get_object(error).get("code") != INVALID_PARAMS:
                raise answered.violation(f"it is answered with {preview_json(error or answered.result)}")


@rule(
    "tasks/failed-why",
    "should",
    case="all states of failed tasks",
    needs="tasks",
    at=f"{_PLACE}#task-execution-errors",
    since=_SINCE,
    until=_UNTIL,
)
def tasks_failed_why(logs: Sequence[MessageLog]) -> JudgedItems:
    """tasks/get says why a task has failed, in `statusMessage`."""
    for answered in answered_requests(logs, "tasks/get"):
        if get_object(answered.result).get("status") == "failed":
            yield
            if not answered.result.get("statusMessage"):
                raise answered.violation("it does not say why")


@rule(
    "tasks/named-once",
    "should",
    case="answers to tasks/get, tasks/list and tasks/cancel, and news of tasks",
    needs="tasks",
    at=(f"{_PLACE}#associating-task-related-messages", f"{_PLACE}#task-notifications"),
    since=_SINCE,
    until=_UNTIL,
)
def tasks_named_once(logs: Sequence[MessageLog]) -> JudgedItems:
    """What has the id of a task already does not name it in `_meta` again."""
    told = [each for each in received_messages(logs) if each.message.get("method") == "notifications/tasks/status"]
    given = answered_requests(logs, "tasks/get", "tasks/list", "tasks/cancel")
    for each in (*told, *(answered.received for answered in given if answered.result is not None)):
        yield
        if related_task_id(each.message) is not None:
            raise each.violation("it names a related task")


_SINCE, _UNTIL = "2025-11-25", "2026-07-28"
_AFTER = 1.0
"""Seconds in which work that was not stopped may come to its end."""


@rule(
    "tasks/unknown",
    "must",
    case="an id that nobody gave",
    needs="tasks",
    at=f"{_PLACE}#protocol-errors",
    since=_SINCE,
    until=_UNTIL,
    cause="The lookup fails with an internal error, or tasks/result waits for a task that never comes.",
)
async def tasks_unknown(probe: Probe) -> None:
    """A task that nobody has is refused with error -32602: by tasks/get, tasks/result and tasks/cancel."""
    for method in TASK_METHODS if probe.has_capability("tasks.cancel") else TASK_METHODS[:2]:
        _require_refused(
            probe, await probe.request(method, {"taskId": probe.unknown_name}), f"{method} of an unknown task"
        )


@rule(
    "tasks/cursor",
    "must",
    case="a cursor that nobody gave",
    needs="tasks.list",
    at=f"{_PLACE}#protocol-errors",
    since=_SINCE,
    until=_UNTIL,
    cause="Cursors are not looked at: the first page comes again, and clients that follow it never end.",
)
async def tasks_cursor(probe: Probe) -> None:
    """A cursor that the server never gave is refused by tasks/list with error -32602."""
    _require_refused(
        probe, await probe.request("tasks/list", {"cursor": probe.unknown_name}), "tasks/list with an unknown cursor"
    )


@rule(
    "tasks/listed",
    "must",
    case="a new task",
    kind="own",
    needs="tasks.list",
    calls=True,
    at=f"{_PLACE}#task-listing",
    since=_SINCE,
    until=_UNTIL,
    cause="The list shows the first page only, or only tasks that are over.",
)
async def tasks_listed(probe: Probe) -> None:
    """A task that can be looked at is in the list, on one of its pages."""
    _require_tasks(probe)
    _, id = await start_task(probe)
    listed = [
        get_object(task).get("taskId") for page in await probe.pages("tasks/list", "tasks") for task in page["tasks"]
    ]
    found = await probe.request("tasks/get", {"taskId": id})
    await cancel_tasks(probe, id)
    if found.error is None and id not in listed:
        raise probe.violation(f"the task {id!r} is there, and is not in the list")


@rule(
    "tasks/by-its-id",
    "must",
    case="tasks/get of one task, and another in `_meta`",
    kind="own",
    needs=CAPABILITY,
    calls=True,
    at=f"{_PLACE}#associating-task-related-messages",
    since=_SINCE,
    until=_UNTIL,
    cause="The related task in `_meta` is looked up before the params.",
)
async def tasks_by_its_id(probe: Probe) -> None:
    """Which task is meant is said by `taskId`, whatever `_meta` names."""
    tool, first = await start_task(probe)
    second = created_task_id(await call_as_task(probe, tool)) or probe.unknown_name
    answer = await probe.request("tasks/get", {"taskId": first}, meta={RELATED_TASK: {"taskId": second}})
    await cancel_tasks(probe, first, second)
    if answer.error is None and get_object(answer.result).get("taskId") != first:
        raise probe.violation(f"{first!r} was asked for, and what came is {preview_json(answer.result)}")


@rule(
    "tasks/cancelled",
    "must",
    case="a task that is at work",
    kind="own",
    needs="tasks.cancel",
    calls=True,
    at=f"{_PLACE}#task-cancellation",
    since=_SINCE,
    until=_UNTIL,
    cause="The work is told to stop, and the answer comes before it has: set the status first.",
)
async def tasks_cancelled(probe: Probe) -> None:
    """A task that is cancelled is `cancelled` when that is answered, and stays so."""
    _require_tasks(probe)
    _, id = await start_task(probe)
    answer = await probe.request("tasks/cancel", {"taskId": id})
    if answer.code == INVALID_PARAMS:
        raise NotObserved("it was over before it could be cancelled")
    if get_object(answer.result).get("status") != "cancelled":
        raise probe.violation(f"tasks/cancel is answered with {preview_json(answer.error or answer.result)}")
    await probe.wait_for_message(lambda message: message.get("method") == "notifications/tasks/status", _AFTER)
    later = await probe.request("tasks/get", {"taskId": id})
    if later.error is None and get_object(later.result).get("status") != "cancelled":  # it may be deleted
        raise probe.violation(f"a cancelled task is {preview_json(get_object(later.result).get('status'))} later")


def _require_tasks(probe: Probe) -> None:
    if not probe.has_capability(CAPABILITY):
        raise NotApplicable(f"it does not declare {CAPABILITY}")


def _require_refused(probe: Probe, answer: Answer, what: str) -> None:
    if answer.code != INVALID_PARAMS:
        raise probe.violation(f"{what} is answered with {preview_json(answer.error or answer.result)}")
