"""Tasks of a server: tool calls that go on after their request, polled until they end.

The server decides which calls become tasks (the extension, 2026-07-28), or the client requests it (2025-11-25). A task
is known by its id, so that another process may continue to poll it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
from msgspec import Raw

from accord.client.multi_round_trip import InputResponder, RawInputRequest
from accord.client.requests import Requests
from accord.client.results import ToolResult
from accord.errors import (
    INTERNAL_ERROR,
    AccordError,
    InternalError,
    InvalidParams,
    InvalidResult,
    ProtocolError,
    RateLimited,
    RequestTimeout,
)
from accord.messages import codec
from accord.messages.bounds import Name
from accord.messages.envelope import ErrorObject
from accord.messages.meta import EmptyResult, Params, Result
from accord.messages.task_extension import TaskIdParams, UpdateTaskParams
from accord.messages.tasks import TERMINAL_STATUSES, TaskParams, to_seconds
from accord.session.session import Session

if TYPE_CHECKING:
    from accord.messages.tasks import TaskStatus

T = TypeVar("T")

log: logging.Logger = logging.getLogger("accord.client")

_DEFAULT_POLL_SECONDS = 1.0
_SHORTEST_POLL_SECONDS, _LONGEST_POLL_SECONDS = 0.02, 300.0
_SHORTEST_TIMEOUT = 0.001
_MAX_ERRORS = 3
"""Limit of the `tasks/result` requests with an internal error of a task that has not ended."""
_CANCEL_SECONDS = 2.0
"""The time for `tasks/cancel` when the caller has gone."""


class _RawTask(msgspec.Struct, rename="camel"):
    """A task of either protocol, as far as it is decoded at once."""

    task_id: Name
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    status_message: str | None = None
    ttl: int | None = None
    ttl_ms: int | None = None
    poll_interval: int | None = None
    poll_interval_ms: int | None = None
    input_requests: dict[Name, RawInputRequest] | None = None
    result: Raw = Raw()
    error: ErrorObject | None = None


class _CreatedInCore(msgspec.Struct):
    task: _RawTask


class TaskState(msgspec.Struct, frozen=True):
    """The state of a task. Times are in seconds; None means no limit, or that the server does not say."""

    id: str
    status: TaskStatus
    message: str | None = None
    """The server's text about the status, for display."""
    ttl: float | None = None
    """How long the server keeps the task after its creation."""
    poll: float | None = None
    """The interval at which the server asks to be polled."""

    @property
    def ended(self) -> bool:
        """Whether the status does not change any more."""
        return self.status in TERMINAL_STATUSES


class TaskRequests:
    """The requests about tasks of one client; `name` is that of the server, for errors."""

    def __init__(self, requests: Requests, responder: InputResponder, name: str) -> None:
        self.requests: Requests = requests
        self.responder: InputResponder = responder
        self.name: str = name

    async def session(self) -> Session:
        """Return the session of the connection, opened again if necessary."""
        return await self.requests.session()

    def handle(self, id: str, result: ToolResult | None = None) -> TaskHandle:
        """Return the handle of a task, or of a call that has ended already."""
        return TaskHandle(self, id, result)

    def created(self, raw: bytes) -> TaskHandle:
        """Return the handle of the task in the result of a call. Raises `InvalidResult`."""
        return self.handle(_state(self.read("tools/call", _RawTask, raw)).id)

    def created_in_core(self, raw: bytes) -> TaskHandle:
        """Return the handle of the task in the result of a call of 2025-11-25. Raises `InvalidResult`."""
        return self.handle(self.read("tools/call", _CreatedInCore, raw).task.task_id)

    def read(self, method: str, type_: Any, raw: bytes) -> Any:
        """Decode the result of a method about tasks. Raises `InvalidResult`."""
        try:
            return codec.decoder(type_).decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
            raise InvalidResult(f"{self.name}: {method} answered with an invalid task: {exc}", raw=raw) from exc


