"""Tasks of 2025-11-25: a request that is answered at once, and whose result the client fetches later. `task_extension`
has those of 2026-07-28.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import field

from accord.messages.base import JSONObject, Meta, Model, lives, seen_as
from accord.messages.bounds import Cursor, Name
from accord.messages.meta import NotificationMeta, Params, Result, ResultMeta

TASK_RESULT = "task"
"""The `resultType` of a call that has become a task."""

NAMED_BY_ID: dict[str, str] = dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "task_id")
"""The methods of the extension whose `Mcp-Name` repeats the id of the task, and the field of their params."""

TERMINAL_STATUSES = frozenset(("completed", "failed", "cancelled"))
"""The statuses that do not change any more."""

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
