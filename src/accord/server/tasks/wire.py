"""Tasks as both protocols show them."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw

from accord.messages import codec
from accord.messages.meta import RELATED_TASK
from accord.messages.task_extension import CreatedTask
from accord.messages.tasks import TASK_RESULT, TaskInfo
from accord.store.tasks import TaskRecord

_SHORTEST_POLL_SECONDS = 0.1


def created_task(record: TaskRecord) -> CreatedTask:
    """Return the result of the call that has become this task (2026-07-28)."""
    return CreatedTask(result_type=TASK_RESULT, **_fields(record, "_ms"))


def detailed_task(record: TaskRecord) -> dict[str, Any]:
    """Return the fields of a task with what its status has, by their names in JSON (2026-07-28)."""
    fields: dict[str, Any] = msgspec.to_builtins(CreatedTask(**_fields(record, "_ms")))
    if record.status == "input_required":
        fields["inputRequests"] = {key: Raw(question) for key, question in record.questions.items()}
    elif record.status == "completed" and record.result is not None:
        fields["result"] = Raw(record.result)
    elif record.status == "failed" and record.error is not None:
        fields["error"] = Raw(record.error)
    return fields


def task_info(record: TaskRecord) -> dict[str, Any]:
    """Return the fields of a task of 2025-11-25."""
    return _fields(record, "")


def core_task(record: TaskRecord) -> TaskInfo:
    """Return a task of 2025-11-25."""
    return TaskInfo(**task_info(record))


def related(id: str) -> dict[str, Any]:
    """Return the `_meta` of the messages of a task of 2025-11-25."""
    return {RELATED_TASK: {"taskId": id}}


def result_with_meta(result: bytes, id: str) -> Raw:
    """Return the result of a task of 2025-11-25: "The `tasks/result` operation MUST include this metadata"."""
    fields: dict[str, Any] = msgspec.json.decode(result, type=dict[str, Raw])
    meta = msgspec.json.decode(fields.pop("_meta", Raw(b"{}")), type=dict[str, Any])
    return Raw(codec.encode({**fields, "_meta": {**meta, **related(id)}}))


def _fields(record: TaskRecord, unit: str) -> dict[str, Any]:
    """Return the fields that all states have; `unit` is at the end of the names of durations."""
    return {
        "task_id": record.id,
        "status": record.status,
        "created_at": _timestamp(record.created_at),
        "last_updated_at": _timestamp(record.updated_at),
        "status_message": record.message,
        f"ttl{unit}": None if record.ttl is None else round(record.ttl * 1_000),
        f"poll_interval{unit}": None if record.poll is None else round(_poll_seconds(record, record.poll) * 1_000),
    }


def _poll_seconds(record: TaskRecord, longest: float) -> float:
    """Return the interval at which to poll: as long as the task has run, so that the wait for the end of a short task
    is short. "The `pollIntervalMs` MAY change over the lifetime of a task".
    """
    return min(longest, max(_SHORTEST_POLL_SECONDS, time.time() - record.created_at))


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
