"""The tasks extension (2026-07-28): what is said of a task, judged by all that was said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.engine.rule import Rule
from accord.check.probes.content import get_object, preview_json, time_fault
from accord.check.probes.extension_tasks import (
    CAPABILITY,
    PAGE,
    SINCE,
    TASK_METHODS,
    handle_fault,
    is_task,
    result_fault,
    state_fault,
    task_states,
)
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import answered_requests
from accord.check.probes.tasks import TaskObservation
from accord.messages.base import JSONObject

MARKED = Rule(
    "ext-tasks/marked",
    "must",
    "A call that becomes a task says so: its `resultType` is `task`, and what is known of the task stands beside it.",
    at=f"{PAGE}#polymorphic-results",
    since=SINCE,
    cause="The result is written as in 2025-11-25, inside `task`, or as any other result: `complete`.",
)


@MARKED.reading("all results of calls", needs=CAPABILITY)
def read_marked(records: Sequence[MessageLog]) -> int:
    judged = 0
    for answered in answered_requests(records, "tools/call"):
        if isinstance(answered.result, dict):
            judged += 1
            if "content" not in answered.result and not is_task(answered.result) and _describes_task(answered.result):
                raise answered.violation(
                    f"a task comes, and resultType is {preview_json(answered.result.get('resultType'))}"
                )
    return judged


def _describes_task(result: JSONObject) -> bool:
    """Whether a result tells of a task, in the form of either revision."""
    return isinstance(result.get("taskId"), str) or isinstance(get_object(result, "task").get("taskId"), str)


CALLS_ONLY = Rule(
    "ext-tasks/calls-only",
    "must",
    "`resultType` is `task` for a call that becomes a task, and nowhere else.",
    at=(f"{PAGE}#polymorphic-results", f"{PAGE}#supported-methods"),
    since=SINCE,
    cause="Lists and reads are deferred as well; the extension has no other method than tools/call that can be.",
)


@CALLS_ONLY.reading("all other results", needs=CAPABILITY)
def read_calls_only(records: Sequence[MessageLog]) -> int:
    judged = 0
    for answered in answered_requests(records):
        method = answered.request["method"]
        if method != "tools/call" and method not in TASK_METHODS and isinstance(answered.result, dict):
            judged += 1
            if is_task(answered.result):
                raise answered.violation(f"the result of {method} is a task")
    return judged


COMPLETE = Rule(
    "ext-tasks/complete",
    "must",
    "The `resultType` of tasks/get, tasks/update and tasks/cancel is `complete`.",
    at=(f"{PAGE}#task-polling", f"{PAGE}#task-update-requests", f"{PAGE}#task-cancellation"),
    since=SINCE,
    cause="It is `task`, as for the call that became the task, or the status of the task.",
)


@COMPLETE.reading("all answers about tasks", needs=CAPABILITY)
def read_complete(records: Sequence[MessageLog]) -> int:
    judged = 0
    for answered in answered_requests(records, *TASK_METHODS):
        if isinstance(answered.result, dict):
            judged += 1
            kind = answered.result.get("resultType")
            if kind != "complete":
                raise answered.violation(f"the resultType of {answered.request['method']} is {preview_json(kind)}")
    return judged


SHAPES = Rule(
    "ext-tasks/shapes",
    "must",
    "What is said of a task is of the type that the extension has for its status.",
    at=(f"{PAGE}#tasks", f"{PAGE}#task-polling"),
    since=SINCE,
    cause="`ttl` and `pollInterval` are `ttlMs` and `pollIntervalMs` now; a status has fields of its own: `result`, "
    "`error`, `inputRequests`.",
)


@SHAPES.reading("all states of tasks", needs=CAPABILITY)
def read_shapes(records: Sequence[MessageLog]) -> int:
    judged = 0
    for state in task_states(records):
        judged += 1
        fault = (handle_fault if is_task(state.task) else state_fault)(state.task, state.received.log.revision)
        if fault:
            raise state.received.violation(fault)
    return judged


RESULT = Rule(
    "ext-tasks/result",
    "must",
    "The `result` of a task that is completed is what the call would have been answered: the result of a tool.",
    at=(f"{PAGE}#task-polling", f"{PAGE}#task-execution-errors"),
    since=SINCE,
    cause="The value that the tool returned stands there as it is, or an error of JSON-RPC.",
)


@RESULT.reading("all tasks that are completed", needs=CAPABILITY)
def read_result(records: Sequence[MessageLog]) -> int:
    judged = 0
    for state in task_states(records):
        if state.status == "completed" and isinstance(state.task.get("result"), dict):
            judged += 1
            fault = result_fault(state.task["result"], state.received.log.revision)
            if fault:
                raise state.received.violation(f"it is no result of a tool: {fault}")
    return judged


TIMES = Rule(
    "ext-tasks/times",
    "must",
    "A task says when it was made and when it last changed, as times of ISO 8601.",
    at=f"{PAGE}#tasks",
    since=SINCE,
    cause="Seconds since 1970, or the way in which the language prints a time.",
)


@TIMES.reading("all states of tasks", needs=CAPABILITY)
def read_times(records: Sequence[MessageLog]) -> int:
    judged = 0
    for state in task_states(records):
        for name in ("createdAt", "lastUpdatedAt"):
            judged += 1
            fault = time_fault(state.task.get(name))
            if fault:
                raise state.received.violation(f"{name} {fault}")
    return judged


FINAL = Rule(
    "ext-tasks/final",
    "must",
    "A task that is completed, failed or cancelled stays so, with the same result or error.",
    at=f"{PAGE}#task-status",
    since=SINCE,
    cause="A cancellation that comes too late is written over the end, or work that goes on is.",
)


@FINAL.reading("all states of tasks", needs=CAPABILITY)
def read_final(records: Sequence[MessageLog]) -> int:
    judged = 0
    over: dict[str, TaskObservation] = {}
    for state in sorted(task_states(records), key=lambda each: each.received.entry.at):
        judged += 1
        # only what was asked after the end was heard: answers may overtake each other
        last = over.get(preview_json(state.id))
        if last is not None and state.requested_at > last.received.entry.at and _outcome(state) != _outcome(last):
            text = f"a task was {last.status}, and is {preview_json(state.status)} now, or has another outcome"
            if not _may_fail(last, state):
                raise state.received.violation(text, about=(last.received.entry,))
        if state.is_final and not is_task(state.task):
            over.setdefault(preview_json(state.id), state)
    return judged


def _outcome(state: TaskObservation) -> Any:
    return state.status, state.task.get("result"), state.task.get("error")


def _may_fail(last: TaskObservation, state: TaskObservation) -> bool:
    """ "servers MAY mark a task as `failed` at any point after the TTL elapses": it runs from before it was over."""
    ttl = last.task.get("ttlMs")
    return (
        state.status == "failed" and isinstance(ttl, int) and state.received.entry.at - last.requested_at > ttl / 1000
    )


FAILED = Rule(
    "ext-tasks/failed",
    "must",
    "A task whose tool ends with `isError` is completed: `failed` is for errors of JSON-RPC alone.",
    at=(f"{PAGE}#task-status", f"{PAGE}#task-execution-errors"),
    since=SINCE,
    cause="The status is made of `isError`, as 2025-11-25 has it.",
)


@FAILED.reading("all tasks that are over, beside plain calls of the same", needs=CAPABILITY)
def read_failed(records: Sequence[MessageLog]) -> int:
    judged = 0
    plain, calls = _calls(records)
    for state in task_states(records):
        if state.is_final and not is_task(state.task):
            judged += 1
            call = calls.get(preview_json(state.id))
            if state.status == "failed" and ("result" in state.task or (call in plain and "error" in state.task)):
                raise state.received.violation("a task is failed, and what its tool does is no error of JSON-RPC")
    return judged


def _calls(records: Sequence[MessageLog]) -> tuple[set[str], dict[str, str]]:
    """The calls that ended with `isError` at once; and the calls of tasks, by their ids."""
    plain: set[str] = set()
    calls: dict[str, str] = {}
    for answered in answered_requests(records, "tools/call"):
        params = get_object(answered.request, "params")
        call = repr((params.get("name"), params.get("arguments")))
        if is_task(answered.result):
            calls[preview_json(answered.result.get("taskId"))] = call
        elif get_object(answered.result).get("isError") is True:
            plain.add(call)
    return plain, calls


FAILED_WHY = Rule(
    "ext-tasks/failed-why",
    "should",
    "tasks/get says why a task has failed, in `statusMessage`.",
    at=f"{PAGE}#task-execution-errors",
    since=SINCE,
)


@FAILED_WHY.reading("all tasks that have failed", needs=CAPABILITY)
def read_failed_why(records: Sequence[MessageLog]) -> int:
    judged = 0
    for state in task_states(records):
        if state.status == "failed" and not is_task(state.task):
            judged += 1
            if not state.task.get("statusMessage"):
                raise state.received.violation("a task has failed, and does not say why")
    return judged
