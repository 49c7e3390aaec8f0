"""The tasks extension (2026-07-28): what is told of tasks on subscriptions."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.blocks import inside
from accord.check.extension_shapes import state_fault
from accord.check.extension_tasks import (
    CAPABILITY,
    NEWS,
    PAGE,
    SINCE,
    begin,
    begun,
    ended,
    give_up,
    is_task,
    states,
)
from accord.check.listening import acknowledgment, all_told, subscription_of, wishes_of
from accord.check.reading import heard, key
from accord.check.record import Record
from accord.check.rule import NotApplicable, NotObserved, Rule
from accord.check.talk import Talk
from accord.check.tasked import FINISHED
from accord.check.values import shown
from accord.check.waiting import Pending
from accord.errors import METHOD_NOT_FOUND, MISSING_CLIENT_CAPABILITY
from accord.messages.base import JSONObject

_PLACE = f"{PAGE}#task-status-notifications"
_NO_NEWS = ("notifications/progress", "notifications/message")

GATED = Rule(
    "ext-tasks/listen-gated",
    "must",
    "A subscription to tasks is refused with error -32021 to who does not declare the extension.",
    at=(_PLACE, f"{PAGE}#protocol-errors"),
    since=SINCE,
    cause="`taskIds` is not looked at, or whoever knows the id of a task may listen.",
)


@GATED.case("a subscription to a task, by a client that did not declare it", kind="own", needs=CAPABILITY)
async def _(talk: Talk) -> None:
    pending = _subscribe(talk, talk.nobody, talk.declared)
    said = await talk.hear(lambda each: subscription_of(each) is not None or _answers(each, pending))
    said = pending.future.result().message if pending.arrived else said
    if said is None:
        raise talk.broken("it is not answered", since=pending.since)
    error = inside(said, "error")
    if error.get("code") == METHOD_NOT_FOUND:
        raise NotApplicable("the server has no subscriptions")
    if error.get("code") != MISSING_CLIENT_CAPABILITY:
        raise talk.broken(f"it is answered with {shown(error or said)}", since=pending.since)


GRANTED = Rule(
    "ext-tasks/granted",
    "must",
    "The tasks that a subscription is granted are among those which it wanted.",
    at=(_PLACE, "basic/patterns/subscriptions#acknowledgment"),
    since=SINCE,
    cause="All tasks of the server are granted, or `taskIds` is given back as a flag.",
)


@GRANTED.case("a subscription to a new task", kind="own", needs=CAPABILITY, calls=True)
async def _(talk: Talk) -> None:
    id = await begun(talk)
    granted = await _granted(talk, id)
    await give_up(talk, id)
    if not isinstance(granted, list) or not set(map(repr, granted)) <= {repr(id)}:
        raise talk.broken(f"taskIds is {shown(granted)}, and {id!r} was wanted")


TOLD = Rule(
    "ext-tasks/told",
    "should",
    "Who subscribed to a task, and was granted it, is told when it is over.",
    at=_PLACE,
    since=SINCE,
    cause="Tasks are granted, and nothing is told of them: leave out of the acknowledgment what will not be told.",
)


@TOLD.case("a subscription to a new task, and its end", kind="own", needs=CAPABILITY, calls=True)
async def _(talk: Talk) -> None:
    id = await begun(talk)
    granted = await _granted(talk, id)
    if not isinstance(granted, list) or id not in granted:
        raise NotObserved("the server grants no news of tasks")
    since = len(talk.record.entries)
    await ended(talk, id)
    is_told = any(_tells_end(each, id) for each in talk.others(since, None))
    if not is_told and await talk.hear(lambda each: _tells_end(each, id)) is None:
        raise talk.broken("a task is over, and its subscription is not told", since=since)


def _tells_end(message: JSONObject, id: str) -> bool:
    params = inside(message, "params")
    return message.get("method") == NEWS and params.get("taskId") == id and params.get("status") in FINISHED


WANTED = Rule(
    "ext-tasks/wanted-only",
    "must",
    "What is told of a task bears the id of a subscription that wanted this task.",
    at=(_PLACE, "basic/patterns/subscriptions#opening-a-stream"),
    since=SINCE,
    cause="News of all tasks go to all clients, as in 2025-11-25: whoever hears of a task gets its result as well.",
)


@WANTED.reading("all that was told of tasks", needs=CAPABILITY)
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        wishes = wishes_of(record)
        for each in heard([record]):
            if each.message.get("method") == NEWS:
                judged += 1
                wanted = wishes.get(key(subscription_of(each.message)), {}).get("taskIds")
                if inside(each.message, "params").get("taskId") not in (wanted if isinstance(wanted, list) else ()):
                    raise each.broken("no subscription wanted to be told of this task")
    return judged


WHOLE = Rule(
    "ext-tasks/news-whole",
    "must",
    "What is told of a task is all that tasks/get would say: also its result, its error, or what it asks.",
    at=_PLACE,
    since=SINCE,
    cause="Only the new status is told, as in 2025-11-25: the client has to ask again.",
)


@WHOLE.reading("all that was told of tasks", needs=CAPABILITY)
def _(records: Sequence[Record]) -> int:
    judged = 0
    known = {shown(each.id): each.task for each in states(records) if each.is_final and not is_task(each.task)}
    for each in heard(records):
        if each.message.get("method") == NEWS:
            judged += 1
            params = inside(each.message, "params")
            fault = state_fault(params, each.record.revision)
            if fault:
                raise each.broken(fault, symptom="ext-tasks/shapes")
            last = known.get(shown(params.get("taskId")))
            if last and params["status"] == last["status"] and _outcome(params) != _outcome(last):
                raise each.broken("tasks/get has another outcome of the task")
    return judged


def _outcome(state: JSONObject) -> tuple[object, object]:
    return state.get("result"), state.get("error")


QUIET = Rule(
    "ext-tasks/no-progress",
    "must",
    "On a subscription to tasks come no notifications of progress, and no logs.",
    at=_PLACE,
    since=SINCE,
    cause="Whatever the work says while it runs is sent where its state is: say it in `statusMessage`.",
)


@QUIET.reading("all that came on subscriptions to tasks", needs=CAPABILITY)
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        wishes = {id: wish for id, wish in wishes_of(record).items() if wish.get("taskIds")}
        for told in all_told(record):
            if key(told.id) in wishes:
                judged += 1
                if told.method in _NO_NEWS:
                    raise told.heard.broken(f"{told.method} comes on a subscription to a task")
    return judged


async def _granted(talk: Talk, id: str) -> object:
    """The tasks that are granted to a subscription to this one; none where the server has no subscriptions."""
    pending = _subscribe(talk, id, None)
    said = await acknowledgment(talk, pending)
    return inside(said, "params", "notifications").get("taskIds", [])


def _subscribe(talk: Talk, id: str, ours: JSONObject | None) -> Pending:
    return begin(talk, "subscriptions/listen", {"notifications": {"taskIds": [id]}}, ours=ours, misbehaved=False)


def _answers(message: JSONObject, pending: Pending) -> bool:
    return "method" not in message and message.get("id") == pending.id
