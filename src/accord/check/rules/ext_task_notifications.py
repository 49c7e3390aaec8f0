"""The tasks extension (2026-07-28): what is told of tasks on subscriptions."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.engine.rule import JudgedItems, NotApplicable, NotObserved, rule
from accord.check.probes.content import get_object, preview_json
from accord.check.probes.extension_tasks import (
    CAPABILITY,
    PAGE,
    SINCE,
    STATUS_NOTIFICATION,
    cancel_tasks,
    finish_task,
    is_task,
    start_request,
    start_task,
    state_fault,
    task_states,
)
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import id_key, received_messages
from accord.check.probes.pending_answer import PendingAnswer
from accord.check.probes.probe import Probe
from accord.check.probes.subscriptions import (
    requested_filters,
    subscription_id,
    subscription_notifications,
    wait_for_acknowledgment,
)
from accord.check.probes.tasks import TERMINAL_STATUSES
from accord.errors import METHOD_NOT_FOUND, MISSING_CLIENT_CAPABILITY
from accord.messages.base import JSONObject

_PLACE = f"{PAGE}#task-status-notifications"
_FORBIDDEN_NOTIFICATIONS = ("notifications/progress", "notifications/message")


@rule(
    "ext-tasks/listen-gated",
    "must",
    case="a subscription to a task, by a client that did not declare it",
    kind="own",
    needs=CAPABILITY,
    at=(_PLACE, f"{PAGE}#protocol-errors"),
    since=SINCE,
    cause="`taskIds` is not looked at, or whoever knows the id of a task may listen.",
)
async def ext_tasks_listen_gated(probe: Probe) -> None:
    """A subscription to tasks is refused with error -32021 to who does not declare the extension."""
    pending = _subscribe(probe, probe.unknown_name, probe.client_capabilities)
    entry = await probe.wait_for_message(lambda each: subscription_id(each) is not None or _answers(each, pending))
    entry = pending.future.result().message if pending.is_done else entry
    if entry is None:
        raise probe.violation("it is not answered", since=pending.since)
    error = get_object(entry, "error")
    if error.get("code") == METHOD_NOT_FOUND:
        raise NotApplicable("the server has no subscriptions")
    if error.get("code") != MISSING_CLIENT_CAPABILITY:
        raise probe.violation(f"it is answered with {preview_json(error or entry)}", since=pending.since)


@rule(
    "ext-tasks/granted",
    "must",
    case="a subscription to a new task",
    kind="own",
    needs=CAPABILITY,
    calls=True,
    at=(_PLACE, "basic/patterns/subscriptions#acknowledgment"),
    since=SINCE,
    cause="All tasks of the server are granted, or `taskIds` is given back as a flag.",
)
async def ext_tasks_granted(probe: Probe) -> None:
    """The tasks that a subscription is granted are among those which it wanted."""
    id = await start_task(probe)
    granted = await _granted_tasks(probe, id)
    await cancel_tasks(probe, id)
    if not isinstance(granted, list) or not set(map(repr, granted)) <= {repr(id)}:
        raise probe.violation(f"taskIds is {preview_json(granted)}, and {id!r} was wanted")


@rule(
    "ext-tasks/told",
    "should",
    case="a subscription to a new task, and its end",
    kind="own",
    needs=CAPABILITY,
    calls=True,
    at=_PLACE,
    since=SINCE,
    cause="Tasks are granted, and nothing is told of them: leave out of the acknowledgment what will not be told.",
)
async def ext_tasks_told(probe: Probe) -> None:
    """Who subscribed to a task, and was granted it, is told when it is over."""
    id = await start_task(probe)
    granted = await _granted_tasks(probe, id)
    if not isinstance(granted, list) or id not in granted:
        raise NotObserved("the server grants no news of tasks")
    since = len(probe.log.entries)
    await finish_task(probe, id)
    is_told = any(_reports_end(each, id) for each in probe.other_messages(since, None))
    if not is_told and await probe.wait_for_message(lambda each: _reports_end(each, id)) is None:
        raise probe.violation("a task is over, and its subscription is not told", since=since)


def _reports_end(message: JSONObject, id: str) -> bool:
    params = get_object(message, "params")
    return (
        message.get("method") == STATUS_NOTIFICATION
        and params.get("taskId") == id
        and params.get("status") in TERMINAL_STATUSES
    )


@rule(
    "ext-tasks/wanted-only",
    "must",
    case="all that was told of tasks",
    needs=CAPABILITY,
    at=(_PLACE, "basic/patterns/subscriptions#opening-a-stream"),
    since=SINCE,
    cause="News of all tasks go to all clients, as in 2025-11-25: whoever hears of a task gets its result as well.",
)
def ext_tasks_wanted_only(logs: Sequence[MessageLog]) -> JudgedItems:
    """What is told of a task bears the id of a subscription that wanted this task."""
    for log in logs:
        wishes = requested_filters(log)
        for each in received_messages([log]):
            if each.message.get("method") == STATUS_NOTIFICATION:
                yield
                wanted = wishes.get(id_key(subscription_id(each.message)), {}).get("taskIds")
                if get_object(each.message, "params").get("taskId") not in (wanted if isinstance(wanted, list) else ()):
                    raise each.violation("no subscription wanted to be told of this task")


@rule(
    "ext-tasks/news-whole",
    "must",
    case="all that was told of tasks",
    needs=CAPABILITY,
    at=_PLACE,
    since=SINCE,
    cause="Only the new status is told, as in 2025-11-25: the client has to ask again.",
)
def ext_tasks_news_whole(logs: Sequence[MessageLog]) -> JudgedItems:
    """What is told of a task is all that tasks/get would say: also its result, its error, or what it asks."""
    known = {preview_json(each.id): each.task for each in task_states(logs) if each.is_final and not is_task(each.task)}
    for each in received_messages(logs):
        if each.message.get("method") == STATUS_NOTIFICATION:
            yield
            params = get_object(each.message, "params")
            fault = state_fault(params, each.log.revision)
            if fault:
                raise each.violation(fault, symptom="ext-tasks/shapes")
            last = known.get(preview_json(params.get("taskId")))
            if last and params["status"] == last["status"] and _outcome(params) != _outcome(last):
                raise each.violation("tasks/get has another outcome of the task")


def _outcome(state: JSONObject) -> tuple[object, object]:
    return state.get("result"), state.get("error")


@rule(
    "ext-tasks/no-progress",
    "must",
    case="all that came on subscriptions to tasks",
    needs=CAPABILITY,
    at=_PLACE,
    since=SINCE,
    cause="Whatever the work says while it runs is sent where its state is: say it in `statusMessage`.",
)
def ext_tasks_no_progress(logs: Sequence[MessageLog]) -> JudgedItems:
    """On a subscription to tasks come no notifications of progress, and no logs."""
    for log in logs:
        wishes = {id: wish for id, wish in requested_filters(log).items() if wish.get("taskIds")}
        for told in subscription_notifications(log):
            if id_key(told.subscription_id) in wishes:
                yield
                if told.method in _FORBIDDEN_NOTIFICATIONS:
                    raise told.received.violation(f"{told.method} comes on a subscription to a task")


async def _granted_tasks(probe: Probe, id: str) -> object:
    """The tasks that are granted to a subscription to this one; none where the server has no subscriptions."""
    pending = _subscribe(probe, id, None)
    entry = await wait_for_acknowledgment(probe, pending)
    return get_object(entry, "params", "notifications").get("taskIds", [])


def _subscribe(probe: Probe, id: str, ours: JSONObject | None) -> PendingAnswer:
    return start_request(
        probe, "subscriptions/listen", {"notifications": {"taskIds": [id]}}, ours=ours, misbehaved=False
    )


def _answers(message: JSONObject, pending: PendingAnswer) -> bool:
    return "method" not in message and message.get("id") == pending.id
