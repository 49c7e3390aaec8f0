"""Tasks (2025-11-25): requests about them that are in order, and others that are refused."""

from __future__ import annotations

from accord.check.blocks import inside
from accord.check.rule import NotApplicable, NotObserved, Rule
from accord.check.talk import Talk
from accord.check.tasked import CAPABILITY, TASK_METHODS, call_as_task, created, give_up, task_id
from accord.check.values import shown
from accord.check.waiting import Answer
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
async def _(talk: Talk) -> None:
    for method in TASK_METHODS if talk.has("tasks.cancel") else TASK_METHODS[:2]:
        _refused(talk, await talk.request(method, {"taskId": talk.nobody}), f"{method} of an unknown task")


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
async def _(talk: Talk) -> None:
    _refused(talk, await talk.request("tasks/list", {"cursor": talk.nobody}), "tasks/list with an unknown cursor")


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
async def _(talk: Talk) -> None:
    _makes_tasks(talk)
    _, id = await created(talk)
    listed = [inside(task).get("taskId") for page in await talk.pages("tasks/list", "tasks") for task in page["tasks"]]
    found = await talk.request("tasks/get", {"taskId": id})
    await give_up(talk, id)
    if found.error is None and id not in listed:
        raise talk.broken(f"the task {id!r} is there, and is not in the list")


SOURCE = Rule(
    "tasks/by-its-id",
    "must",
    "Which task is meant is said by `taskId`, whatever `_meta` names.",
    at=f"{_PLACE}#associating-task-related-messages",
    since=_SINCE,
    until=_UNTIL,
    cause="The related task in `_meta` is looked up before the params.",
)


@SOURCE.case("tasks/get of one task, and another in `_meta`", kind="own", needs=CAPABILITY, calls=True)
async def _(talk: Talk) -> None:
    tool, first = await created(talk)
    second = task_id(await call_as_task(talk, tool)) or talk.nobody
    answer = await talk.request("tasks/get", {"taskId": first}, meta={RELATED_TASK: {"taskId": second}})
    await give_up(talk, first, second)
    if answer.error is None and inside(answer.result).get("taskId") != first:
        raise talk.broken(f"{first!r} was asked for, and what came is {shown(answer.result)}")


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
async def _(talk: Talk) -> None:
    _makes_tasks(talk)
    _, id = await created(talk)
    answer = await talk.request("tasks/cancel", {"taskId": id})
    if answer.code == INVALID_PARAMS:
        raise NotObserved("it was over before it could be cancelled")
    if inside(answer.result).get("status") != "cancelled":
        raise talk.broken(f"tasks/cancel is answered with {shown(answer.error or answer.result)}")
    await talk.hear(lambda message: message.get("method") == "notifications/tasks/status", _AFTER)
    later = await talk.request("tasks/get", {"taskId": id})
    if later.error is None and inside(later.result).get("status") != "cancelled":  # it may be deleted
        raise talk.broken(f"a cancelled task is {shown(inside(later.result).get('status'))} later")


def _makes_tasks(talk: Talk) -> None:
    if not talk.has(CAPABILITY):
        raise NotApplicable(f"it does not declare {CAPABILITY}")


def _refused(talk: Talk, answer: Answer, what: str) -> None:
    if answer.code != INVALID_PARAMS:
        raise talk.broken(f"{what} is answered with {shown(answer.error or answer.result)}")
