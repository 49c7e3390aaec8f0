"""Tasks (2025-11-25): their states, judged by all that was said of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.blocks import inside, time_fault
from accord.check.reading import answers, heard
from accord.check.record import Record
from accord.check.rule import Rule
from accord.check.tasked import State, related, states
from accord.check.values import shown
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
def _(records: Sequence[Record]) -> int:
    judged = 0
    for state in states(records):
        for name in ("createdAt", "lastUpdatedAt"):
            judged += 1
            fault = time_fault(state.task.get(name), zoned=True)
            if fault:
                raise state.heard.broken(f"{name} {fault}")
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
def _(records: Sequence[Record]) -> int:
    judged = 0
    over: dict[Any, State] = {}
    for state in sorted(states(records), key=lambda each: each.heard.said.at):
        judged += 1
        # only what was asked after the end was heard: answers may overtake each other
        last = over.get(shown(state.id))
        if last is not None and state.asked > last.heard.said.at and state.status != last.status:
            raise state.heard.broken(f"a task was {last.status}, and is {shown(state.status)} now")
        if state.is_final:
            over.setdefault(shown(state.id), state)
    return judged


TOO_LATE = Rule(
    "tasks/cancel-finished",
    "must",
    "A task that is over cannot be cancelled: error -32602.",
    at=(f"{_PLACE}#task-cancellation", f"{_PLACE}#protocol-errors"),
    since=_SINCE,
    until=_UNTIL,
    cause="The status is overwritten, or the cancellation is a success whatever it is for.",
)


@TOO_LATE.reading("all answers to tasks/cancel of tasks that were over", needs="tasks.cancel")
def _(records: Sequence[Record]) -> int:
    judged = 0
    told = list(states(records))
    for answered in answers(records, "tasks/cancel"):
        id = inside(answered.request, "params").get("taskId")
        if any(state.id == id and state.is_final and state.heard.said.at < answered.asked.at for state in told):
            judged += 1
            error = answered.heard.message.get("error")
            if inside(error).get("code") != INVALID_PARAMS:
                raise answered.broken(f"it is answered with {shown(error or answered.result)}")
    return judged


WHY = Rule(
    "tasks/failed-why",
    "should",
    "tasks/get says why a task has failed, in `statusMessage`.",
    at=f"{_PLACE}#task-execution-errors",
    since=_SINCE,
    until=_UNTIL,
)


@WHY.reading("all states of failed tasks", needs="tasks")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for answered in answers(records, "tasks/get"):
        if inside(answered.result).get("status") == "failed":
            judged += 1
            if not answered.result.get("statusMessage"):
                raise answered.broken("it does not say why")
    return judged


UNRELATED = Rule(
    "tasks/named-once",
    "should",
    "What has the id of a task already does not name it in `_meta` again.",
    at=(f"{_PLACE}#associating-task-related-messages", f"{_PLACE}#task-notifications"),
    since=_SINCE,
    until=_UNTIL,
)


@UNRELATED.reading("answers to tasks/get, tasks/list and tasks/cancel, and news of tasks", needs="tasks")
def _(records: Sequence[Record]) -> int:
    judged = 0
    told = [each for each in heard(records) if each.message.get("method") == "notifications/tasks/status"]
    given = answers(records, "tasks/get", "tasks/list", "tasks/cancel")
    for each in (*told, *(answered.heard for answered in given if answered.result is not None)):
        judged += 1
        if related(each.message) is not None:
            raise each.broken("it names a related task")
    return judged
