"""The exact types of a task of the extension (2026-07-28), for each of its states."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import msgspec

from accord.messages.base import JSONObject, Model
from accord.messages.envelope import ErrorObject
from accord.messages.input_required import InputRequest
from accord.messages.tasks import TaskStatus
from accord.messages.tools import CallToolResult
from accord.messages.views import view


class _TaskFields(Model):
    """What is known of a task in every state: times are ISO 8601, a `ttl_ms` of None is without end."""

    task_id: str
    created_at: str
    last_updated_at: str
    ttl_ms: int | None
    status_message: str | None = None
    poll_interval_ms: int | None = None


class TaskHandle(_TaskFields):
    """What a call is answered with that becomes a task."""

    status: TaskStatus


class WorkingTask(_TaskFields, tag_field="status", tag="working"):
    """At work."""


class InputRequiredTask(_TaskFields, tag_field="status", tag="input_required"):
    """It waits for answers."""

    input_requests: dict[str, InputRequest]


class CompletedTask(_TaskFields, tag_field="status", tag="completed"):
    """Done: with what the call would have been answered."""

    result: JSONObject


class FailedTask(_TaskFields, tag_field="status", tag="failed"):
    """It ended with an error of JSON-RPC."""

    error: ErrorObject


class CancelledTask(_TaskFields, tag_field="status", tag="cancelled"):
    """It was given up."""


DetailedTask: TypeAlias = WorkingTask | InputRequiredTask | CompletedTask | FailedTask | CancelledTask


def handle_fault(task: JSONObject, revision: str) -> str:
    """What is wrong with a new task, in words; empty if nothing is. `resultType` and `_meta` are for other rules."""
    return _fault(task, TaskHandle, revision)


def state_fault(task: JSONObject, revision: str) -> str:
    """The same for a state of a task, as tasks/get and notifications tell it."""
    return _fault(task, DetailedTask, revision)


def result_fault(result: JSONObject, revision: str) -> str:
    """The same for the result of a tool inside a task, which may leave out what every answer must say."""
    return _fault({"resultType": "complete", **result}, CallToolResult, revision)


def _fault(value: JSONObject, type_: Any, revision: str) -> str:
    try:
        msgspec.convert(value, _strict_type(type_, revision))
    except msgspec.ValidationError as exc:
        return str(exc)
    except RecursionError:
        return "it is nested too deep"
    return ""


@cache
def _strict_type(type_: Any, revision: str) -> Any:
    return view(type_, revision, strict=True, closed=False)
