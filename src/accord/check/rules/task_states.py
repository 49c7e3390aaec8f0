"""Tasks (2025-11-25): their states, judged by all that was said of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.content import get_object, time_fault
from accord.check.message_log import MessageLog
from accord.check.message_reader import answered_requests, received_messages
from accord.check.rule import Rule
from accord.check.tasks import TaskObservation, related_task_id, task_states
from accord.check.values import preview_json
from accord.errors import INVALID_PARAMS

_PLACE = "basic/utilities/tasks"
_SINCE, _UNTIL = "2025-11-25", "2026-07-28"

TIMES = Rule(
    "tasks/times",
    "must",
    "A task says when it was made and when it last changed, as times of ISO 8601 with their zone.",
    at=f"{_PLACE}#ttl-and-resource-management",
    since=_SINCE,
    until=_UNTIL,
    cause="Seconds since 1970, or a local time without a zone.",
)


@TIMES.reading("all states of tasks", needs="tasks")
def read_times(records: Sequence[MessageLog]) -> int:
    judged = 0
    for state in task_states(records):
        for name in ("createdAt", "lastUpdatedAt"):
            judged += 1
            fault = time_fault(state.task.get(name), zoned=True)
            if fault:
                raise state.received.violation(f"{name} {fault}")
    return judged


FINAL = Rule(
    "tasks/final",
    "must",
    "A task that is completed, failed or cancelled stays so.",
    at=(f"{_PLACE}#task-status-lifecycle", f"{_PLACE}#task-cancellation"),
    since=_SINCE,
    until=_UNTIL,
    cause="Work that goes on after a cancellation writes its end over it.",
)


@FINAL.reading("all states of tasks", needs="tasks")
def read_final(records: Sequence[MessageLog]) -> int:
    judged = 0
    over: dict[Any, TaskObservation] = {}
    for state in sorted(task_states(records), key=lambda each: each.received.entry.at):
        judged += 1
        # only what was asked after the end was heard: answers may overtake each other
        last = over.get(preview_json(state.id))
        if last is not None and state.requested_at > last.received.entry.at and state.status != last.status:
            raise state.received.violation(f"a task was {last.status}, and is {preview_json(state.status)} now")
        if state.is_final:
            over.setdefault(preview_json(state.id), state)
    return judged


CANCEL_FINISHED = Rule(
    "tasks/cancel-finished",
    "must",
    "A task that is over cannot be cancelled: error -32602.",
    at=(f"{_PLACE}#task-cancellation", f"{_PLACE}#protocol-errors"),
    since=_SINCE,
    until=_UNTIL,
    cause="The status is overwritten, or the cancellation is a success whatever it is for.",
)


@CANCEL_FINISHED.reading("all answers to tasks/cancel of tasks that were over", needs="tasks.cancel")
def read_cancel_finished(records: Sequence[MessageLog]) -> int:
    judged = 0
    told = list(task_states(records))
    for answered in answered_requests(records, "tasks/cancel"):
        id = get_object(answered.request, "params").get("taskId")
        if any(
            state.id == id and state.is_final and state.received.entry.at < answered.request_entry.at for state in told
        ):
            judged += 1
            error = answered.received.message.get("error")
            if get_object(error).get("code") != INVALID_PARAMS:
                raise answered.violation(f"it is answered with {preview_json(error or answered.result)}")
    return judged


FAILED_WHY = Rule(
    "tasks/failed-why",
    "should",
    "tasks/get says why a task has failed, in `statusMessage`.",
    at=f"{_PLACE}#task-execution-errors",
    since=_SINCE,
    until=_UNTIL,
)


@FAILED_WHY.reading("all states of failed tasks", needs="tasks")
def read_failed_why(records: Sequence[MessageLog]) -> int:
    judged = 0
    for answered in answered_requests(records, "tasks/get"):
        if get_object(answered.result).get("status") == "failed":
            judged += 1
            if not answered.result.get("statusMessage"):
                raise answered.violation("it does not say why")
    return judged


NAMED_ONCE = Rule(
    "tasks/named-once",
    "should",
    "What has the id of a task already does not name it in `_meta` again.",
    at=(f"{_PLACE}#associating-task-related-messages", f"{_PLACE}#task-notifications"),
    since=_SINCE,
    until=_UNTIL,
)


@NAMED_ONCE.reading("answers to tasks/get, tasks/list and tasks/cancel, and news of tasks", needs="tasks")
def read_named_once(records: Sequence[MessageLog]) -> int:
    judged = 0
    told = [each for each in received_messages(records) if each.message.get("method") == "notifications/tasks/status"]
    given = answered_requests(records, "tasks/get", "tasks/list", "tasks/cancel")
    for each in (*told, *(answered.received for answered in given if answered.result is not None)):
        judged += 1
        if related_task_id(each.message) is not None:
            raise each.violation("it names a related task")
    return judged
