"""Tasks as the extension `io.modelcontextprotocol/tasks` defines them (SEP-2663; 2026-07-28).

The server decides whether a call becomes a task: its result then has the `resultType` "task". The client polls with
`tasks/get`, and answers with `tasks/update`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from accord.messages.base import JSONObject, Life, Model
from accord.messages.bounds import MEMBERS, Answers, Name
from accord.messages.capabilities import TASKS_EXTENSION
from accord.messages.envelope import ErrorObject
from accord.messages.extension import Extension
from accord.messages.input_required import InputRequest
from accord.messages.meta import EmptyResult, Params, Result
from accord.messages.methods import Method
from accord.messages.tasks import NAMED_BY_ID, TASK_RESULT, TaskStatus


class CreatedTask(Result):
    """Result of a call that has become a task: times are ISO 8601, durations milliseconds; a `ttl_ms` of None means no
    end.
    """

    task_id: Name
    status: TaskStatus
    created_at: str
    last_updated_at: str
    ttl_ms: int | None
    status_message: str | None = None
    poll_interval_ms: int | None = None


class DetailedTask(CreatedTask):
    """Result of `tasks/get`, and params of `notifications/tasks`: a task, with what its status has: input requests, the
    result, or the error.
    """

    input_requests: Annotated[dict[Name, InputRequest], msgspec.Meta(max_length=MEMBERS)] | None = None
    result: JSONObject | None = None
    error: ErrorObject | None = None


class TaskIdParams(Params):
    """Params of `tasks/get` and `tasks/cancel`."""

    task_id: Name


class UpdateTaskParams(TaskIdParams):
    """Params of `tasks/update`: the answers to input requests, by their keys."""

    input_responses: Answers


class TaskFilter(Model):
    """The tasks in the filter of `subscriptions/listen`."""

    task_ids: Annotated[list[Name], msgspec.Meta(max_length=MEMBERS)] | None = None


class TaskListenParams(Params):
    """Params of `subscriptions/listen`, as far as they are about tasks."""

    notifications: TaskFilter = TaskFilter()


_SINCE = Life("2026-07-28", None)


def _row(name: str, sender: Any, params: Any, result: Any = None) -> Method:
    return Method(name, sender, params, result, named_by=NAMED_BY_ID.get(name), life=_SINCE)


TASKS: Extension = Extension(
    name=TASKS_EXTENSION,
    methods=(
        _row("tasks/get", "client", TaskIdParams, DetailedTask),
        _row("tasks/update", "client", UpdateTaskParams, EmptyResult),
        _row("tasks/cancel", "client", TaskIdParams, EmptyResult),
        _row("notifications/tasks", "server", DetailedTask),
    ),
    results={TASK_RESULT: CreatedTask},
)
"""The extension as accord serves and uses it."""
