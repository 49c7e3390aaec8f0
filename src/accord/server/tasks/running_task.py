"""A tool call that is, or may become, a task: its handler, its record, and the questions that it waits for."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Raw

from accord.errors import INTERNAL_ERROR, InternalError, InvalidParams, ProtocolError, StoreError, StoreFull, ToolError
from accord.messages import codec
from accord.messages.tasks import TaskStatus, related
from accord.redaction import describe_redacted
from accord.server.input.base import EncodedQuestion, OnceCache, decode_answer, encode_question
from accord.server.input.direct import checked_params
from accord.server.input.question import InputQuestion
from accord.server.input.request_state import digest
from accord.server.tasks.stored_questions import StoredQuestion, read_answer
from accord.session.incoming import code_of
from accord.session.pending_request import PendingRequest
from accord.store.tasks import AskedQuestion, TaskRecord

if TYPE_CHECKING:
    from accord.server.input.call import HandlerCall

log: logging.Logger = logging.getLogger("accord.server")

STOPPED = "the server stopped during this task; whether it took effect is unknown"
EXPIRED = "the task took longer than its ttl, and was cancelled"

Work = Callable[["HandlerCall"], Awaitable[Any]]
"""Runs the handler of a call and returns its encoded result."""


class _ToolResult(msgspec.Struct, rename="camel"):
    is_error: bool | None = None


class _ContentBlock(msgspec.Struct):
    text: str = ""


class _FailedResult(msgspec.Struct):
    content: list[_ContentBlock] = []


_read_result = msgspec.json.Decoder(_ToolResult).decode
_read_failed_result = msgspec.json.Decoder(_FailedResult).decode

_MAX_MESSAGE_CHARS = 1_000
"""The length of a status message."""


class TaskTable(Protocol):
    """The tasks of one server on one event loop, as one of them uses it; see `TaskRunner`."""

    result_bytes: int

    async def add(self, task: RunningTask) -> None:
        """Store the record of a new task. Raises `ProtocolError` beyond a limit, `StoreError`."""

    async def save(self, record: TaskRecord) -> None:
        """Store a record. Raises `StoreError`."""

    def hold(self, task: RunningTask, answers: Iterable[bytes]) -> Callable[[], None]:
        """Count the memory of answers until the task has ended, or the returned function is called. Raises `StoreFull`
        beyond a limit.
        """

    def changed(self, task: RunningTask) -> None:
        """Set the time of the change of a task, and notify its subscribers."""

    def remove(self, task: RunningTask, *, is_stored: bool) -> None:
        """Drop a task that has ended; store its record again later if it is not stored."""


class TaskQuestion:
    """A question that a handler waits for."""

    __slots__ = ("answer", "asked", "encoded", "question")

    def __init__(self, question: InputQuestion[Any], encoded: EncodedQuestion, asked: AskedQuestion) -> None:
        self.question: InputQuestion[Any] = question
        self.encoded: EncodedQuestion = encoded
        self.asked: AskedQuestion = asked
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


class StoredOnceCache(OnceCache):
    """The values of `ctx.once` of a task, which are stored before the handler continues."""

    def __init__(self, task: RunningTask) -> None:
        super().__init__(task.record.once)
        self._task = task

    async def once(self, key: str, make: Callable[[], Any]) -> bytes:
        """See `OnceCache.once`."""
        is_new = key not in self._task.record.once
        value = await super().once(key, make)
        if is_new and self._task.is_task:
            await self._task.store()
        return value


class RunningTask:
    """One call of a tool with `task=`, and the `InputRequester` of its handler. It is a task from `create` on."""

    is_interrupted = False

    def __init__(self, table: TaskTable, record: TaskRecord, call: HandlerCall) -> None:
        self.record: TaskRecord = record
        self.call: HandlerCall = call
        self.is_core: bool = call.pending.rules.requested_tasks
        """Whether it is a task of 2025-11-25."""
        self.is_task: bool = False
        """Whether it is stored, so that the client can have its id."""
        self._loop = asyncio.get_running_loop()
        self.created: asyncio.Future[None] = self._loop.create_future()
        """Done once it is a task."""
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Done once its status is final and stored."""
        self.change: asyncio.Future[None] = self._loop.create_future()
        """Done when its questions change; then there is another one for the next change."""
        self.questions: dict[str, TaskQuestion] = {}
        """The outstanding questions, by key."""
        self.once_cache: OnceCache = StoredOnceCache(self)
        self.handler: asyncio.Task[Any] | None = None
        self.expiry: asyncio.TimerHandle | None = None
        self._table = table
        self.ending: asyncio.Task[None] | None = None
        """Stores its final status; set from then on."""
        self._creating: asyncio.Task[None] | None = None
        self._position = len(record.asked)
        """The number of questions of this run of the handler; declared ones were asked before."""
        self._stop_reason = ""
        self._is_abandoned = False
        self._receiving: set[asyncio.Task[None]] = set()
        self._is_storing_answers = asyncio.Lock()
        self._thread = threading.get_ident()

    # --- creation ----------------------------------------------------------------------------------------------

    async def create(self) -> None:
        """Make the call a task, unless it is one or has ended. Raises `ProtocolError` beyond a limit, `StoreError`. A
        creation goes on if its caller is cancelled: the store may have the record already.
        """
        if self._creating is None and not self.is_task and not self.record.ended:
            self._creating = self._loop.create_task(self._create())
        if self._creating is not None:
            await asyncio.shield(self._creating)

    async def _create(self) -> None:
        try:
            await self._table.add(self)
            self.detach()
        finally:
            self._creating = None

    async def _finish_creation(self) -> None:
        while self._creating is not None:
            await asyncio.wait((self._creating,))

    async def try_create(self) -> bool:
        """Make the call a task if possible, and return whether it is one: otherwise the client waits for the result."""
        try:
            await self.create()
        except (ProtocolError, StoreError) as error:
            log.error("accord: the call of %r cannot become a task: %s", self.record.tool, error)
        return self.is_task

    def detach(self) -> None:
        """Give the handler a request that outlives that of the client."""
        self.is_task = True
        self.call.pending = _detached(self.call.pending, self.record.id, is_core=self.is_core)
        self.call.end_request_deadlines()
        self.created.set_result(None)

    def resume(self) -> None:
        """Continue a task of a process that has ended: its handler runs from the top."""
        self.record.status, self.record.questions = "working", {}
        self._position = 0
        self.detach()

    # --- the handler -------------------------------------------------------------------------------------------

    def start(self, work: Work) -> asyncio.Task[Any]:
        """Run the handler; the result of the asyncio task is that of a call that has not become a task."""
        self.handler = self._loop.create_task(self._run(work))
        self.handler.add_done_callback(self._release_content)
        return self.handler

    def _release_content(self, _: asyncio.Task[Any]) -> None:
        """Drop the arguments and the result after the end: the task, its call and its handler refer to each other, so
        that Python frees them only much later.
        """
        if self.is_task and self.record.ended and self.ended.done():
            self.record = self.record.head
            self.call.pending.params = Raw(b"{}")

    async def _run(self, work: Work) -> Any:
        try:
            outcome = await work(self.call)
            await self._finish_creation()
            if not self.is_task:
                self.record.status = "completed"
                return outcome
        except BaseException as exc:
            await self._finish_creation()
            if not self.is_task:
                self.record.status = "failed"
                raise
            await self._fail(exc)
            return None
        await self._complete(outcome if isinstance(outcome, Raw) else Raw(codec.encode(outcome)))
        return None

    async def _complete(self, result: Raw) -> None:
        if len(result) > self._table.result_bytes:
            what = f"the result has over {self._table.result_bytes:,} bytes (TaskLimits.result_bytes)"
            await self._end_with_error(InternalError(what))
            return
        if self.is_core and _read_result(result).is_error:  # failed "when the tool result has `isError` set to true"
            await self._end("failed", _error_text(result) or "the tool returned an error", result=bytes(result))
        else:
            await self._end("completed", result=bytes(result))

    async def _fail(self, exc: BaseException) -> None:
        if self._is_abandoned and self.ending is None:
            self.ended.set_result(None)
        elif self._stop_reason:
            await self._end_with_error(InternalError(self._stop_reason))
        elif isinstance(exc, asyncio.CancelledError):
            await self._end_with_error(InternalError("the handler was cancelled"))
        elif isinstance(exc, ProtocolError):
            await self._end_with_error(exc)
        else:
            await self._end_with_error(InternalError(f"the call failed: {describe_redacted(exc)}"))

    async def _end_with_error(self, error: ProtocolError) -> None:
        fields: dict[str, Any] = {"code": code_of(error, self.call.pending.rules), "message": error.message}
        encoded = codec.encode(fields if error.data is None else {**fields, "data": error.data})
        if len(encoded) > self._table.result_bytes:
            encoded = codec.encode({**fields, "message": error.message[:_MAX_MESSAGE_CHARS]})
        await self._end("failed", error.message[:_MAX_MESSAGE_CHARS], error=encoded)

    async def _end(
        self, status: TaskStatus, message: str | None = None, result: bytes | None = None, error: bytes | None = None
    ) -> None:
        """Store the final status, unless there is one, and then show it: "it MUST remain in `cancelled` status even if
        execution continues to completion or fails". That goes on if the caller is cancelled.
        """
        if self.ending is None:
            final = msgspec.structs.replace(
                self.record,
                status=status,
                message=message or self.record.message,
                params=b"",
                capabilities=b"{}",
                questions={},
                asked=[],
                once={},
                result=result,
                error=error,
                updated_at=time.time(),
            )
            if self.questions and asyncio.current_task() is not self.handler:
                self._cancel_handler()  # before its questions, so that it sees a cancellation and no failure
            for question in self.questions.values():
                question.answer.cancel()
            self.questions.clear()
            self.call.pending.end("answer")
            self.ending = self._loop.create_task(self._store_end(final))
        await asyncio.shield(self.ending)

    async def _store_end(self, final: TaskRecord) -> None:
        is_stored = True
        try:
            final = await self._save_end(final)
        except Exception as error:  # of any store: the task ends, and the client gets its result
            is_stored = False
            text = describe_redacted(error)
            log.error("accord: the end of a task of %r cannot be stored yet: %s", final.tool, text)
        record = self.record
        record.message, record.questions, record.updated_at = final.message, {}, final.updated_at
        record.result, record.error, record.status = final.result, final.error, final.status
        self._table.changed(self)
        if not self.ended.done():  # a task that is abandoned may be cancelled too
            self.ended.set_result(None)
        self._table.remove(self, is_stored=is_stored)

    async def _save_end(self, final: TaskRecord) -> TaskRecord:
        """Store the end of the task, and return it: a task whose result has no room fails. Raises `StoreError`."""
        try:
            await self._table.save(final)
        except StoreFull as full:
            reason = f"the result cannot be kept: {full}"[:_MAX_MESSAGE_CHARS]
            error = codec.encode({"code": INTERNAL_ERROR, "message": reason})
            final = msgspec.structs.replace(final, status="failed", message=reason, result=None, error=error)
            await self._table.save(final)
        return final

    # --- ending it from outside --------------------------------------------------------------------------------

    async def cancel(self) -> None:
        """Cancel the task: its status is final when this returns."""
        try:
            await self._end("cancelled", "cancelled by the client")
        finally:
            self._cancel_handler()

    async def withdraw(self) -> None:
        """Cancel a call whose client has gone before it learned the id."""
        self._cancel_handler()
        await self._finish_creation()
        if self.is_task:
            await self.cancel()

    async def expire(self) -> None:
        """Cancel a task that has reached its ttl."""
        await self.fail(EXPIRED)

    async def fail(self, reason: str) -> None:
        """End the task with an error, and cancel its handler."""
        await self._end_with_error(InternalError(reason))
        self._cancel_handler()

    def stop(self, *, abandon: bool) -> None:
        """Cancel the handler because the server stops; with `abandon`, the next process runs the handler again."""
        self._stop_reason, self._is_abandoned = STOPPED, abandon
        self._cancel_handler()

    def _cancel_handler(self) -> None:
        if self.handler is not None:
            self.handler.cancel()

    @property
    def is_abandoned(self) -> bool:
        """Whether it has ended here alone: the next process continues it."""
        return self.ended.done() and not self.record.ended

    # --- questions ---------------------------------------------------------------------------------------------

    @property
    def outlives(self) -> bool:
        """See `InputRequester.outlives`."""
        return self.is_task and self.ending is None

    def require_available(self, question: InputQuestion[Any]) -> None:
        """Raise `NotSupported` or `MissingClientCapability` if the question cannot be asked."""
        self._encode(question)

    def _encode(self, question: InputQuestion[Any]) -> EncodedQuestion:
        pending, peer = self.call.pending, self.call.peer
        if not self.is_core:
            return encode_question(question, pending, peer)
        params = codec.encode(checked_params(question, pending, peer))
        wire = codec.encode(StoredQuestion(question.method, Raw(params), question.needs))
        return EncodedQuestion(question, Raw(wire), digest(question.method.encode(), params))

    async def request(self, questions: Sequence[InputQuestion[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """Return the answers in order; the call becomes a task that requires input. Raises `ToolError` if it cannot
        become one.
        """
        encoded = [self._encode(question) for question in questions]
        if not await self.try_create():
            raise ToolError("the client cannot be asked: the call cannot become a task")
        asked = [self._next_question(each) for each in encoded]
        open = {
            each.key: TaskQuestion(question, wire, each)
            for question, wire, each in zip(questions, encoded, asked, strict=True)
            if each.answer is None
        }
        if open:
            await self._wait(open)
        return [
            read_answer(question, each.answer or b"")
            if self.is_core
            else decode_answer(each.key, question, each.answer or b"")
            for question, each in zip(questions, asked, strict=True)
        ]

    def _next_question(self, encoded: EncodedQuestion) -> AskedQuestion:
        """Return the next question of this run: that of the earlier run, if it was the same."""
        record, position = self.record, self._position
        self._position += 1
        if position < len(record.asked) and record.asked[position].digest == encoded.digest:
            asked = record.asked[position]
            if asked.answer is not None and not self.is_core:
                try:
                    decode_answer(asked.key, encoded.question, asked.answer)
                except InvalidParams:  # it came before its question, and does not fit
                    asked.answer = None
            return asked
        del record.asked[position:]
        record.question_count += 1
        # "Each request key in `inputRequests` MUST be unique over the lifetime of a single task"
        record.asked.append(AskedQuestion(f"ask-{record.question_count}", encoded.digest))
        return record.asked[-1]

    async def _wait(self, open: Mapping[str, TaskQuestion]) -> None:
        """Show questions until all are answered."""
        self.questions |= open
        try:
            self._show_questions()
            await self.store()
            await asyncio.gather(*(each.answer for each in open.values()))
        finally:
            if [key for key in open if self.questions.pop(key, None)]:  # superseded, by a timeout of the handler
                self._show_questions()

    def _show_questions(self) -> None:
        if self.ending is not None:
            return
        self.record.questions = {key: bytes(each.encoded.wire) for key, each in self.questions.items()}
        self.record.status = "input_required" if self.questions else "working"
        self.show_change()
        self._table.changed(self)

    def show_change(self) -> None:
        """Let all requests that wait for the task look at its questions."""
        self.change.set_result(None)
        self.change = self._loop.create_future()

    async def receive_answers(self, answers: Mapping[str, bytes]) -> None:
        """Give the handler these answers; keys without an outstanding question are ignored. An answer to a question of
        an earlier run, which this run has not asked yet, is kept for it.

        Raises `InvalidParams` for an answer that does not fit its question (in 2025-11-25 the handler learns that), and
        `StoreError`: then all stay open. It goes on if the caller is cancelled: the handler would not learn of an
        answer that is stored.
        """
        receiving = self._loop.create_task(self._receive_answers(answers))
        self._receiving.add(receiving)
        receiving.add_done_callback(self._receiving.discard)
        await asyncio.shield(receiving)

    async def _receive_answers(self, answers: Mapping[str, bytes]) -> None:
        async with self._is_storing_answers:  # one that is sent again meanwhile may have to take the place of this one
            await self._store_answers(answers)

    async def _store_answers(self, answers: Mapping[str, bytes]) -> None:
        open = {key: self.questions[key] for key in answers if key in self.questions}
        if not self.is_core:
            for key, waiting in open.items():
                decode_answer(key, waiting.question, answers[key])
        later = self.record.asked[self._position :]
        early = [each for each in later if each.key in answers and each.answer is None]
        asked = [*(waiting.asked for waiting in open.values()), *early]
        if not asked:
            return
        release = self._table.hold(self, [answers[each.key] for each in asked])
        for each in asked:
            each.answer = answers[each.key]
            self.questions.pop(each.key, None)
        try:
            await self._table.save(self.record)
        except StoreError:
            release()
            for each in asked:
                each.answer = None
            # a handler may have stopped waiting meanwhile
            self.questions |= {key: waiting for key, waiting in open.items() if not waiting.answer.done()}
            raise
        self._show_questions()
        for waiting in open.values():
            if not waiting.answer.done():
                waiting.answer.set_result(None)

    # --- ctx ---------------------------------------------------------------------------------------------------

    def set_status(self, message: str) -> None:
        """Set the status message. Callable from any thread."""
        if threading.get_ident() == self._thread:
            self._set_status(message)
        else:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._set_status, message)

    def _set_status(self, message: str) -> None:
        message = message[:_MAX_MESSAGE_CHARS]
        if self.ending is None and message != self.record.message:
            self.record.message = message
            self._table.changed(self)

    async def store(self) -> None:
        """Store the record, unless its end is stored. Raises `ToolError`."""
        if self.ending is not None:
            return
        try:
            await self._table.save(self.record)
        except StoreError as error:
            raise ToolError(f"the task cannot be stored: {error}") from error


def _detached(pending: PendingRequest, id: str, *, is_core: bool) -> PendingRequest:
    """Return the request of a handler whose client has the id of its task. Its messages go where those of the session
    go, and end with the task.
    """
    meta = pending.meta
    if meta is not None and not is_core:
        # "`notifications/progress` and `notifications/message` [...] are not supported on tasks in general"
        meta = msgspec.structs.replace(meta, progress_token=None, log_level=None)
    return PendingRequest(
        pending.id,
        pending.method,
        pending.rules,
        pending.params,
        meta,
        pending.capabilities,
        last_progress=pending.last_progress,
        principal=pending.principal,
        headers=pending.headers,
        message_meta=related(id) if is_core else None,
    )


def _error_text(result: Raw) -> str:
    """Return the text of a result with `isError`, for the status message: some clients show only that."""
    return "\n".join(each.text for each in _read_failed_result(result).content if each.text)[:_MAX_MESSAGE_CHARS]
