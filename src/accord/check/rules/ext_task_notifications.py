"""The tasks extension (2026-07-28): subscriptions to tasks and their notifications."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.engine.rule import JudgedItems, NotApplicable, NotObserved
from accord.check.probes.content import get_object, preview_json
from accord.check.probes.extension_tasks import (
    PAGE,
    STATUS_NOTIFICATION,
    cancel_tasks,
    finish_task,
    is_task,
    start_request,
    start_task,
    state_fault,
    task_states,
)
from accord.check.probes.message_log import MessageLog, id_key
from accord.check.probes.message_reader import received_messages
from accord.check.probes.pending_answer import PendingAnswer
from accord.check.probes.probe import Probe
from accord.check.probes.subscriptions import (
    requested_filters,
    subscription_id,
    subscription_notifications,
    wait_for_acknowledgment,
)
from accord.check.rules.ext_tasks import ext_task_rule
from accord.errors import METHOD_NOT_FOUND, MISSING_CLIENT_CAPABILITY
from accord.messages.base import JSONObject
from accord.messages.tasks import TERMINAL_STATUSES

_PLACE = f"{PAGE}#task-status-notifications"
_FORBIDDEN_NOTIFICATIONS = ("notifications/progress", "notifications/message")


@ext_task_rule(
    "ext-tasks/listen-gated",
    "must",
    case="a subscription to a task by a client that did not declare the extension",
    kind="own",
    at=(_PLACE, f"{PAGE}#protocol-errors"),
    cause="`taskIds` is not read, or the id of a task is enough to subscribe.",
)
async def ext_tasks_listen_gated(probe: Probe) -> None:
    """A subscription to tasks without the declared extension returns error -32021."""
    pending = _subscribe(probe, probe.unknown_name, probe.client_capabilities)
    entry = await probe.wait_for_message(lambda each: subscription_id(each) is not None or _answers(each, pending))
    entry = pending.future.result().message if pending.is_done else entry
    if entry is None:
        raise probe.violation("no response", since=pending.since)
    error = get_object(entry, "error")
    if error.get("code") == METHOD_NOT_FOUND:
        raise NotApplicable("the server has no subscriptions")
    if error.get("code") != MISSING_CLIENT_CAPABILITY:
        raise probe.violation(f"the server answered with {preview_json(error or entry)}", since=pending.since)


@ext_task_rule(
    "ext-tasks/granted",
    "must",
    case="a subscription to a new task",
    kind="own",
    calls=True,
    at=(_PLACE, "basic/patterns/subscriptions#acknowledgment"),
    cause="The acknowledgment has all tasks of the server, or `taskIds` as a boolean.",
)
async def ext_tasks_granted(probe: Probe) -> None:
    """The acknowledged tasks of a subscription are among the requested ones."""
    id = await start_task(probe)
    granted = await _granted_tasks(probe, id)
    await cancel_tasks(probe, id)
    if not isinstance(granted, list) or not set(map(repr, granted)) <= {repr(id)}:
        raise probe.violation(f"taskIds is {preview_json(granted)}, but the request had {id!r}")


@ext_task_rule(
    "ext-tasks/told",
    "should",
    case="a subscription to a new task, and the end of the task",
    kind="own",
    calls=True,
    at=_PLACE,
    cause="The subscription is acknowledged, but no notification follows: acknowledge only what the server will send.",
)
async def ext_tasks_told(probe: Probe) -> None:
    """The subscriber of a task receives a notification when the task ends."""
    id = await start_task(probe)
    granted = await _granted_tasks(probe, id)
    if not isinstance(granted, list) or id not in granted:
        raise NotObserved("the server acknowledges no subscription to tasks")
    since = len(probe.log.entries)
    await finish_task(probe, id)
    is_told = any(_reports_end(each, id) for each in probe.other_messages(since, None))
    if not is_told and await probe.wait_for_message(lambda each: _reports_end(each, id)) is None:
        raise probe.violation("a task ended without a notification to its subscriber", since=since)


def _reports_end(message: JSONObject, id: str) -> bool:
    params = get_object(message, "params")
    return (
        message.get("method") == STATUS_NOTIFICATION
        and params.get("taskId") == id
        and params.get("status") in TERMINAL_STATUSES
    )


@ext_task_rule(
    "ext-tasks/wanted-only",
    "must",
    case="all notifications about tasks",
    at=(_PLACE, "basic/patterns/subscriptions#opening-a-stream"),
    cause="Notifications are sent to all clients, as in 2025-11-25: each of them receives the result as well.",
)
def ext_tasks_wanted_only(logs: Sequence[MessageLog]) -> JudgedItems:
    """A notification about a task has the id of a subscription to this task."""
    for log in logs:
        wishes = requested_filters(log)
        for each in received_messages([log]):
            if each.message.get("method") == STATUS_NOTIFICATION:
                yield
                wanted = wishes.get(id_key(subscription_id(each.message)), {}).get("taskIds")
                if get_object(each.message, "params").get("taskId") not in (wanted if isinstance(wanted, list) else ()):
                    raise each.violation("no subscription requested this task")


@ext_task_rule(
    "ext-tasks/news-whole",
    "must",
    case="all notifications about tasks",
    at=_PLACE,
    cause="Only the status is sent, as in 2025-11-25: the client has to send tasks/get.",
)
def ext_tasks_news_whole(logs: Sequence[MessageLog]) -> JudgedItems:
    """A notification about a task has all fields of tasks/get, with its result, its error or its input requests."""
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
                raise each.violation("tasks/get returns another outcome of the task")


def _outcome(state: JSONObject) -> tuple[object, object]:
    return state.get("result"), state.get("error")


@ext_task_rule(
    "ext-tasks/no-progress",
    "must",
    case="all messages on subscriptions to tasks",
    at=_PLACE,
    cause="All output of the task is sent to its subscribers: use `statusMessage`.",
)
def ext_tasks_no_progress(logs: Sequence[MessageLog]) -> JudgedItems:
    """A subscription to tasks carries no progress notifications and no log messages."""
    for log in logs:
        wishes = {id: wish for id, wish in requested_filters(log).items() if wish.get("taskIds")}
        for notification in subscription_notifications(log):
            if id_key(notification.subscription_id) in wishes:
                yield
                if notification.method in _FORBIDDEN_NOTIFICATIONS:
                    raise notification.received.violation(f"{notification.method} came on a subscription to a task")


async def _granted_tasks(probe: Probe, id: str) -> object:
    """Return the acknowledged tasks of a subscription to a task; none if the server has no subscriptions."""
    pending = _subscribe(probe, id, None)
    entry = await wait_for_acknowledgment(probe, pending)
    return get_object(entry, "params", "notifications").get("taskIds", [])


def _subscribe(probe: Probe, id: str, ours: JSONObject | None) -> PendingAnswer:
    return start_request(
        probe, "subscriptions/listen", {"notifications": {"taskIds": [id]}}, ours=ours, misbehaved=False
    )


def _answers(message: JSONObject, pending: PendingAnswer) -> bool:
    return "method" not in message and message.get("id") == pending.id
