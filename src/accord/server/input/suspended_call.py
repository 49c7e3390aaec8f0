"""Input for a handler that must not run twice: the handler waits for the answers (2026-07-28).

The handler runs in a task of its own. Each request of the call is a *step*: it brings answers, and ends with the next
question or with the result. The outcome of a step is stored, so that a retry that is sent again, or twice at once, gets
the same outcome and nothing happens twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Raw

from accord.errors import AccordError, InternalError, InvalidParams, ToolError, copy_error
from accord.messages import codec
from accord.messages.bounds import FIELD_BYTES, memory_of
from accord.redaction import describe_redacted
from accord.server.input.base import EncodedQuestion, OnceCache, decode_answer, encode_question
from accord.server.input.question import InputQuestion
from accord.server.input.request_state import RequestState, StateExpired

if TYPE_CHECKING:
    from accord.server.core.peer import Peer
    from accord.server.input.call import HandlerCall

_STEPS = 8
"""Outcomes that are stored for a repeated retry; a client further behind has not just lost a response."""

_BASE_BYTES = 4 << 10
"""Approximate bytes of a suspended call besides its outcomes."""

Outcome = Any
"""An encoded result, an `input_required` result, or a `Failure`."""

MakeInputRequired = Callable[[RequestState, Mapping[str, EncodedQuestion]], Outcome]
"""Makes the `input_required` result with this state and these questions."""


class SuspendedCallTable(Protocol):
    """The suspended calls of one server on one event loop, as one of them uses it; see `SuspendedCalls`."""

    seconds: float

    def start(self, call: SuspendedCall, work: Coroutine[Any, Any, None]) -> None:
        """Run the handler of a call in a task of its own, at once until it first waits."""

    def mark_ended(self, call: SuspendedCall) -> None:
        """Record that a handler has ended."""

    def identify(self, state: RequestState, account: str) -> None:
        """Give the state of a new call its nonce."""

    def admit_waiting(self, call: SuspendedCall) -> None:
        """Make room for a handler that is about to wait with no request in flight."""

    def set_waiting(self, call: SuspendedCall, resting: bool) -> None:
        """Record whether a handler waits with no request in flight."""

    def hold(self, call: SuspendedCall, size: int) -> None:
        """Count `size` more bytes that a handler holds. Raises `ToolError`."""


class Failure:
    """The error of a step. The error itself is raised once, for the log, and then holds the frames that it passed, with
    all that the request has sent. Repeated requests get a copy.
    """

    __slots__ = ("_copy", "_error")

    def __init__(self, error: BaseException) -> None:
        self._error: BaseException | None = error
        self._copy: AccordError
        if isinstance(error, AccordError):
            self._copy = copy_error(error)
        else:
            self._copy = InternalError(f"the call failed: {describe_redacted(error)}")
        self._copy.__cause__ = None

    def take(self) -> BaseException:
        """Return the error to raise."""
        error, self._error = self._error, None
        return copy_error(self._copy) if error is None else error


class SuspendedCall:
    """A call whose handler runs once, through any number of requests."""

    is_interrupted = False

    def __init__(
        self, call: HandlerCall, state: RequestState, ask: MakeInputRequired, table: SuspendedCallTable
    ) -> None:
        self.account: str = call.peer.account
        """The account whose quota it uses while it waits."""
        self.anonymous: bool = call.peer.account != call.peer.principal
        """Whether its client is not authenticated, over HTTP."""
        self.peer: Peer = call.peer
        """The client that it serves."""
        self.once_cache: OnceCache = OnceCache()
        self._call = call
        self._state = state
        self._make_input_required = ask
        self._suspended_calls = table
        self._steps: dict[int, asyncio.Future[Outcome]] = {}
        """The outcomes of the last steps, by number."""
        self._step_count = 0
        """The number of steps."""
        self._outcome_delivered = False
        """Whether a request has received the last outcome."""
        self._waiters = 0
        self._waiting: dict[str, tuple[EncodedQuestion, set[asyncio.Future[Any]]]] = {}
        """The questions that the handler waits for, and the futures that wait for each."""
        self._round: dict[str, Any] = {}
        """The keys of the outstanding questions, and the answers so far."""
        self._flushing = False
        self._count = 0
        self.task: asyncio.Task[None] | None = None
        """The task of the handler."""
        self.ended: bool = False
        """Whether the handler has ended or was cancelled, so that it can ask no more questions."""
        self.size: int = _BASE_BYTES
        """Bytes of the outcomes that are stored after it has ended."""
        self.memory: int = 0
        """Approximate bytes of the client's data that it holds until it has ended; 0 over stdio, where the client has
        started the server.
        """
        self._answers_memory = 0
        self._arguments_memory: int | None = None
        self._most_nodes = call.peer.channel.session.limits.http.body_nodes
        self._deadline: asyncio.TimerHandle | None = None
        self._why = "the call was cancelled while it ran; whether it took effect is not known"

    # --- requests ----------------------------------------------------------------------------------------------

    async def start(self, work: Callable[[HandlerCall], Awaitable[Outcome]]) -> Outcome:
        """Start the handler for the first request, and return the outcome of that request."""
        step = self._begin_step()
        self._suspended_calls.start(self, self._run(work))
        return await self._wait_for_step(step)

    async def resume(self, step: int, answers: Mapping[str, bytes], call: HandlerCall) -> Outcome:
        """Deliver the answers of a step, and return its outcome. A repeated step returns its stored outcome.

        Raises `InvalidParams` for invalid answers, `ToolError` without memory for them; the handler then waits on.
        """
        if step > self._step_count:
            raise InvalidParams("requestState is ahead of the call it belongs to")
        if step < self._step_count - _STEPS:
            raise StateExpired("this question has already been answered; the call has continued")
        if step == self._step_count:
            if missing := self._count_answers(
                answers
            ):  # "respond with a new InputRequiredResult requesting the missing information again"
                return self._make_input_required(self._state, missing)
            self._begin_step()
            self._rebind(call)
            self._deliver_answers()
        return await self._wait_for_step(self._steps[step])

    def _receive_answers(self, answers: Mapping[str, bytes]) -> dict[str, EncodedQuestion]:
        """Store the answers to outstanding questions, and return the questions without one. A round is answered as a
        whole.
        """
        open = {key: self._waiting[key][0] for key in self._round if key in self._waiting}
        self._round |= {
            key: decode_answer(key, encoded.question, answers[key]) for key, encoded in open.items() if key in answers
        }
        return {key: encoded for key, encoded in open.items() if self._round[key] is None}

    def _count_answers(self, answers: Mapping[str, bytes]) -> dict[str, EncodedQuestion]:
        """Call `_receive_answers`, and count the memory of the answers, which the handler may hold until it has
        ended.
        """
        if not self.account:
            return self._receive_answers(answers)
        size = sum(memory_of(answer, self._most_nodes) for answer in answers.values())
        self._suspended_calls.hold(self, size)
        try:
            missing = self._receive_answers(answers)
        except BaseException:
            self._suspended_calls.hold(self, -size)
            raise
        self._answers_memory += size
        return missing

    def _held_memory(self) -> int:
        """Return the bytes of the client's data in its frames: arguments, answers and headers. A retry repeats the
        arguments and has answers, which count as text.
        """
        params, headers = self._call.pending.params, self._call.pending.headers or ()
        size = self._answers_memory + FIELD_BYTES * len(headers)
        if not isinstance(params, Raw):
            return size
        if self._arguments_memory is None:
            self._arguments_memory = memory_of(bytes(params), self._most_nodes)
            return size + self._arguments_memory
        return size + self._arguments_memory + len(params)

    def _rebind(self, call: HandlerCall) -> None:
        self._call.rebind(call)
        self.peer = call.peer

    def _deliver_answers(self) -> None:
        """Resume the handler with the answers."""
        for key, value in self._round.items():
            for place in self._waiting.pop(key, (None, ()))[1]:
                if not place.done():
                    place.set_result(value)
        self._round = {}
        self._flush_soon()  # questions asked meanwhile, with no request in flight

    def _begin_step(self) -> asyncio.Future[Outcome]:
        if self._deadline is not None:
            self._set_deadline(None)
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._steps[self._step_count] = future
        self._step_count += 1
        self._steps.pop(self._step_count - _STEPS - 1, None)
        self._outcome_delivered = False
        return future

    @property
    def _last(self) -> asyncio.Future[Outcome]:
        return self._steps[self._step_count - 1]

    async def _wait_for_step(self, step: asyncio.Future[Outcome]) -> Outcome:
        """Wait for a step to end. The cancellation of the last waiting request cancels the handler."""
        if not step.done():
            self._waiters += 1
            try:
                await asyncio.shield(step)
            except asyncio.CancelledError:
                if self._waiters == 1 and not (self._last.done() and self._outcome_delivered):
                    self.cancel()  # no client has a state to resume it with
                raise
            finally:
                self._waiters -= 1
        outcome = step.result()
        self._outcome_delivered = self._outcome_delivered or step is self._last
        if isinstance(outcome, Failure):
            raise outcome.take()
        return outcome

    # --- the handler -------------------------------------------------------------------------------------------

    async def request(self, questions: Sequence[InputQuestion[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """Wait for the answers, while the request in flight is answered with the questions."""
        encoded = [self._encode_question(question) for question in questions]
        places = [self._wait_for(*both) for both in zip(keys or self._keys(questions), encoded, strict=True)]
        self._flush_soon()
        try:
            return await asyncio.gather(*(place for _, place in places))
        finally:
            for key, place in places:
                self._stop_waiting(key, place)

    def _encode_question(self, question: InputQuestion[Any]) -> EncodedQuestion:
        if self.ended:
            raise StateExpired("this call has ended, so the client cannot be asked")
        return encode_question(question, self._call.pending, self.peer)

    def _keys(self, questions: Sequence[InputQuestion[Any]]) -> list[str]:
        first = self._count + 1
        self._count += len(questions)
        return [f"ask-{number}" for number in range(first, self._count + 1)]

    def _wait_for(self, key: str, encoded: EncodedQuestion) -> tuple[str, asyncio.Future[Any]]:
        """Return a future for an answer; questions with one key are asked once."""
        place: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, (encoded, set()))[1].add(place)
        return key, place

    def _stop_waiting(self, key: str, place: asyncio.Future[Any]) -> None:
        """Remove a future; a question without futures is not asked again."""
        _, places = self._waiting.get(key, (None, set()))
        places.discard(place)
        if not places:
            self._waiting.pop(key, None)

    @property
    def nonce(self) -> bytes:
        """Identifies its states; empty before its first question, unless it has declared questions."""
        return self._state.nonce

    @property
    def outlives(self) -> bool:
        """As `InputRequester.outlives`: until the handler has ended."""
        return not self.ended

    def require_available(self, question: InputQuestion[Any]) -> None:
        """Raise `NotSupported` or `MissingClientCapability` if the question cannot be asked."""
        self._encode_question(question)

    async def _run(self, work: Callable[[HandlerCall], Awaitable[Outcome]]) -> None:
        """Run the handler. A cancellation is not raised again: the task would keep the frames of the handler alive."""
        try:
            self._end_step(await work(self._call), None)
        except BaseException as exc:
            cancelled = isinstance(exc, asyncio.CancelledError)
            why = ToolError(self._why)
            self._end_step(None, why if cancelled else exc)
        finally:
            self._end()

    def _end(self) -> None:
        """Release everything except the outcomes."""
        self.ended = True
        if self._waiting:
            self._fail_waiters(asyncio.CancelledError())
        if self._deadline is not None:
            self._set_deadline(None)
        self._suspended_calls.mark_ended(self)
        self.task = None
        del self._call, self._make_input_required

    def _flush_soon(self) -> None:
        """Schedule the questions of this iteration of the loop to be asked together."""
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if not self._waiting or self._last.done():
            return  # already answered, or no request is in flight: the next request returns the questions
        self._round = dict.fromkeys(self._waiting)
        self._state.step = self._step_count
        if not self._state.nonce:
            self._suspended_calls.identify(self._state, self.account)
        try:
            if self.account:
                self._suspended_calls.hold(self, self._held_memory() - self.memory)
            self._suspended_calls.admit_waiting(self)
            outcome = self._make_input_required(
                self._state, {key: encoded for key, (encoded, _) in self._waiting.items()}
            )
        except Exception as error:  # the handler receives the reason why it cannot ask
            self._fail_waiters(error)
        else:
            self._set_deadline(asyncio.get_running_loop().call_later(self._suspended_calls.seconds, self.cancel))
            self._end_step(outcome, None)

    def _fail_waiters(self, why: BaseException) -> None:
        """Raise an error wherever the handler waits for an answer."""
        for _, places in self._waiting.values():
            for place in places:
                if not place.done():
                    place.set_exception(why)
        self._waiting.clear()

    def _set_deadline(self, deadline: asyncio.TimerHandle | None) -> None:
        """Set or clear the deadline of a handler that waits with no request in flight."""
        if self._deadline is not None:
            self._deadline.cancel()
        if (deadline is None) != (self._deadline is None):
            self._suspended_calls.set_waiting(self, deadline is not None)
        self._deadline = deadline

    def _end_step(self, outcome: Outcome, error: BaseException | None) -> None:
        step = self._last
        if step.done():  # no request is in flight: the next one gets the outcome
            step = self._begin_step()
        if error is None:
            packed = outcome if isinstance(outcome, Raw) else Raw(codec.encode(outcome))
            self.size += len(packed)
            step.set_result(packed)
        else:
            self.size += self._held_memory()  # its traceback holds what the handler had
            step.set_result(Failure(error))

    def cancel(self, why: str = "") -> None:
        """Cancel the handler; `why` is the error text of later requests."""
        self.ended = True
        self._why = why or self._why
        if self.task is not None:
            self.task.cancel()
