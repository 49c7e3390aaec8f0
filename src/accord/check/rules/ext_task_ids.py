"""The tasks extension (2026-07-28): ids of tasks, and how long a task is available."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from accord.check.engine.rule import LINE_TRANSPORTS, JudgedItems
from accord.check.probes.content import get_object, preview_json
from accord.check.probes.extension_tasks import (
    CAPABILITY,
    PAGE,
    TASK_METHODS,
    cancel_tasks,
    is_task,
    send_request,
    start_task,
    task_states,
)
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import AnsweredRequest, answered_requests
from accord.check.probes.probe import Probe
from accord.check.probes.tasks import TaskObservation
from accord.check.rules.ext_tasks import ext_task_rule
from accord.check.rules.tasks import require_unique_ids
from accord.errors import INVALID_PARAMS, METHOD_NOT_FOUND

_DIFFERENCE = 8
"""Minimum number of characters in which ids differ: 48 random bits in Base64."""
_DIGITS = 16
"""The same for ids of decimal digits."""


@ext_task_rule(
    "ext-tasks/unique-ids",
    "must",
    case="three tasks of one call",
    calls=True,
    at=PAGE,
    cause="The id is derived from the request id, or from the tool and its arguments, which can repeat.",
)
async def ext_tasks_unique_ids(probe: Probe) -> None:
    """Each task has a unique id."""
    ids = [await start_task(probe) for _ in range(3)]
    await cancel_tasks(probe, *ids)
    require_unique_ids(probe, ids)


@ext_task_rule(
    "ext-tasks/unguessable",
    "must",
    case="the ids of all new tasks",
    at=f"{PAGE}#security-considerations",
    cause="The id is a counter or a timestamp: use a random UUID, since the id may be enough to read the task.",
)
def ext_tasks_unguessable(logs: Sequence[MessageLog]) -> JudgedItems:
    """The id of a task cannot be guessed."""
    made = [each for each in answered_requests(logs, "tools/call") if is_task(each.result)]
    ids = {id: each for each in made if isinstance(id := each.result.get("taskId"), str)}
    start, end = _common_prefix_length(list(ids)), _common_prefix_length([id[::-1] for id in ids])
    for id, answered in ids.items():
        yield
        own = id[start : len(id) - end] if len(ids) > 1 else id
        if len(own) < (_DIGITS if own.isdigit() else _DIFFERENCE):
            raise answered.violation(f"the id {id!r} differs from others only in {own!r}")


def _common_prefix_length(ids: Sequence[str]) -> int:
    """Return the length of the longest prefix that all ids share."""
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*ids, strict=False)))


@ext_task_rule(
    "ext-tasks/durable",
    "must",
    case="the first tasks/get of each new task",
    at=f"{PAGE}#task-creation",
    cause="The task is stored later, by its own work, or in a store that other processes read with a delay.",
)
def ext_tasks_durable(logs: Sequence[MessageLog]) -> JudgedItems:
    """tasks/get finds a task as soon as the call has returned it."""
    for made, looks in _polled_tasks(logs):
        if looks:
            yield
            if _code(looks[0]) in (INVALID_PARAMS, METHOD_NOT_FOUND):
                about = (made.received.entry, looks[0].request_entry)
                raise looks[0].received.violation("a new task is not found", about=about)


@ext_task_rule(
    "ext-tasks/kept",
    "should",
    case="further tasks/get of each task, before its `ttlMs` has elapsed",
    at=f"{PAGE}#task-polling",
    cause="The task is deleted when its result was fetched: a client that lost its connection needs the result again.",
)
def ext_tasks_kept(logs: Sequence[MessageLog]) -> JudgedItems:
    """tasks/get finds a task until its `ttlMs` has elapsed, also when it has ended."""
    ends = _expiry_times(logs)
    for made, looks in _polled_tasks(logs):
        id = made.result.get("taskId")
        for look in looks[1:]:
            if look.request_entry.at < ends.get(preview_json(id), 0.0):
                yield
                if _code(look) == INVALID_PARAMS and _code(looks[0]) is None:
                    raise look.violation("a task was deleted before its ttlMs had elapsed")


def _expiry_times(logs: Sequence[MessageLog]) -> dict[str, float]:
    """Return the earliest time at which each task may be deleted, by the clock of the logs: `ttlMs` may change."""
    first: dict[str, TaskObservation] = {}
    found: dict[str, float] = {}
    for state in task_states(logs):
        made = first.setdefault(preview_json(state.id), state)
        ttl = state.task.get("ttlMs")
        if ttl is None or isinstance(ttl, int | float):
            end = float("inf") if ttl is None else made.requested_at + ttl / 1000
            found[preview_json(state.id)] = min(end, found.get(preview_json(state.id), end))
    return found


def _polled_tasks(logs: Sequence[MessageLog]) -> Iterator[tuple[AnsweredRequest, list[AnsweredRequest]]]:
    """Yield each call that became a task, with the tasks/get requests before its cancellation, in order: the
    specification does not say how long a cancelled task is available.
    """
    looks = sorted(answered_requests(logs, "tasks/get"), key=lambda each: each.request_entry.at)
    given_up = {_id(each): each.request_entry.at for each in answered_requests(logs, "tasks/cancel")}
    for made in answered_requests(logs, "tools/call"):
        if is_task(made.result):
            id = made.result.get("taskId")
            own = [each for each in looks if _id(each) == id and each.request_entry.at < given_up.get(id, float("inf"))]
            yield made, [each for each in own if each.request_entry.at > made.received.entry.at]


def _id(answered: AnsweredRequest) -> Any:
    return get_object(answered.request, "params").get("taskId")


def _code(answered: AnsweredRequest) -> Any:
    return get_object(answered.received.message, "error").get("code")


@ext_task_rule(
    "ext-tasks/unknown",
    "must",
    case="unknown ids",
    at=f"{PAGE}#protocol-errors",
    cause="The lookup fails with an internal error, or a task with another status is returned.",
)
async def ext_tasks_unknown(probe: Probe) -> None:
    """tasks/get of an unknown task returns error -32602."""
    for id in (probe.unknown_name, "786512e2-9e0d-44bd-8f29-789f320fe840"):
        await _require_refused(probe, "tasks/get", {"taskId": id})


@ext_tasks_unknown.case("no id, and a number", needs=CAPABILITY, over=LINE_TRANSPORTS)
async def ext_tasks_unknown_invalid_id(probe: Probe) -> None:
    for params in ({}, {"taskId": 7}):
        await _require_refused(probe, "tasks/get", params)


@ext_task_rule(
    "ext-tasks/unknown-changed",
    "should",
    case="an unknown id",
    at=(f"{PAGE}#protocol-errors", f"{PAGE}#task-update-requests", f"{PAGE}#task-cancellation"),
    cause="The request is acknowledged before the task is looked up.",
)
async def ext_tasks_unknown_changed(probe: Probe) -> None:
    """tasks/update and tasks/cancel of an unknown task return error -32602."""
    await _require_refused(probe, "tasks/update", {"taskId": probe.unknown_name, "inputResponses": {}})
    await _require_refused(probe, "tasks/cancel", {"taskId": probe.unknown_name})


@ext_task_rule(
    "ext-tasks/served",
    "must",
    case="requests for an unknown task",
    at=PAGE,
    cause="The extension is declared, but its handlers are missing, or have the method names of 2025-11-25.",
)
async def ext_tasks_served(probe: Probe) -> None:
    """A server that declares the extension has the methods tasks/get, tasks/update and tasks/cancel."""
    for method in TASK_METHODS:
        more: dict[str, Any] = {"inputResponses": {}} if method == "tasks/update" else {}
        answer = await send_request(probe, method, {"taskId": probe.unknown_name, **more}, misbehaved=True)
        if answer.code == METHOD_NOT_FOUND:
            raise probe.violation(f"{method} returned {preview_json(answer.error)}")


async def _require_refused(probe: Probe, method: str, params: dict[str, Any]) -> None:
    answer = await send_request(probe, method, params, misbehaved=True)
    probe.require_error(answer, INVALID_PARAMS, f"{method} with {preview_json(params)}")