class TaskHandle:
    """A task of a server, by its id: `await handle.result()` waits for the result of the call."""

    def __init__(self, tasks: TaskRequests, id: str, result: ToolResult | None = None) -> None:
        self.id: str = id
        """The id of the task, for `client.task(id)` in another process; empty for a call that was answered at once."""
        self._has_ended: bool = not id
        """Whether the server has said that the task has ended."""
        self._tasks = tasks
        self._result = result
        self._answered: set[str] = set()
        self._unsent: dict[str, Any] = {}
        """Answers that the server has not received yet, by key."""

    def __repr__(self) -> str:
        return f"<TaskHandle {self.id!r}>"

    async def state(self) -> TaskState:
        """Return the current state. Raises `InvalidParams` for a task that the server does not know, or no longer, and
        the errors of `call_tool`.
        """
        return _state(await self._get()) if self.id else TaskState("", "completed")

    async def cancel(self) -> None:
        """Cancel the task; one that has ended stays as it is. Raises `InvalidParams` for an unknown task."""
        if not self.id:
            return
        params = await self._params()
        try:
            await self._tasks.requests.read("tasks/cancel", Result, params)
        except ProtocolError:
            if not (await self.state()).ended:
                raise

    async def result(self, *, timeout: float | None = None, total_timeout: float | None = None) -> ToolResult:
        """Poll the task until it ends, answer what it asks, and return its result. `timeout` (seconds) is that of each
        request, `total_timeout` that of all, without the time of handlers; the client's are the defaults.

        Cancelling the await does not cancel the task. Raises the error of the call, `ProtocolError` for a task that was
        cancelled, `RequestTimeout`, and the errors of handlers.
        """
        if self._result is None:
            total = self._tasks.requests.total_timeout if total_timeout is None else total_timeout
            self._result = await _Polling(self, ToolResult, timeout, total).run()
        return self._result

    async def result_json(self, *, timeout: float | None, total_timeout: float | None) -> Raw:
        """Return the result as JSON, unchanged (2026-07-28). As `result`."""
        json: Raw = await _Polling(self, Raw, timeout, total_timeout).run()
        return json

    async def _params(self) -> Params:
        session = await self._tasks.session()
        return (TaskParams if session.rules.requested_tasks else TaskIdParams)(task_id=self.id)

    async def _get(self, **options: Any) -> _RawTask:
        raw = await self._tasks.requests.raw("tasks/get", await self._params(), **options)
        task: _RawTask = self._tasks.read("tasks/get", _RawTask, bytes(raw))
        return task

    async def _result_in_core(self, **options: Any) -> ToolResult:
        """Return the result of a task of 2025-11-25: the server sends its questions while it answers this."""
        return await self._tasks.requests.read("tasks/result", ToolResult, await self._params(), **options)

    async def _answer(self, requests: Mapping[str, RawInputRequest], **options: Any) -> None:
        """Answer the input requests that were not answered before, and send answers that were not received again."""
        session = await self._tasks.session()
        new = {key: request for key, request in requests.items() if key not in self._answered}
        if new:
            self._unsent |= await self._tasks.responder.answer(self._tasks.name, "tasks/get", new, session)
            self._answered |= set(new)
        sent = {key: answer for key, answer in self._unsent.items() if key in requests}
        if not sent:
            return
        params = UpdateTaskParams(task_id=self.id, input_responses=sent)
        try:
            await self._tasks.requests.read("tasks/update", EmptyResult, params, **options)
        except InvalidParams:  # an answer does not fit: they are asked again
            self._answered -= set(sent)
            self._unsent.clear()
            raise
        self._unsent.clear()


