"""The methods about tasks: `tasks/get`, `tasks/update` and `tasks/cancel` of the extension (2026-07-28), `tasks/get`,
`tasks/result`, `tasks/list` and `tasks/cancel` of the core (2025-11-25), and the tasks of a subscription.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import msgspec

from accord.errors import (
    AccordError,
    InternalError,
    InvalidParams,
    MethodNotFound,
    StoreError,
)
from accord.limits import Limits
from accord.messages import codec
from accord.messages.envelope import ErrorObject
from accord.messages.meta import EmptyResult, PaginatedParams
from accord.messages.revision import RULES
from accord.messages.task_extension import TASKS, TaskIdParams, TaskListenParams, UpdateTaskParams
from accord.messages.tasks import (
    UNKNOWN_TASK,
    CancelTaskResult,
    GetTaskResult,
    ListTasksResult,
    TaskParams,
    last_id,
    related,
    result_with_meta,
)
from accord.server.compose.access import viewer_of
from accord.server.core.fair_semaphore import FairSemaphore
from accord.server.core.peer import Peer
from accord.server.core.results import ResultEncoder
from accord.server.notify.subscriber import Subscriber
from accord.server.notify.subscriptions import FilterGrant
from accord.server.tasks.notifier import ComparableState, is_missed, subscription_key
from accord.server.tasks.question_sender import QuestionSender
from accord.server.tasks.runner import TaskRunner
from accord.server.tasks.wire import core_task, detailed_task, task_info
from accord.session.pending_request import PendingRequest
from accord.session.rate import RateLimiter
from accord.store.tasks import TaskInput, TaskRecord

_POLL_SECONDS = 0.25
"""The interval at which a task of another process is looked up while a request waits for it."""

_MAX_READ_ERRORS = 20
"""Reads of a task that are tried again after errors of the store, one after the other, while a request waits for it."""

_READS = 4
"""Limit of the requests that read tasks of the store at once: a task may have a large result. Clients take turns."""

T = TypeVar("T")

RequestHandler = Callable[[PendingRequest, Peer], Coroutine[Any, Any, Any]]


class TaskMethods:
    """The request handlers of the methods about tasks, for one dispatcher."""

    def __init__(self, runner: TaskRunner, encoder: ResultEncoder, limits: Limits) -> None:
        self._runner = runner
        self._encoder = encoder
        self._limits = limits
        self._limiters: dict[str, RateLimiter] = {}
        self._reads = FairSemaphore(_READS)
        self.handlers: Mapping[str, RequestHandler] = {
            "tasks/get": self.get,
            "tasks/update": self.update,
            "tasks/cancel": self.cancel,
            "tasks/result": self.result,
            "tasks/list": self.list_page,
        }
        """The handlers, by method."""

    async def get(self, pending: PendingRequest, peer: Peer) -> Any:
        """Return the state of a task. Raises `InvalidParams` for an unknown one, `RateLimited`."""
        self._check_rate(peer)
        record = await self._find(_task_id(pending), pending, peer)
        if pending.rules.requested_tasks:
            return GetTaskResult(**task_info(record))
        return self._encoder.encode_fields({"resultType": "complete", **detailed_task(record)}, pending.rules)

    async def update(self, pending: PendingRequest, peer: Peer) -> EmptyResult:
        """Give a task answers to its questions. Raises `InvalidParams` for an unknown task, and for an answer that does
        not fit its question.
        """
        params = codec.decode_params(UpdateTaskParams, pending.params)
        record = await self._find(params.task_id, pending, peer)
        answers = {key: codec.encode(answer) for key, answer in params.input_responses.items()}
        try:
            if not record.ended:
                await self._runner.send(TaskInput(record.id, answers))
        except StoreError as error:
            raise InternalError(f"the answers cannot be stored, send them again: {error}") from error
        return EmptyResult()

    async def cancel(self, pending: PendingRequest, peer: Peer) -> Any:
        """Cancel a task. Raises `InvalidParams` for an unknown one; in 2025-11-25 also for one that has ended."""
        is_core = pending.rules.requested_tasks
        record = await self._find(_task_id(pending), pending, peer)
        if is_core and record.ended:
            raise _ended_already(record)
        if not record.ended:
            await self._send_cancellation(record)
        if not is_core:
            return EmptyResult()
        # it "MUST transition the task to `cancelled` status before sending the response"
        record = await self._wait_until_end(record, pending, peer)
        if record.status != "cancelled":  # it ended meanwhile
            raise _ended_already(record)
        return CancelTaskResult(**task_info(record))

    async def _send_cancellation(self, record: TaskRecord) -> None:
        try:
            await self._runner.send(TaskInput(record.id))
        except StoreError as error:
            raise InternalError(f"the cancellation cannot be stored, send it again: {error}") from error

    async def result(self, pending: PendingRequest, peer: Peer) -> Any:
        """Return the result of a task once it has ended; until then, ask the client what its handler asks.

        Raises `InvalidParams` for an unknown task and for one without a result, and the error of the call.
        """
        record = await self._find(_task_id(pending), pending, peer)
        pending.message_meta = related(record.id)
        sender = QuestionSender(self._runner, pending, peer, self._limits.answer_seconds)
        try:
            record = await self._wait_until_end(record, pending, peer, sender)
        finally:
            sender.close()
        if record.result is not None:
            return result_with_meta(record.result, record.id)
        if record.error is not None:
            raise msgspec.json.decode(record.error, type=ErrorObject).to_exception()
        raise InvalidParams(f"the task was {record.status}, so it has no result")

    async def list_page(self, pending: PendingRequest, peer: Peer) -> ListTasksResult:
        """Return one page of the tasks of the principal; without one, those of this process, which serves one client.

        Raises `InvalidParams` for an unknown cursor.
        """
        if not peer.channel.session.local_info.declares("tasks.list"):
            raise MethodNotFound("tasks/list needs authentication on this server")
        cursor, most = last_id(codec.decode_params(PaginatedParams, pending.params).cursor), self._limits.page_size
        records = await self._read(peer, self._runner.page(peer.principal, cursor, most + 1))
        shown = [each for each in records[:most] if self._is_visible(each, pending, peer)]
        return ListTasksResult(
            tasks=[core_task(each) for each in shown], next_cursor=records[most - 1].id if len(records) > most else None
        )

    # --- subscriptions -----------------------------------------------------------------------------------------

    async def grant(self, pending: PendingRequest, peer: Peer) -> FilterGrant | None:
        """Return the granted tasks of a `subscriptions/listen`. Raises `MissingClientCapability` for a client that does
        not declare the extension.
        """
        wanted = codec.decode_params(TaskListenParams, pending.params).notifications.task_ids
        if wanted is None:
            return None
        peer.channel.session.require_client_capability(pending, TASKS.capability)
        found = [await self._find_to_watch(id, pending, peer) for id in dict.fromkeys(wanted)]
        tasks = [each for each in found if each is not None]
        ids = [id for id, _ in tasks]
        return FilterGrant(
            {"taskIds": ids}, [subscription_key(id) for id in ids], partial(self._send_missed_states, tasks, peer)
        )

    async def _find_to_watch(self, id: str, pending: PendingRequest, peer: Peer) -> tuple[str, ComparableState] | None:
        """Return the id and the state of a task of this client. Its record is read again when its notification is sent:
        a subscription would otherwise hold the results of all of its tasks.
        """
        with suppress(InvalidParams):
            return id, self._runner.watch(await self._find(id, pending, peer))
        return None

    async def _send_missed_states(
        self, tasks: Iterable[tuple[str, ComparableState]], peer: Peer, subscriber: Subscriber
    ) -> None:
        """Send the notifications of what has changed before the subscription began, the next one when the client has
        read this one. Raises `InternalError`.
        """
        for id, state in tasks:
            record = await self._read(peer, self._runner.load(id))
            if record is not None and is_missed(record, state):
                self._runner.notify(subscriber, record)
                del record  # while it waits
                await subscriber.queue.wait_drained()

    # --- looking up --------------------------------------------------------------------------------------------

    async def _find(self, id: str, pending: PendingRequest, peer: Peer) -> TaskRecord:
        """Return a task of this client. Raises `InvalidParams`: the task of another client is as unknown as one that
        does not exist.
        """
        record = await self._read(peer, self._runner.load(id))
        if record is None or not self._is_visible(record, pending, peer):
            raise InvalidParams(UNKNOWN_TASK)
        return record

    async def _read(self, peer: Peer, read: Coroutine[Any, Any, T]) -> T:
        """Return what `read` returns, in the turn of the client. Raises `InternalError`."""
        try:
            async with self._reads.slot(peer.account):
                return await read
        except AccordError as error:
            raise InternalError(f"the tasks cannot be read: {error}") from error

    def _is_visible(self, record: TaskRecord, pending: PendingRequest, peer: Peer) -> bool:
        """Return whether a task belongs to the authorization context of a request: a token of the same principal with
        fewer scopes could otherwise have the result of a call that it may not make.
        """
        if not viewer_of(peer, pending).has_scopes(frozenset(record.scopes)):
            return False
        rules = RULES.get(record.revision, pending.rules)  # a record that cannot be read belongs to neither protocol
        return record.owner == peer.principal and rules.requested_tasks == pending.rules.requested_tasks

    async def _wait_until_end(
        self, record: TaskRecord, pending: PendingRequest, peer: Peer, sender: QuestionSender | None = None
    ) -> TaskRecord:
        """Return a task once it has ended, wherever it runs; until then, ask the client what its handler asks. Raises
        `InternalError` if the server stops before.
        """
        while not record.ended:
            running = self._runner.tasks.get(record.id)
            if running is not None:
                record, change = running.record, running.change
            if sender is not None:
                sender.send(record)
            if running is not None:
                await asyncio.wait((running.ended, change), return_when=asyncio.FIRST_COMPLETED)
                if running.is_abandoned:
                    raise InternalError("the server stops during this task, which the next process continues")
            else:
                await asyncio.sleep(_POLL_SECONDS)
                record = await self._find_again(record.id, pending, peer)
        return record

    async def _find_again(self, id: str, pending: PendingRequest, peer: Peer) -> TaskRecord:
        """Return a task that a request waits for, also after errors of the store: the user would be asked again."""
        for _ in range(_MAX_READ_ERRORS):
            with suppress(InternalError):
                return await self._find(id, pending, peer)
            await asyncio.sleep(_POLL_SECONDS)
        return await self._find(id, pending, peer)

    def _check_rate(self, peer: Peer) -> None:
        """Raise `RateLimited` for too many polls: "Servers MAY rate-limit clients"."""
        limiter = self._limiter_of(peer.account)
        now = self._runner.loop.time()
        if not limiter.allow(now):
            most = self._limits.tasks.polls_per_second
            what = f"too many tasks/get requests: the limit is {most:g} a second (TaskLimits.polls_per_second)"
            raise limiter.refusal(now, what)

    def _limiter_of(self, account: str) -> RateLimiter:
        """Return the limiter of an account. Beyond the limit, the least recently used one is dropped."""
        limiter = self._limiters.pop(account, None) or RateLimiter(self._limits.tasks.polls_per_second)
        self._limiters[account] = limiter
        if len(self._limiters) > self._limits.principals:
            del self._limiters[next(iter(self._limiters))]
        return limiter


def _ended_already(record: TaskRecord) -> InvalidParams:
    return InvalidParams(f"the task is {record.status} already, and cannot be cancelled")


def _task_id(pending: PendingRequest) -> str:
    """Return the id in the params. Raises `InvalidParams`."""
    if pending.rules.requested_tasks:
        return codec.decode_params(TaskParams, pending.params).task_id
    return codec.decode_params(TaskIdParams, pending.params).task_id
