"""Tasks as both protocols show them."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from msgspec import Raw

from accord.messages.task_extension import CreatedTask
from accord.messages.tasks import TASK_RESULT, TaskInfo, poll_interval, timestamp
from accord.store.tasks import TaskRecord


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


def _fields(record: TaskRecord, unit: str) -> dict[str, Any]:
    """Return the fields that all states have; `unit` is at the end of the names of durations."""
    return {
        "task_id": record.id,
        "status": record.status,
        "created_at": timestamp(record.created_at),
        "last_updated_at": timestamp(record.updated_at),
        "status_message": record.message,
        f"ttl{unit}": None if record.ttl is None else round(record.ttl * 1_000),
        f"poll_interval{unit}": None
        if record.poll is None
        else poll_interval(time.time() - record.created_at, record.poll),
    }
