"""Tasks (2025-11-25): results of tasks, and the related task in `_meta`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from accord.check.engine.rule import JudgedItems
from accord.check.probes.content import get_object, preview_json
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import AnsweredRequest, answered_requests
from accord.check.probes.tasks import TaskObservation, related_task_id, requests_during_tasks, task_states
from accord.check.rules.tasks import task_rule
from accord.messages.tools import CallToolResult
from accord.messages.views import view

_PLACE = "basic/utilities/tasks"
_QUESTIONS = ("elicitation/create", "sampling/createMessage")


@task_rule(
    "tasks/result",
    "must",
    case="all results of tasks",
    needs="tasks",
    at=f"{_PLACE}#result-retrieval",
    cause="The state of the task is returned, or the result is wrapped.",
)
def tasks_result(logs: Sequence[MessageLog]) -> JudgedItems:
    """tasks/result returns what the call would return: a tool result, or an error."""
    for answered in _results(logs):
        yield
        try:
            type_ = view(CallToolResult, answered.received.log.revision, strict=True, closed=False)
            msgspec.convert(answered.result, type_)
        except msgspec.ValidationError as exc:
            raise answered.violation(f"the result is not a tool result: {exc}") from exc


@task_rule(
    "tasks/result-again",
    "must",
    case="all repeated results of tasks",
    needs="tasks",
    at=f"{_PLACE}#result-retrieval",
    cause="The result is computed for each request, or can be fetched only once.",
)
def tasks_result_again(logs: Sequence[MessageLog]) -> JudgedItems:
    """The result of a task that has ended is the same for each request."""
    first: dict[str, AnsweredRequest] = {}
    for answered, later in _with_later_states(logs):
        before = first.setdefault(preview_json(get_object(answered.request, "params").get("taskId")), answered)
        if before is not answered and later:  # it may be deleted: "After a task's ttl lifetime has elapsed"
            yield
            if _outcome(before) != _outcome(answered):
                raise answered.received.violation(
                    "the result differs from the earlier one", about=(before.received.entry, answered.request_entry)
                )


def _with_later_states(logs: Sequence[MessageLog]) -> Iterator[tuple[AnsweredRequest, list[TaskObservation]]]:
    """Yield each result of a task with the states that were requested after it."""
    states = list(task_states(logs))
    for answered in answered_requests(logs, "tasks/result"):
        id = get_object(answered.request, "params").get("taskId")
        yield (
            answered,
            [state for state in states if state.id == id and state.requested_at > answered.received.entry.at],
        )


def _outcome(answered: AnsweredRequest) -> Any:
    return answered.result, get_object(answered.received.message, "error").get("code")


@task_rule(
    "tasks/waits",
    "must",
    case="all responses to tasks/result, and the states after them",
    needs="tasks",
    at=f"{_PLACE}#result-retrieval",
    cause="The server returns before there is a result: wait for the end of the task.",
)
def tasks_waits(logs: Sequence[MessageLog]) -> JudgedItems:
    """tasks/result of a running task waits for the end of the task."""
    for answered, later in _with_later_states(logs):
        yield from later
        early = [state for state in later if not state.is_final]
        if early:
            raise answered.violation(f"the task is {preview_json(early[0].status)} after tasks/result")


@task_rule(
    "tasks/failed",
    "should",
    case="all results of tasks, and the states after them",
    needs="tasks",
    at=f"{_PLACE}#task-execution-errors",
    cause="All tasks are completed: a tool result with `isError`, or an error, is a failed task.",
)
def tasks_failed(logs: Sequence[MessageLog]) -> JudgedItems:
    """A task whose call failed has the status "failed", not "completed"."""
    for answered, later in _with_later_states(logs):
        has_failed = answered.result is None or get_object(answered.result).get("isError") is True
        for state in later:
            if state.is_final:
                yield
                if state.status == ("completed" if has_failed else "failed"):
                    raise answered.violation(f"the task is {state.status}")


@task_rule(
    "tasks/related",
    "must",
    case="all results of tasks",
    needs="tasks",
    at=(f"{_PLACE}#associating-task-related-messages", f"{_PLACE}#related-task-metadata"),
    cause="The tool result is returned without changes: add io.modelcontextprotocol/related-task to its `_meta`.",
)
def tasks_related(logs: Sequence[MessageLog]) -> JudgedItems:
    """The result of tasks/result names its task in `_meta`."""
    for answered in _results(logs):
        yield
        id = get_object(answered.request, "params").get("taskId")
        if related_task_id(answered.received.message) != id:
            raise answered.violation(
                f"its related task is {preview_json(related_task_id(answered.received.message))}, "
                f"not {preview_json(id)}"
            )


@task_rule(
    "tasks/related-questions",
    "must",
    case="all requests from the server while only tasks ran",
    needs="tasks",
    at=(f"{_PLACE}#input-required-status", f"{_PLACE}#associating-task-related-messages"),
    cause="Requests are sent as in an ordinary call: the client cannot tell which task waits for the response.",
)
def tasks_related_questions(logs: Sequence[MessageLog]) -> JudgedItems:
    """A request that the server sends for a task names the task in `_meta`."""
    for log in logs:
        for question, tasks in requests_during_tasks(log):
            if question.message["method"] in _QUESTIONS:
                yield
                if related_task_id(question.message) not in tasks:
                    raise question.violation(f"its related task is {preview_json(related_task_id(question.message))}")


def _results(logs: Sequence[MessageLog]) -> Iterator[AnsweredRequest]:
    """Return the results of tasks/result without errors."""
    return (answered for answered in answered_requests(logs, "tasks/result") if answered.result is not None)
