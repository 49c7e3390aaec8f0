"""Tasks of 2025-11-25: a request that is answered at once, and whose result the client fetches later. `task_extension`
has those of 2026-07-28.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Raw, field

from accord.errors import InvalidParams
from accord.lazy_patterns import lazy_pattern
from accord.messages.base import JSONObject, Meta, Model, lives, seen_as
from accord.messages.bounds import Cursor, Name
from accord.messages.meta import RELATED_TASK, NotificationMeta, Params, Result, ResultMeta

TASK_RESULT = "task"
"""The `resultType` of a call that has become a task."""

NAMED_BY_ID: dict[str, str] = dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "task_id")
"""The methods of the extension whose `Mcp-Name` repeats the id of the task, and the field of their params."""

TERMINAL_STATUSES = frozenset(("completed", "failed", "cancelled"))
"""The statuses that do not change any more."""

UNKNOWN_TASK = "no such task; it may have expired"
"""The error for an unknown task, for an expired one and for that of another requestor."""

_SHORTEST_POLL_SECONDS = 0.1
_ID = lazy_pattern(r"[A-Za-z0-9_-]{43}")

TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]


@lives(since="2025-11-25", until="2026-07-28")
class TaskMetadata(Model):
    """`task` in the params of a request that is to run as a task; `ttl` in milliseconds."""

    ttl: int | None = None


@lives(since="2025-11-25", until="2026-07-28")
class RelatedTaskMetadata(Model):
    """The value of `io.modelcontextprotocol/related-task` in `_meta`."""

    task_id: Name


@lives(since="2025-11-25", until="2026-07-28")
class TaskInfo(Model):
    """A task: times are ISO 8601, durations milliseconds; a `ttl` of None means no end."""

    task_id: Name
    status: TaskStatus
    created_at: str
    last_updated_at: str
    ttl: int | None
    status_message: str | None = None
    poll_interval: int | None = None


@lives(since="2025-11-25", until="2026-07-28")
class CreateTaskResult(Result):
    """Result of a request that became a task."""

    task: TaskInfo


@lives(since="2025-11-25", until="2026-07-28")
class TaskParams(Params):
    """Params of `tasks/get`, `tasks/result` and `tasks/cancel`."""

    task_id: Name


@lives(since="2025-11-25", until="2026-07-28")
class GetTaskResult(TaskInfo):
    """Result of `tasks/get`."""

    meta: Annotated[Meta | None, seen_as(ResultMeta)] = field(default=None, name="_meta")


@lives(since="2025-11-25", until="2026-07-28")
class CancelTaskResult(TaskInfo):
    """Result of `tasks/cancel`."""

    meta: Annotated[Meta | None, seen_as(ResultMeta)] = field(default=None, name="_meta")


@lives(since="2025-11-25", until="2026-07-28")
class ListTasksResult(Result):
    """Result of `tasks/list`."""

    tasks: list[TaskInfo]
    next_cursor: Cursor | None = None


@lives(since="2025-11-25", until="2026-07-28")
class TaskStatusParams(TaskInfo):
    """Params of `notifications/tasks/status`."""

    meta: Annotated[Meta | None, seen_as(NotificationMeta)] = field(default=None, name="_meta")


GetTaskPayloadResult: TypeAlias = JSONObject
"""Result of `tasks/result`: the result that the request would have had without a task."""


def poll_interval(age: float, longest: float) -> int:
    """Return the interval at which to poll a task, in milliseconds: as long as the task has run, so that the wait for
    the end of a short task is short. "The `pollIntervalMs` MAY change over the lifetime of a task".
    """
    return round(min(longest, max(_SHORTEST_POLL_SECONDS, age)) * 1_000)


def to_seconds(milliseconds: int) -> float:
    """Return milliseconds as seconds: an integer that no float can hold is infinite."""
    try:
        return milliseconds / 1_000
    except OverflowError:
        return float("inf") if milliseconds > 0 else float("-inf")


def timestamp(seconds: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def last_id(cursor: str | None) -> str:
    """Return the id after which the next page of `tasks/list` begins; empty for the first page. Raises `InvalidParams`
    for an unknown cursor.
    """
    if cursor and not _ID.fullmatch(cursor):
        raise InvalidParams(f"unknown cursor {cursor[:100]!r}")
    return cursor or ""


def related(id: str) -> dict[str, Any]:
    """Return the `_meta` of the messages of a task of 2025-11-25."""
    return {RELATED_TASK: {"taskId": id}}


def result_with_meta(result: bytes, id: str) -> Raw:
    """Return the result of a task of 2025-11-25: "The `tasks/result` operation MUST include this metadata"."""
    fields: dict[str, Any] = msgspec.json.decode(result, type=dict[str, Raw])
    meta = msgspec.json.decode(fields.pop("_meta", Raw(b"{}")), type=dict[str, Any])
    return Raw(msgspec.json.encode({**fields, "_meta": {**meta, **related(id)}}))
