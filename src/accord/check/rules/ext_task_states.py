"""The tasks extension (2026-07-28): the fields of tasks, in all messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.engine.rule import JudgedItems
from accord.check.probes.content import get_object, preview_json
from accord.check.probes.extension_tasks import (
    PAGE,
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
from accord.check.rules.ext_tasks import ext_task_rule
from accord.check.rules.task_states import judge_times
from accord.messages.base import JSONObject


@ext_task_rule(
    "ext-tasks/marked",
    "must",
    case="all results of calls",
    at=f"{PAGE}#polymorphic-results",
    cause="The result has the form of 2025-11-25, inside `task`, or is marked as an ordinary result: `complete`.",
)
def ext_tasks_marked(logs: Sequence[MessageLog]) -> JudgedItems:
    """The result of a call that becomes a task has the `resultType` "task", and the fields of the task beside it."""
    for answered in answered_requests(logs, "tools/call"):
        if isinstance(answered.result, dict):
            yield
            if "content" not in answered.result and not is_task(answered.result) and _describes_task(answered.result):
                raise answered.violation(
                    f"the result is a task, but resultType is {preview_json(answered.result.get('resultType'))}"
                )


def _describes_task(result: JSONObject) -> bool:
    """Return whether a result is a task, in the form of either revision."""
    return isinstance(result.get("taskId"), str) or isinstance(get_object(result, "task").get("taskId"), str)


@ext_task_rule(
    "ext-tasks/calls-only",
    "must",
    case="all other results",
    at=(f"{PAGE}#polymorphic-results", f"{PAGE}#supported-methods"),
    cause="List and read methods become tasks as well; the extension allows that for tools/call only.",
)
def ext_tasks_calls_only(logs: Sequence[MessageLog]) -> JudgedItems:
    """`resultType` is "task" only for a call that becomes a task."""
    for answered in answered_requests(logs):
        method = answered.request["method"]
        if method != "tools/call" and method not in TASK_METHODS and isinstance(answered.result, dict):
            yield
            if is_task(answered.result):
                raise answered.violation(f"the result of {method} is a task")


@ext_task_rule(
    "ext-tasks/complete",
    "must",
    case="all results of methods about tasks",
    at=(f"{PAGE}#task-polling", f"{PAGE}#task-update-requests", f"{PAGE}#task-cancellation"),
    cause='`resultType` is "task", as for the call, or the status of the task.',
)
def ext_tasks_complete(logs: Sequence[MessageLog]) -> JudgedItems:
    """The `resultType` of tasks/get, tasks/update and tasks/cancel is "complete"."""
    for answered in answered_requests(logs, *TASK_METHODS):
        if isinstance(answered.result, dict):
            yield
            kind = answered.result.get("resultType")
            if kind != "complete":
                raise answered.violation(f"the resultType of {answered.request['method']} is {preview_json(kind)}")


@ext_task_rule(
    "ext-tasks/shapes",
    "must",
    case="all states of tasks",
    at=(f"{PAGE}#tasks", f"{PAGE}#task-polling"),
    cause="`ttl` and `pollInterval` are `ttlMs` and `pollIntervalMs` now, and a status has its own "
    "fields: `result`, `error`, `inputRequests`.",
)
def ext_tasks_shapes(logs: Sequence[MessageLog]) -> JudgedItems:
    """A task has the fields that the extension defines for its status."""
    for state in task_states(logs):
        yield
        fault = (handle_fault if is_task(state.task) else state_fault)(state.task, state.received.log.revision)
        if fault:
            raise state.received.violation(fault)


@ext_task_rule(
    "ext-tasks/result",
    "must",
    case="all completed tasks",
    at=(f"{PAGE}#task-polling", f"{PAGE}#task-execution-errors"),
    cause="The return value of the tool is sent as it is, or as a JSON-RPC error.",
)
def ext_tasks_result(logs: Sequence[MessageLog]) -> JudgedItems:
    """The `result` of a completed task is a tool result."""
    for state in task_states(logs):
        if state.status == "completed" and isinstance(state.task.get("result"), dict):
            yield
            fault = result_fault(state.task["result"], state.received.log.revision)
            if fault:
                raise state.received.violation(f"the result is not a tool result: {fault}")


@ext_task_rule(
    "ext-tasks/times",
    "must",
    case="all states of tasks",
    at=f"{PAGE}#tasks",
    cause="The value is in seconds since 1970, or in the format of the language.",
)
def ext_tasks_times(logs: Sequence[MessageLog]) -> JudgedItems:
    """A task has the times of its creation and of its last change, in ISO 8601."""
    return judge_times(task_states(logs), zoned=False)


@ext_task_rule(
    "ext-tasks/final",
    "must",
    case="all states of tasks",
    at=f"{PAGE}#task-status",
    cause="A late cancellation overwrites the final status, or the task continues.",
)
def ext_tasks_final(logs: Sequence[MessageLog]) -> JudgedItems:
    """A task that is completed, failed or cancelled keeps its status, its result and its error."""
    over: dict[str, TaskObservation] = {}
    for state in sorted(task_states(logs), key=lambda each: each.received.entry.at):
        yield
        # only what was asked after the end was heard: answers may overtake each other
        last = over.get(preview_json(state.id))
        if last is not None and state.requested_at > last.received.entry.at and _outcome(state) != _outcome(last):
            text = f"a task was {last.status}, and is now {preview_json(state.status)}, or has another outcome"
            if not _may_fail(last, state):
                raise state.received.violation(text, about=(last.received.entry,))
        if state.is_final and not is_task(state.task):
            over.setdefault(preview_json(state.id), state)


def _outcome(state: TaskObservation) -> Any:
    return state.status, state.task.get("result"), state.task.get("error")


def _may_fail(last: TaskObservation, state: TaskObservation) -> bool:
    """ "servers MAY mark a task as `failed` at any point after the TTL elapses", whether it ended before or not."""
    ttl = last.task.get("ttlMs")
    return (
        state.status == "failed" and isinstance(ttl, int) and state.received.entry.at - last.requested_at > ttl / 1000
    )


@ext_task_rule(
    "ext-tasks/failed",
    "must",
    case="all tasks that ended, and ordinary calls of the same tools",
    at=(f"{PAGE}#task-status", f"{PAGE}#task-execution-errors"),
    cause="The status is derived from `isError`, as in 2025-11-25.",
)
def ext_tasks_failed(logs: Sequence[MessageLog]) -> JudgedItems:
    """A task whose tool result has `isError` is completed: `failed` is only for JSON-RPC errors."""
    plain, calls = _calls(logs)
    for state in task_states(logs):
        if state.is_final and not is_task(state.task):
            yield
            call = calls.get(preview_json(state.id))
            if state.status == "failed" and ("result" in state.task or (call in plain and "error" in state.task)):
                raise state.received.violation("a task is failed, but its tool returns no JSON-RPC error")


def _calls(logs: Sequence[MessageLog]) -> tuple[set[str], dict[str, str]]:
    """Return the calls that returned `isError`, and the calls of tasks by task id."""
    plain: set[str] = set()
    calls: dict[str, str] = {}
    for answered in answered_requests(logs, "tools/call"):
        params = get_object(answered.request, "params")
        call = repr((params.get("name"), params.get("arguments")))
        if is_task(answered.result):
            calls[preview_json(answered.result.get("taskId"))] = call
        elif get_object(answered.result).get("isError") is True:
            plain.add(call)
    return plain, calls


@ext_task_rule(
    "ext-tasks/failed-why",
    "should",
    case="all failed tasks",
    at=f"{PAGE}#task-execution-errors",
)
def ext_tasks_failed_why(logs: Sequence[MessageLog]) -> JudgedItems:
    """tasks/get explains in `statusMessage` why a task failed."""
    for state in task_states(logs):
        if state.status == "failed" and not is_task(state.task):
            yield
            if not state.task.get("statusMessage"):
                raise state.received.violation("a failed task has no statusMessage")
