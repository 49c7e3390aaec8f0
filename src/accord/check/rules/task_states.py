"""Tasks (2025-11-25): states, and requests about tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from accord.check.engine.rule import JudgedItems, NotApplicable, NotObserved
from accord.check.probes.content import get_object, preview_json, time_fault
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import answered_requests, received_messages
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
from accord.check.rules.tasks import task_rule
from accord.errors import INVALID_PARAMS
from accord.messages.meta import RELATED_TASK

_PLACE = "basic/utilities/tasks"


@task_rule(
    "tasks/times",
    "must",
    case="all states of tasks",
    needs="tasks",
    at=f"{_PLACE}#ttl-and-resource-management",
    cause="The value is in seconds since 1970, or a local time without a zone.",
)
def tasks_times(logs: Sequence[MessageLog]) -> JudgedItems:
    """A task has the times of its creation and of its last change, in ISO 8601 with a zone."""
    return judge_times(task_states(logs), zoned=True)


def judge_times(states: Iterable[TaskObservation], *, zoned: bool) -> JudgedItems:
    """Yield for each time of a task. Raises `Violation` if it is not in ISO 8601, or with `zoned` has no zone."""
    for state in states:
        for name in ("createdAt", "lastUpdatedAt"):
            yield
            fault = time_fault(state.task.get(name), zoned=zoned)
            if fault:
                raise state.received.violation(f"{name} {fault}")


@task_rule(
    "tasks/final",
    "must",
    case="all states of tasks",
    needs="tasks",
    at=(f"{_PLACE}#task-status-lifecycle", f"{_PLACE}#task-cancellation"),
    cause="The work continues after a cancellation, and overwrites the status.",
)
def tasks_final(logs: Sequence[MessageLog]) -> JudgedItems:
    """A task that is completed, failed or cancelled keeps its status."""
    over: dict[Any, TaskObservation] = {}
    for state in sorted(task_states(logs), key=lambda each: each.received.entry.at):
        yield
        # only what was asked after the end was heard: answers may overtake each other
        last = over.get(preview_json(state.id))
        if last is not None and state.requested_at > last.received.entry.at and state.status != last.status:
            raise state.received.violation(f"a task was {last.status}, and is now {preview_json(state.status)}")
        if state.is_final:
            over.setdefault(preview_json(state.id), state)


@task_rule(
    "tasks/cancel-finished",
    "must",
    case="all responses to tasks/cancel of tasks that have ended",
    needs="tasks.cancel",
    at=(f"{_PLACE}#task-cancellation", f"{_PLACE}#protocol-errors"),
    cause="The status is overwritten, or tasks/cancel always succeeds.",
)
def tasks_cancel_finished(logs: Sequence[MessageLog]) -> JudgedItems:
    """tasks/cancel of a task that has ended returns error -32602."""
    states = list(task_states(logs))
    for answered in answered_requests(logs, "tasks/cancel"):
        id = get_object(answered.request, "params").get("taskId")
        if any(
            state.id == id and state.is_final and state.received.entry.at < answered.request_entry.at
            for state in states
        ):
            yield
            error = answered.received.message.get("error")
            if get_object(error).get("code") != INVALID_PARAMS:
                raise answered.violation(f"the server answered with {preview_json(error or answered.result)}")


@task_rule(
    "tasks/failed-why",
    "should",
    case="all states of failed tasks",
    needs="tasks",
    at=f"{_PLACE}#task-execution-errors",
)
def tasks_failed_why(logs: Sequence[MessageLog]) -> JudgedItems:
    """tasks/get explains in `statusMessage` why a task failed."""
    for answered in answered_requests(logs, "tasks/get"):
        if get_object(answered.result).get("status") == "failed":
            yield
            if not answered.result.get("statusMessage"):
                raise answered.violation("a failed task has no statusMessage")


@task_rule(
    "tasks/named-once",
    "should",
    case="results of tasks/get, tasks/list and tasks/cancel, and status notifications",
    needs="tasks",
    at=(f"{_PLACE}#associating-task-related-messages", f"{_PLACE}#task-notifications"),
)
def tasks_named_once(logs: Sequence[MessageLog]) -> JudgedItems:
    """A message that has the id of a task does not repeat it in `_meta`."""
    notifications = [
        each for each in received_messages(logs) if each.message.get("method") == "notifications/tasks/status"
    ]
    given = answered_requests(logs, "tasks/get", "tasks/list", "tasks/cancel")
    for each in (*notifications, *(answered.received for answered in given if answered.result is not None)):
        yield
        if related_task_id(each.message) is not None:
            raise each.violation("the `_meta` names a related task")


_AFTER = 1.0
"""Seconds in which work that was not stopped may end."""


@task_rule(
    "tasks/unknown",
    "must",
    case="an unknown id",
    needs="tasks",
    at=f"{_PLACE}#protocol-errors",
    cause="The lookup fails with an internal error, or tasks/result waits for a task that does not exist.",
)
async def tasks_unknown(probe: Probe) -> None:
    """tasks/get, tasks/result and tasks/cancel of an unknown task return error -32602."""
    for method in TASK_METHODS if probe.has_capability("tasks.cancel") else TASK_METHODS[:2]:
        answer = await probe.request(method, {"taskId": probe.unknown_name})
        probe.require_error(answer, INVALID_PARAMS, f"{method} of an unknown task")


@task_rule(
    "tasks/cursor",
    "must",
    case="an unknown cursor",
    needs="tasks.list",
    at=f"{_PLACE}#protocol-errors",
    cause="Cursors are ignored: the first page is returned again, in an endless loop.",
)
async def tasks_cursor(probe: Probe) -> None:
    """tasks/list with an unknown cursor returns error -32602."""
    answer = await probe.request("tasks/list", {"cursor": probe.unknown_name})
    probe.require_error(answer, INVALID_PARAMS, "tasks/list with an unknown cursor")


@task_rule(
    "tasks/listed",
    "must",
    case="a new task",
    kind="own",
    needs="tasks.list",
    calls=True,
    at=f"{_PLACE}#task-listing",
    cause="The list has only the first page, or only tasks that have ended.",
)
async def tasks_listed(probe: Probe) -> None:
    """A task that tasks/get finds is on a page of tasks/list."""
    _require_tasks(probe)
    _, id = await start_task(probe)
    listed = [
        get_object(task).get("taskId") for page in await probe.pages("tasks/list", "tasks") for task in page["tasks"]
    ]
    found = await probe.request("tasks/get", {"taskId": id})
    await cancel_tasks(probe, id)
    if found.error is None and id not in listed:
        raise probe.violation(f"tasks/get finds the task {id!r}, but tasks/list does not")


@task_rule(
    "tasks/by-its-id",
    "must",
    case="tasks/get of one task, with another in `_meta`",
    kind="own",
    needs=CAPABILITY,
    calls=True,
    at=f"{_PLACE}#associating-task-related-messages",
    cause="The related task in `_meta` is used instead of the params.",
)
async def tasks_by_its_id(probe: Probe) -> None:
    """`taskId` identifies the task, whatever `_meta` names."""
    tool, first = await start_task(probe)
    second = created_task_id(await call_as_task(probe, tool)) or probe.unknown_name
    answer = await probe.request("tasks/get", {"taskId": first}, meta={RELATED_TASK: {"taskId": second}})
    await cancel_tasks(probe, first, second)
    if answer.error is None and get_object(answer.result).get("taskId") != first:
        raise probe.violation(f"tasks/get of {first!r} returned {preview_json(answer.result)}")


@task_rule(
    "tasks/cancelled",
    "must",
    case="a running task",
    kind="own",
    needs="tasks.cancel",
    calls=True,
    at=f"{_PLACE}#task-cancellation",
    cause="The work is cancelled, but the response is sent before it ends: set the status first.",
)
async def tasks_cancelled(probe: Probe) -> None:
    """tasks/cancel returns the status "cancelled", and the task keeps it."""
    _require_tasks(probe)
    _, id = await start_task(probe)
    answer = await probe.request("tasks/cancel", {"taskId": id})
    if answer.code == INVALID_PARAMS:
        raise NotObserved("the task ended before the cancellation")
    if get_object(answer.result).get("status") != "cancelled":
        raise probe.violation(f"tasks/cancel returned {preview_json(answer.error or answer.result)}")
    await probe.wait_for_message(lambda message: message.get("method") == "notifications/tasks/status", _AFTER)
    later = await probe.request("tasks/get", {"taskId": id})
    if later.error is None and get_object(later.result).get("status") != "cancelled":  # it may be deleted
        raise probe.violation(f"a cancelled task is {preview_json(get_object(later.result).get('status'))} later")


def _require_tasks(probe: Probe) -> None:
    if not probe.has_capability(CAPABILITY):
        raise NotApplicable(f"the server does not declare {CAPABILITY}")
