"""The tasks extension (2026-07-28): ids of tasks, and how long a task is found by its id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from accord.check.engine.rule import LINE_TRANSPORTS, Rule
from accord.check.probes.content import get_object, preview_json
from accord.check.probes.extension_tasks import (
    CAPABILITY,
    PAGE,
    SINCE,
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
from accord.errors import INVALID_PARAMS, METHOD_NOT_FOUND

_DIFFERENCE = 8
"""Characters in which ids differ, at least: 48 random bits have as many in Base64."""
_DIGITS = 16
"""The same for ids that consist of digits."""

UNIQUE_IDS = Rule(
    "ext-tasks/unique-ids",
    "must",
    "Each task has an id of its own.",
    at=PAGE,
    since=SINCE,
    cause="The id is made of the request id, or of the name of the tool and its arguments, which come again.",
)


@UNIQUE_IDS.case("three tasks of one call", needs=CAPABILITY, calls=True)
async def check_unique_ids(talk: Probe) -> None:
    ids = [await start_task(talk) for _ in range(3)]
    await cancel_tasks(talk, *ids)
    if len(set(ids)) < len(ids):
        raise talk.violation(f"two tasks have the id {max(ids, key=ids.count)!r}")


UNGUESSABLE = Rule(
    "ext-tasks/unguessable",
    "must",
    "Nobody can guess the id of a task.",
    at=f"{PAGE}#security-considerations",
    since=SINCE,
    cause="Tasks are counted, or named by the time: take a random UUID, since whoever knows an id may get at the task.",
)


@UNGUESSABLE.reading("the ids of all new tasks", needs=CAPABILITY)
def read_unguessable(records: Sequence[MessageLog]) -> int:
    made = [each for each in answered_requests(records, "tools/call") if is_task(each.result)]
    ids = {id: each for each in made if isinstance(id := each.result.get("taskId"), str)}
    start, end = _common_prefix_length(list(ids)), _common_prefix_length([id[::-1] for id in ids])
    for id, answered in ids.items():
        own = id[start : len(id) - end] if len(ids) > 1 else id
        if len(own) < (_DIGITS if own.isdigit() else _DIFFERENCE):
            raise answered.violation(f"of the id {id!r} only {own!r} is not the same for all")
    return len(ids)


def _common_prefix_length(ids: Sequence[str]) -> int:
    """Return the length of the longest prefix that all ids share."""
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*ids, strict=False)))


DURABLE = Rule(
    "ext-tasks/durable",
    "must",
    "A task can be looked at as soon as the call that became it is answered.",
    at=f"{PAGE}#task-creation",
    since=SINCE,
    cause="The task is stored by the work itself, which begins later, or in a store that other processes see later.",
)


@DURABLE.reading("the first look at each new task", needs=CAPABILITY)
def read_durable(records: Sequence[MessageLog]) -> int:
    judged = 0
    for made, looks in _polled_tasks(records):
        judged += bool(looks)
        if looks and _code(looks[0]) in (INVALID_PARAMS, METHOD_NOT_FOUND):
            about = (made.received.entry, looks[0].request_entry)
            raise looks[0].received.violation("a new task is not found", about=about)
    return judged


KEPT = Rule(
    "ext-tasks/kept",
    "should",
    "A task is found until its time is over (`ttlMs`), also when it is done.",
    at=f"{PAGE}#task-polling",
    since=SINCE,
    cause="It is deleted when its result was fetched: a client whose connection broke comes back for it.",
)


@KEPT.reading("the other looks at each task, before its time is over", needs=CAPABILITY)
def read_kept(records: Sequence[MessageLog]) -> int:
    judged = 0
    ends = _expiry_times(records)
    for made, looks in _polled_tasks(records):
        id = made.result.get("taskId")
        for look in looks[1:]:
            if look.request_entry.at < ends.get(preview_json(id), 0.0):
                judged += 1
                if _code(look) == INVALID_PARAMS and _code(looks[0]) is None:
                    raise look.violation("a task is gone before its time is over")
    return judged


def _expiry_times(records: Sequence[MessageLog]) -> dict[str, float]:
    """When each task may be deleted, at the soonest, by the clock of the records: `ttlMs` may change."""
    first: dict[str, TaskObservation] = {}
    found: dict[str, float] = {}
    for state in task_states(records):
        made = first.setdefault(preview_json(state.id), state)
        ttl = state.task.get("ttlMs")
        if ttl is None or isinstance(ttl, int | float):
            end = float("inf") if ttl is None else made.requested_at + ttl / 1000
            found[preview_json(state.id)] = min(end, found.get(preview_json(state.id), end))
    return found


def _polled_tasks(records: Sequence[MessageLog]) -> Iterator[tuple[AnsweredRequest, list[AnsweredRequest]]]:
    """Each call that became a task, and the looks at it before we gave it up, in order: nothing is said of how long a
    cancelled task is found.
    """
    looks = sorted(answered_requests(records, "tasks/get"), key=lambda each: each.request_entry.at)
    given_up = {_id(each): each.request_entry.at for each in answered_requests(records, "tasks/cancel")}
    for made in answered_requests(records, "tools/call"):
        if is_task(made.result):
            id = made.result.get("taskId")
            own = [each for each in looks if _id(each) == id and each.request_entry.at < given_up.get(id, float("inf"))]
            yield made, [each for each in own if each.request_entry.at > made.received.entry.at]


def _id(answered: AnsweredRequest) -> Any:
    return get_object(answered.request, "params").get("taskId")


def _code(answered: AnsweredRequest) -> Any:
    return get_object(answered.received.message, "error").get("code")


UNKNOWN = Rule(
    "ext-tasks/unknown",
    "must",
    "tasks/get of a task that nobody has is refused with error -32602.",
    at=f"{PAGE}#protocol-errors",
    since=SINCE,
    cause="The lookup fails with an internal error, or a task of another state is made up.",
)


@UNKNOWN.case("ids that nobody gave", needs=CAPABILITY)
async def check_unknown_ids_nobody_gave(talk: Probe) -> None:
    for id in (talk.unknown_name, "786512e2-9e0d-44bd-8f29-789f320fe840"):
        await _require_refused(talk, "tasks/get", {"taskId": id})


@UNKNOWN.case("no id, and a number", needs=CAPABILITY, over=LINE_TRANSPORTS)
async def check_unknown_id_number(talk: Probe) -> None:
    for params in ({}, {"taskId": 7}):
        await _require_refused(talk, "tasks/get", params)


UNKNOWN_CHANGED = Rule(
    "ext-tasks/unknown-changed",
    "should",
    "tasks/update and tasks/cancel of a task that nobody has are refused with error -32602.",
    at=(f"{PAGE}#protocol-errors", f"{PAGE}#task-update-requests", f"{PAGE}#task-cancellation"),
    since=SINCE,
    cause="They are acknowledged before the task is looked for.",
)


@UNKNOWN_CHANGED.case("an id that nobody gave", needs=CAPABILITY)
async def check_unknown_changed(talk: Probe) -> None:
    await _require_refused(talk, "tasks/update", {"taskId": talk.unknown_name, "inputResponses": {}})
    await _require_refused(talk, "tasks/cancel", {"taskId": talk.unknown_name})


SERVED = Rule(
    "ext-tasks/served",
    "must",
    "A server that declares the extension has all of its methods: tasks/get, tasks/update and tasks/cancel.",
    at=PAGE,
    since=SINCE,
    cause="It is declared, and the handlers are not there, or have the names of 2025-11-25.",
)


@SERVED.case("requests for a task that nobody has", needs=CAPABILITY)
async def check_served(talk: Probe) -> None:
    for method in TASK_METHODS:
        more: dict[str, Any] = {"inputResponses": {}} if method == "tasks/update" else {}
        answer = await send_request(talk, method, {"taskId": talk.unknown_name, **more}, misbehaved=True)
        if answer.code == METHOD_NOT_FOUND:
            raise talk.violation(f"{method} is answered with {preview_json(answer.error)}")


async def _require_refused(talk: Probe, method: str, params: dict[str, Any]) -> None:
    answer = await send_request(talk, method, params, misbehaved=True)
    if answer.code != INVALID_PARAMS:
        raise talk.violation(
            f"{method} with {preview_json(params)} is answered with {preview_json(answer.error or answer.result)}"
        )
