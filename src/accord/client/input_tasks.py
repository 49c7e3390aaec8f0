"""Tasks of a client: elicitation and sampling that a server requests as tasks (2025-11-25, Tasks).

Such a request is answered at once with a task. Its handler runs on, and the server polls for the result. The tasks
belong to one connection, which has one server: they are unknown on any other, and end with it. The requests of later
revisions are part of a result (`multi_round_trip`), so they need no tasks.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Raw

from accord.errors import AccordError, InternalError, InvalidParams, ProtocolError, RateLimited
from accord.limits import Limits
from accord.messages import codec
from accord.messages.capabilities import ClientTaskRequests, ClientTasksCapability, ElicitationTasks, SamplingTasks
from accord.messages.meta import PaginatedParams
from accord.messages.tasks import (
    TERMINAL_STATUSES,
    UNKNOWN_TASK,
    CancelTaskResult,
    CreateTaskResult,
    GetTaskResult,
    ListTasksResult,
    TaskInfo,
    TaskMetadata,
    TaskParams,
    TaskStatus,
    TaskStatusParams,
    last_id,
    poll_interval,
    result_with_meta,
    timestamp,
    to_seconds,
)
from accord.session.pending_request import PendingRequest
from accord.session.rate import RateLimiter
from accord.transport.connection import Connection

_DEFAULT_TTL_SECONDS = 3_600.0
_POLL_SECONDS = 1.0


def tasks_capability(*, elicitation: bool, sampling: bool) -> ClientTasksCapability | None:
    """Return the capability to declare for the handlers that a client has; None without either."""
    if not (elicitation or sampling):
        return None
    requests = ClientTaskRequests(
        elicitation=ElicitationTasks(create={}) if elicitation else None,
        sampling=SamplingTasks(create_message={}) if sampling else None,
    )
    return ClientTasksCapability(list={}, cancel={}, requests=requests)


class InputTask:
    """One task, from its creation until its `ttl` (seconds) ends."""

    def __init__(self, ttl: float) -> None:
        self.id: str = secrets.token_urlsafe(32)
        self.status: TaskStatus = "working"
        self.message: str | None = None
        self.ttl: float = ttl
        self.created_at: float = time.time()
        self.updated_at: float = self.created_at
        self.result: bytes = b""
        self.error: ProtocolError | None = None
        self.ended: asyncio.Event = asyncio.Event()
        self.handler: asyncio.Task[None] | None = None
        self.expiry: asyncio.TimerHandle | None = None

    def end(self, status: TaskStatus, message: str | None = None) -> None:
        """Set the last status."""
        self.status, self.message, self.updated_at = status, message, time.time()
        self.ended.set()

    def fields(self) -> dict[str, Any]:
        """Return the fields of the task as the server sees it."""
        return {
            "task_id": self.id,
            "status": self.status,
            "created_at": timestamp(self.created_at),
            "last_updated_at": timestamp(self.updated_at),
            "ttl": round(self.ttl * 1_000),
            "status_message": self.message,
            "poll_interval": poll_interval(time.time() - self.created_at, _POLL_SECONDS),
        }


class InputTasks:
    """The tasks that the server of one connection has requested, and the methods about them."""

    def __init__(self, connection: Connection, limits: Limits) -> None:
        self.connection: Connection = connection
        self.methods: Mapping[str, Callable[[PendingRequest], Awaitable[Any]]] = {
            "tasks/get": self._get,
            "tasks/result": self._result,
            "tasks/cancel": self._cancel,
            "tasks/list": self._list,
        }
        """The handlers of the methods about tasks, by method."""
        self._limits = limits
        self._tasks: dict[str, InputTask] = {}
        self._bytes = 0
        self._polls = RateLimiter(limits.tasks.polls_per_second)
        self._loop = asyncio.get_running_loop()
        connection.resources.push_async_callback(self._close)

    def create(self, metadata: TaskMetadata, answer: Callable[[], Awaitable[Raw]]) -> CreateTaskResult:
        """Return a new task whose result is that of `answer`. Raises `InvalidParams` for an invalid `ttl`, and
        `RateLimited` for too many tasks.
        """
        limits = self._limits.tasks
        if metadata.ttl is not None and metadata.ttl <= 0:
            raise InvalidParams(f"task.ttl is {metadata.ttl} ms: it must be more than 0")
        running = sum(not task.ended.is_set() for task in self._tasks.values())
        _check(running, self._limits.requests_in_flight, "running tasks", "Limits.requests_in_flight")
        _check(len(self._tasks), limits.tasks_per_principal, "tasks", "TaskLimits.tasks_per_principal")
        requested = _DEFAULT_TTL_SECONDS if metadata.ttl is None else to_seconds(metadata.ttl)
        task = InputTask(min(requested, limits.ttl_seconds))
        self._tasks[task.id] = task
        task.handler = self._loop.create_task(self._run(task, answer))
        task.expiry = self._loop.call_later(task.ttl, self._expire, task)
        return CreateTaskResult(task=TaskInfo(**task.fields()))

    async def _run(self, task: InputTask, answer: Callable[[], Awaitable[Raw]]) -> None:
        try:
            with self.connection.pause_timers():  # a call of this client may wait for the answer
                result = bytes(await answer())
            self._check_size(len(result))
        except ProtocolError as error:
            if not task.ended.is_set():
                task.error = error
                self._end(task, "failed", error.message)
        except asyncio.CancelledError:
            if not task.ended.is_set():  # who cancels a task ends it first
                task.error = InternalError("the handler cancelled its own task")
                self._end(task, "failed", task.error.message)
            raise
        else:
            if not task.ended.is_set():  # a handler may return although it was cancelled
                task.result = result
                self._bytes += len(result)
                self._end(task, "completed")

    def _check_size(self, size: int) -> None:
        limits = self._limits.tasks
        for most, limit in ((limits.result_bytes, "result_bytes"), (limits.kept_bytes - self._bytes, "kept_bytes")):
            if size > most:
                raise InternalError(f"the answer is over {getattr(limits, limit):,} bytes (TaskLimits.{limit})")

    def _end(self, task: InputTask, status: TaskStatus, message: str | None = None) -> None:
        """Set the last status of a task, and notify the server of it."""
        task.end(status, message)
        with suppress(AccordError):  # the connection is lost
            self.connection.notify("notifications/tasks/status", TaskStatusParams(**task.fields()))

    def _stop(self, task: InputTask, message: str) -> None:
        """Cancel a task that has not ended."""
        if not task.ended.is_set():
            self._end(task, "cancelled", message)
            if task.handler is not None:
                task.handler.cancel()

    def _expire(self, task: InputTask) -> None:
        self._stop(task, "its ttl has ended")
        self._bytes -= len(task.result)
        del self._tasks[task.id]

    async def _close(self) -> None:
        """Cancel all handlers, which have half of `Limits.close_seconds` to clean up."""
        running = [
            task.handler for task in self._tasks.values() if task.handler is not None and not task.handler.done()
        ]
        for task in self._tasks.values():
            if task.expiry is not None:
                task.expiry.cancel()
            if not task.ended.is_set():
                task.end("cancelled", "the connection has ended")
        self._tasks.clear()
        for handler in running:
            handler.cancel()
        if running:
            await asyncio.wait(running, timeout=self._limits.close_seconds / 2)

    # --- methods -----------------------------------------------------------------------------------------------

    def _find(self, request: PendingRequest) -> InputTask:
        task = self._tasks.get(codec.decode_params(TaskParams, request.params).task_id)
        if task is None:
            raise InvalidParams(UNKNOWN_TASK)
        return task

    async def _get(self, request: PendingRequest) -> GetTaskResult:
        now = self._loop.time()
        if not self._polls.allow(now):
            most = self._limits.tasks.polls_per_second
            what = f"too many tasks/get requests: the limit is {most:g} a second (TaskLimits.polls_per_second)"
            raise self._polls.refusal(now, what)
        return GetTaskResult(**self._find(request).fields())

    async def _result(self, request: PendingRequest) -> Raw:
        """Return the answer of the handler once there is one. Raises its error."""
        task = self._find(request)
        await task.ended.wait()
        if task.error is not None:
            raise task.error
        if task.status == "cancelled":
            raise InvalidParams("the task was cancelled, so it has no result")
        return result_with_meta(task.result, task.id)

    async def _cancel(self, request: PendingRequest) -> CancelTaskResult:
        task = self._find(request)
        if task.status in TERMINAL_STATUSES:
            raise InvalidParams(f"the task is {task.status} already, and cannot be cancelled")
        self._stop(task, "cancelled by the server")
        return CancelTaskResult(**task.fields())

    async def _list(self, request: PendingRequest) -> ListTasksResult:
        cursor, most = last_id(codec.decode_params(PaginatedParams, request.params).cursor), self._limits.page_size
        ids = sorted(id for id in self._tasks if id > cursor)
        return ListTasksResult(
            tasks=[TaskInfo(**self._tasks[id].fields()) for id in ids[:most]],
            next_cursor=ids[most - 1] if len(ids) > most else None,
        )


def _check(count: int, most: int, what: str, limit: str) -> None:
    if count >= most:
        raise RateLimited(f"too many {what}: the limit is {most:,} ({limit}); try again when others have ended")
