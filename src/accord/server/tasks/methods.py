"""The methods about tasks: `tasks/get`, `tasks/update` and `tasks/cancel` of the extension (2026-07-28), `tasks/get`,
`tasks/result`, `tasks/list` and `tasks/cancel` of the core (2025-11-25), and the tasks of a subscription.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import msgspec

from accord.errors import (
    AccordError,
    ConnectionLost,
    InternalError,
    InvalidParams,
    MethodNotFound,
    NotConnected,
    StoreError,
    StoreFull,
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
from accord.server.input.direct import checked_params, request_answer
from accord.server.notify.subscriber import Subscriber
from accord.server.notify.subscriptions import FilterGrant
from accord.server.tasks.notifier import ComparableState, is_missed, subscription_key
from accord.server.tasks.runner import TaskRunner
from accord.server.tasks.running_task import RunningTask, TaskQuestion
from accord.server.tasks.wire import core_task, detailed_task, task_info
from accord.session.pending_request import PendingRequest
from accord.session.rate import RateLimiter
from accord.store.tasks import TaskInput, TaskRecord

log: logging.Logger = logging.getLogger("accord.server")

_POLL_SECONDS = 0.25
"""The interval at which a task of another process is looked up while a request waits for it."""

_AGAIN_SECONDS = 1.0
"""The interval at which an answer is stored again after an error of the store."""

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
        running = self._runner.tasks.get(record.id)
        try:
            if running is not None:
                await running.receive_answers(answers)
            elif not record.ended:
                await self._runner.store.send(TaskInput(record.id, answers))
        except StoreError as error:
            raise InternalError(f"the answers cannot be stored, send them again: {error}") from error
        return EmptyResult()

    async def cancel(self, pending: PendingRequest, peer: Peer) -> Any:
        """Cancel a task. Raises `InvalidParams` for an unknown one; in 2025-11-25 also for one that has ended."""
        is_core = pending.rules.requested_tasks
        record = await self._find(_task_id(pending), pending, peer)
        if is_core and record.ended:
            raise _ended_already(record)
        running = self._runner.tasks.get(record.id)
        if running is not None:
            await running.cancel()
        elif not record.ended:
            await self._send_cancellation(record)
            if is_core:  # it "MUST transition the task to `cancelled` status before sending the response"
                record = await self._wait_elsewhere(record.id, pending, peer)
        if not is_core:
            return EmptyResult()
        if record.status != "cancelled":  # it ended meanwhile
            raise _ended_already(record)
        return CancelTaskResult(**task_info(record))

    async def _send_cancellation(self, record: TaskRecord) -> None:
        try:
            await self._runner.store.send(TaskInput(record.id))
        except StoreError as error:
            raise InternalError(f"the cancellation cannot be stored, send it again: {error}") from error

    async def result(self, pending: PendingRequest, peer: Peer) -> Any:
        """Return the result of a task once it has ended; until then, ask the client what its handler asks.

        Raises `InvalidParams` for an unknown task and for one without a result, and the error of the call.
        """
        record = await self._find(_task_id(pending), pending, peer)
        if not record.ended:
            record = await self._wait_until_end(record, pending, peer)
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

    async def _wait_until_end(self, record: TaskRecord, pending: PendingRequest, peer: Peer) -> TaskRecord:
        """Return a task once it has ended; ask the client what its handler asks while it runs here, which it may do
        only after the end of another process.
        """
        while not record.ended:
            running = self._runner.tasks.get(record.id)
            if running is not None:
                record, pending.message_meta = running.record, related(record.id)
                await QuestionSender(running, pending, peer, self._limits.answer_seconds).send_until_end()
                return record
            await asyncio.sleep(_POLL_SECONDS)
            record = await self._find(record.id, pending, peer)
        return record

    async def _wait_elsewhere(self, id: str, pending: PendingRequest, peer: Peer) -> TaskRecord:
        """Return a task of another process once it has ended."""
        while True:
            record = await self._find(id, pending, peer)
            if record.ended:
                return record
            await asyncio.sleep(_POLL_SECONDS)

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


class QuestionSender:
    """Sends the questions of a task as part of one `tasks/result` request (2025-11-25): "When the requestor encounters
    the `input_required` status, it SHOULD preemptively call `tasks/result`".
    """

    def __init__(self, task: RunningTask, pending: PendingRequest, peer: Peer, seconds: float) -> None:
        self._task = task
        self._pending = pending
        self._peer = peer
        self._seconds = seconds
        self._sending: set[asyncio.Task[None]] = set()
        self._is_lost = False
        """Whether the client cannot be asked here any more."""

    async def send_until_end(self) -> None:
        """Return when the task has ended. What was not answered when the request ends, a later request asks again."""
        task = self._task
        assert task.asks is not None
        try:
            while not task.ended.done():
                task.asks.clear()
                for key, question in list(task.questions.items()):
                    if not (question.is_sent or self._is_lost):
                        self._start(key, question)
                asks = asyncio.ensure_future(task.asks.wait())
                try:
                    await asyncio.wait((task.ended, asks), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    asks.cancel()
        finally:
            for sending in self._sending:
                sending.cancel()

    def _start(self, key: str, question: TaskQuestion) -> None:
        question.is_sent = True
        sending = asyncio.ensure_future(self._send(key, question))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    async def _send(self, key: str, open: TaskQuestion) -> None:
        question, task = open.question, self._task
        try:
            params = checked_params(question, task.call.pending, self._peer)
            raw, _ = await request_answer(question, params, self._pending, self._peer, self._seconds)
            await self._receive(key, open, raw)
        except (asyncio.CancelledError, ConnectionLost, NotConnected) as error:  # a later request asks again
            open.is_sent, self._is_lost = False, True
            if task.asks is not None:
                task.asks.set()
            if isinstance(error, asyncio.CancelledError):
                raise
        except AccordError as error:  # the handler learns why it gets no answer
            if not open.answer.done():
                open.answer.set_exception(error)

    async def _receive(self, key: str, open: TaskQuestion, answer: bytes) -> None:
        """Give the task an answer, also after errors of the store: the user would have to answer again. Raises
        `StoreFull`, and `InvalidParams` for an answer that does not fit.
        """
        while not open.answer.done():
            try:
                await self._task.receive_answers({key: answer})
                break
            except StoreFull:
                raise
            except StoreError as error:
                log.error("accord: an answer for a task cannot be stored yet: %s", error)
                await asyncio.sleep(_AGAIN_SECONDS)