class _Polling:
    """The wait for the end of one task."""

    def __init__(
        self, handle: TaskHandle, type_: type[Any], timeout: float | None, total_timeout: float | None
    ) -> None:
        self._handle = handle
        self._type = type_
        self._options = {} if timeout is None else {"timeout": timeout}
        self._left = total_timeout
        self._errors = 0
        self._time = asyncio.get_running_loop().time

    async def run(self) -> Any:
        """Return the result as the type. Raises the error of the call, and `RequestTimeout`."""
        while True:
            try:
                task = await self._timed(self._handle._get(**self._options))
            except RateLimited as error:
                await self._sleep(error.retry_after or _DEFAULT_POLL_SECONDS)
                continue
            result = await self._result_of(task)
            if result is not None:
                return result
            interval = _state(task).poll
            await self._sleep(_DEFAULT_POLL_SECONDS if interval is None else interval)

    async def _result_of(self, task: _RawTask) -> Any:
        """Return the result of a task that has ended; answer what it asks. Raises its error."""
        handle, name = self._handle, self._handle._tasks.name
        session = await handle._tasks.session()
        handle._has_ended = task.status in TERMINAL_STATUSES
        if task.status == "cancelled":
            raise ProtocolError(f"{name}: the task was cancelled: {task.status_message or 'no reason given'}")
        if session.rules.requested_tasks and (task.status == "input_required" or handle._has_ended):
            return await self._result_in_core()
        if task.status == "input_required":
            await handle._answer(task.input_requests or {}, **self._options)
        elif task.status == "failed":
            error = task.error or ErrorObject(INTERNAL_ERROR, task.status_message or "the server does not say why")
            raise error.to_exception()
        elif task.status == "completed":
            return handle._tasks.requests.decode("tasks/get", self._type, task.result)
        return None

    async def _result_in_core(self) -> ToolResult | None:
        """Return the result of a task of 2025-11-25, and answer its questions meanwhile; None if it works on for longer
        than the timeout of a request, or if that fails.
        """
        handle, options, started = self._handle, dict(self._options), self._time()
        if self._left is not None:
            options["total_timeout"] = max(self._left, _SHORTEST_TIMEOUT)
        try:
            return await handle._result_in_core(**options)
        except (InternalError, RequestTimeout) as error:
            # A server that was killed may answer with an internal error, and continue the task
            self._errors += isinstance(error, InternalError)
            if self._left is not None:  # the time of handlers does not count
                seconds = self._time() - started
                self._left -= min(seconds, options.get("timeout", handle._tasks.requests.timeout) or seconds)
            is_late = self._left is not None and self._left <= 0
            if handle._has_ended or is_late or self._errors > _MAX_ERRORS:
                raise
            return None

    async def _sleep(self, seconds: float) -> None:
        await self._timed(asyncio.sleep(min(max(seconds, _SHORTEST_POLL_SECONDS), _LONGEST_POLL_SECONDS)))

    async def _timed(self, work: Any) -> Any:
        """Await `work` within the time that is left. Raises `RequestTimeout`."""
        if self._left is None:
            return await work
        started = self._time()
        try:
            async with asyncio.timeout(max(0, self._left)):
                return await work
        except TimeoutError:
            raise RequestTimeout(
                f"{self._handle._tasks.name}: the task has not ended within the total timeout; raise total_timeout="
            ) from None
        finally:
            self._left -= self._time() - started


async def result_or_cancel(handle: TaskHandle, result: Coroutine[Any, Any, T]) -> T:
    """Return the result of a task; cancel the task if the caller gives up."""
    try:
        return await result
    except BaseException:  # also an error of a handler: nobody else answers the task
        if not handle._has_ended:
            await asyncio.shield(_try_cancel(handle))
        raise


async def _try_cancel(handle: TaskHandle) -> None:
    with suppress(AccordError, TimeoutError):
        async with asyncio.timeout(_CANCEL_SECONDS):
            await handle.cancel()


def _state(task: _RawTask) -> TaskState:
    ttl = task.ttl if task.ttl_ms is None else task.ttl_ms
    poll = task.poll_interval if task.poll_interval_ms is None else task.poll_interval_ms
    seconds = [None if each is None else to_seconds(each) for each in (ttl, poll)]
    return TaskState(task.task_id, task.status, task.status_message, *seconds)
