"""Tasks (2025-11-25): requests about them that are in order, and others that are refused."""

from __future__ import annotations

from accord.check.content import get_object
from accord.check.pending_answer import Answer
from accord.check.probe import Probe
from accord.check.rule import NotApplicable, NotObserved, Rule
from accord.check.tasks import CAPABILITY, TASK_METHODS, call_as_task, cancel_tasks, created_task_id, start_task
from accord.check.values import preview_json
from accord.errors import INVALID_PARAMS
from accord.messages.meta import RELATED_TASK

_PLACE = "basic/utilities/tasks"
_SINCE, _UNTIL = "2025-11-25", "2026-07-28"
_AFTER = 1.0
"""Seconds in which work that was not stopped may come to its end."""

UNKNOWN = Rule(
    "tasks/unknown",
    "must",
    "A task that nobody has is refused with error -32602: by tasks/get, tasks/result and tasks/cancel.",
    at=f"{_PLACE}#protocol-errors",
    since=_SINCE,
    until=_UNTIL,
    cause="The lookup fails with an internal error, or tasks/result waits for a task that never comes.",
)


@UNKNOWN.case("an id that nobody gave", needs="tasks")
async def check_unknown(talk: Probe) -> None:
    for method in TASK_METHODS if talk.has_capability("tasks.cancel") else TASK_METHODS[:2]:
        _require_refused(
            talk, await talk.request(method, {"taskId": talk.unknown_name}), f"{method} of an unknown task"
        )


CURSOR = Rule(
    "tasks/cursor",
    "must",
    "A cursor that the server never gave is refused by tasks/list with error -32602.",
    at=f"{_PLACE}#protocol-errors",
    since=_SINCE,
    until=_UNTIL,
    cause="Cursors are not looked at: the first page comes again, and clients that follow it never end.",
)


@CURSOR.case("a cursor that nobody gave", needs="tasks.list")
async def check_cursor(talk: Probe) -> None:
    _require_refused(
        talk, await talk.request("tasks/list", {"cursor": talk.unknown_name}), "tasks/list with an unknown cursor"
    )


LISTED = Rule(
    "tasks/listed",
    "must",
    "A task that can be looked at is in the list, on one of its pages.",
    at=f"{_PLACE}#task-listing",
    since=_SINCE,
    until=_UNTIL,
    cause="The list shows the first page only, or only tasks that are over.",
)


@LISTED.case("a new task", kind="own", needs="tasks.list", calls=True)
async def check_listed(talk: Probe) -> None:
    _require_tasks(talk)
    _, id = await start_task(talk)
    listed = [
        get_object(task).get("taskId") for page in await talk.pages("tasks/list", "tasks") for task in page["tasks"]
    ]
    found = await talk.request("tasks/get", {"taskId": id})
    await cancel_tasks(talk, id)
    if found.error is None and id not in listed:
        raise talk.violation(f"the task {id!r} is there, and is not in the list")


BY_ITS_ID = Rule(
    "tasks/by-its-id",
    "must",
    "Which task is meant is said by `taskId`, whatever `_meta` names.",
    at=f"{_PLACE}#associating-task-related-messages",
    since=_SINCE,
    until=_UNTIL,
    cause="The related task in `_meta` is looked up before the params.",
)


@BY_ITS_ID.case("tasks/get of one task, and another in `_meta`", kind="own", needs=CAPABILITY, calls=True)
async def check_by_its_id(talk: Probe) -> None:
    tool, first = await start_task(talk)
    second = created_task_id(await call_as_task(talk, tool)) or talk.unknown_name
    answer = await talk.request("tasks/get", {"taskId": first}, meta={RELATED_TASK: {"taskId": second}})
    await cancel_tasks(talk, first, second)
    if answer.error is None and get_object(answer.result).get("taskId") != first:
        raise talk.violation(f"{first!r} was asked for, and what came is {preview_json(answer.result)}")


CANCELLED = Rule(
    "tasks/cancelled",
    "must",
    "A task that is cancelled is `cancelled` when that is answered, and stays so.",
    at=f"{_PLACE}#task-cancellation",
    since=_SINCE,
    until=_UNTIL,
    cause="The work is told to stop, and the answer comes before it has: set the status first.",
)


@CANCELLED.case("a task that is at work", kind="own", needs="tasks.cancel", calls=True)
async def check_cancelled(talk: Probe) -> None:
    _require_tasks(talk)
    _, id = await start_task(talk)
    answer = await talk.request("tasks/cancel", {"taskId": id})
    if answer.code == INVALID_PARAMS:
        raise NotObserved("it was over before it could be cancelled")
    if get_object(answer.result).get("status") != "cancelled":
        raise talk.violation(f"tasks/cancel is answered with {preview_json(answer.error or answer.result)}")
    await talk.wait_for_message(lambda message: message.get("method") == "notifications/tasks/status", _AFTER)
    later = await talk.request("tasks/get", {"taskId": id})
    if later.error is None and get_object(later.result).get("status") != "cancelled":  # it may be deleted
        raise talk.violation(f"a cancelled task is {preview_json(get_object(later.result).get('status'))} later")


def _require_tasks(talk: Probe) -> None:
    if not talk.has_capability(CAPABILITY):
        raise NotApplicable(f"it does not declare {CAPABILITY}")


def _require_refused(talk: Probe, answer: Answer, what: str) -> None:
    if answer.code != INVALID_PARAMS:
        raise talk.violation(f"{what} is answered with {preview_json(answer.error or answer.result)}")
