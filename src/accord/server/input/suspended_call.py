"""Asking while the handler waits: for what may not run twice (2026-07-28).

The handler runs in a task of its own. Each request of the call is a *step*: it brings answers, and ends with the next
question or with the result. The outcome of a step is kept, so that a retry whose answer was lost, or that was sent
twice at once, gets the same outcome and nothing happens twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
"""Outcomes that are kept for a retry that is sent again; a client that is further behind is not one that lost one."""

_BASE_BYTES = 4 << 10
"""Bytes that a run takes besides its outcomes, about."""

Outcome = Any
"""A result that is ready to send, the questions that stand before it, or a `Failure`."""

MakeInputRequired = Callable[[RequestState, Mapping[str, EncodedQuestion]], Outcome]
"""Makes the result that asks these questions and carries this state."""


class SuspendedCallTable(Protocol):
    """The runs of one server on one event loop, as one of them uses it; see `SuspendedCalls`."""

    seconds: float

    def add(self, run: SuspendedCall) -> None:
        """A handler has begun."""

    def mark_ended(self, run: SuspendedCall) -> None:
        """A handler has ended."""

    def admit_waiting(self, run: SuspendedCall) -> None:
        """A handler is about to wait with nothing in flight."""

    def set_waiting(self, run: SuspendedCall, resting: bool) -> None:
        """A handler waits with nothing in flight, or no longer does."""

    def hold(self, run: SuspendedCall, size: int) -> None:
        """A handler holds so many bytes more. Raises `ToolError`."""


class Failure:
    """An error that a step ended with. It is raised itself once, for the log; from then on it holds the frames that it
    went through, with all that the request has sent. Whoever sends the request again gets a copy.
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
        """Return what is to be raised."""
        error, self._error = self._error, None
        return copy_error(self._copy) if error is None else error


class SuspendedCall:
    """A handler that runs once, however many requests that takes."""

    is_interrupted = False

    def __init__(
        self, call: HandlerCall, state: RequestState, ask: MakeInputRequired, runs: SuspendedCallTable
    ) -> None:
        self.nonce: bytes = state.nonce
        """What its states are known by."""
        self.account: str = call.peer.account
        """Whose room it takes while it waits."""
        self.anonymous: bool = call.peer.shared
        """Whether nobody vouches for its client, over HTTP."""
        self.peer: Peer = call.peer
        """The client that it runs for."""
        self.once_cache: OnceCache = OnceCache()
        self._call = call
        self._state = state
        self._make_input_required = ask
        self._suspended_calls = runs
        self._steps: dict[int, asyncio.Future[Outcome]] = {}
        """How the last steps ended, by their number."""
        self._step_count = 0
        """How many steps there were."""
        self._outcome_delivered = False
        """Whether anybody has got the outcome of the last one."""
        self._waiters = 0
        self._waiting: dict[str, tuple[EncodedQuestion, set[asyncio.Future[Any]]]] = {}
        """What the handler waits for, and each place where it does."""
        self._round: dict[str, Any] = {}
        """The keys of what was asked last, and the answers that have come so far."""
        self._flushing = False
        self._count = 0
        self.task: asyncio.Task[None] | None = None
        """What runs the handler."""
        self.ended: bool = False
        """Whether the handler has ended, or was told to: nothing can be asked any more."""
        self.size: int = _BASE_BYTES
        """Bytes that are held when it has ended."""
        self.memory: int = 0
        """Bytes of the client that are held until it has ended, about; 0 over stdio, where it has started the
        server."""
        self._answers_memory = 0
        self._arguments_memory: int | None = None
        self._most_nodes = call.peer.channel.session.limits.http.body_nodes
        self._deadline: asyncio.TimerHandle | None = None
        self._why = "the call was cancelled while it ran; whether it took effect is not known"

    # --- what requests do --------------------------------------------------------------------------------------

    async def start(self, work: Callable[[HandlerCall], Awaitable[Outcome]]) -> Outcome:
        """Start the handler on behalf of the first request; how that request ends."""
        step = self._begin_step()
        self._suspended_calls.add(self)
        self.task = asyncio.get_running_loop().create_task(self._run(work))
        return await self._wait_for_step(step)

    async def resume(self, step: int, answers: Mapping[str, bytes], call: HandlerCall) -> Outcome:
        """Bring the answers of step `step`; how it ends. A step that was taken before ends as it did then.

        Raises `InvalidParams` for answers that are none, `ToolError` where there is no room for them; the handler
        waits on.
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
        """Keep the answers to what was asked last; what is still missing of it. A round is answered as a whole."""
        open = {key: self._waiting[key][0] for key in self._round if key in self._waiting}
        self._round |= {
            key: decode_answer(key, asked.question, answers[key]) for key, asked in open.items() if key in answers
        }
        return {key: asked for key, asked in open.items() if self._round[key] is None}

    def _count_answers(self, answers: Mapping[str, bytes]) -> dict[str, EncodedQuestion]:
        """As `_receive_answers`, and count them: the handler may hold all answers until it has ended."""
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
        """Bytes of the client that its frames hold: arguments, answers and headers. A retry repeats the arguments and
        has answers, which count as text.
        """
        params, headers = self._call.exchange.params, self._call.exchange.headers or ()
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
        """Let the handler go on with the answers."""
        for key, value in self._round.items():
            for place in self._waiting.pop(key, (None, ()))[1]:
                if not place.done():
                    place.set_result(value)
        self._round = {}
        self._flush_soon()  # what was asked since, with nothing in flight

    def _begin_step(self) -> asyncio.Future[Outcome]:
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
        """Wait for a step to end. The request that is cancelled last takes the handler with it."""
        self._waiters += 1
        try:
            outcome = await asyncio.shield(step)
        except asyncio.CancelledError:
            if self._waiters == 1 and not (self._last.done() and self._outcome_delivered):
                self.cancel()  # nobody knows how to go on with it
            raise
        else:
            self._outcome_delivered = self._outcome_delivered or step is self._last
            if isinstance(outcome, Failure):
                raise outcome.take()
            return outcome
        finally:
            self._waiters -= 1

    # --- what the handler does ---------------------------------------------------------------------------------

    async def request(self, questions: Sequence[InputQuestion[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """Wait for the answers, with the request answered meanwhile."""
        asked = [self._encode_question(question) for question in questions]
        places = [self._wait_for(*both) for both in zip(keys or self._keys(questions), asked, strict=True)]
        self._flush_soon()
        try:
            return await asyncio.gather(*(place for _, place in places))
        finally:
            for key, place in places:
                self._stop_waiting(key, place)

    def _encode_question(self, question: InputQuestion[Any]) -> EncodedQuestion:
        if self.ended:
            raise StateExpired("this call has ended, so the client cannot be asked")
        return encode_question(question, self._call.exchange, self.peer)

    def _keys(self, questions: Sequence[InputQuestion[Any]]) -> list[str]:
        first = self._count + 1
        self._count += len(questions)
        return [f"ask-{number}" for number in range(first, self._count + 1)]

    def _wait_for(self, key: str, asked: EncodedQuestion) -> tuple[str, asyncio.Future[Any]]:
        """A place in the handler that waits; what is asked at several places under one name is asked once."""
        place: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, (asked, set()))[1].add(place)
        return key, place

    def _stop_waiting(self, key: str, place: asyncio.Future[Any]) -> None:
        """Nobody waits there any more: what nobody waits for is not asked again."""
        _, places = self._waiting.get(key, (None, set()))
        places.discard(place)
        if not places:
            self._waiting.pop(key, None)

    @property
    def outlives(self) -> bool:
        """As `InputRequester.outlives`: until the handler has ended."""
        return not self.ended

    def require_available(self, question: InputQuestion[Any]) -> None:
        """Whether it can be asked. Raises `NotSupported`, `MissingClientCapability`."""
        self._encode_question(question)

    async def _run(self, work: Callable[[HandlerCall], Awaitable[Outcome]]) -> None:
        """Run the handler. A cancel is not raised again: the task would hold the frames of the handler with it."""
        try:
            self._end_step(await work(self._call), None)
        except BaseException as exc:
            cancelled = isinstance(exc, asyncio.CancelledError)
            why = ToolError(self._why)
            self._end_step(None, why if cancelled else exc)
        finally:
            self._end()

    def _end(self) -> None:
        """From here on there are only the outcomes: let go of all else."""
        self.ended = True
        self._fail_waiters(asyncio.CancelledError())
        self._set_deadline(None)
        self._suspended_calls.mark_ended(self)
        self.task = None
        del self._call, self._make_input_required

    def _flush_soon(self) -> None:
        """What is asked in one turn of the loop is asked together."""
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if not self._waiting or self._last.done():
            return  # answered since, or nothing is in flight: the next request will hear of it
        self._round = dict.fromkeys(self._waiting)
        self._state.step = self._step_count
        try:
            if self.account:
                self._suspended_calls.hold(self, self._held_memory() - self.memory)
            self._suspended_calls.admit_waiting(self)
            outcome = self._make_input_required(self._state, {key: asked for key, (asked, _) in self._waiting.items()})
        except Exception as error:  # whatever keeps it from being asked is for the handler to hear
            self._fail_waiters(error)
        else:
            self._set_deadline(asyncio.get_running_loop().call_later(self._suspended_calls.seconds, self.cancel))
            self._end_step(outcome, None)

    def _fail_waiters(self, why: BaseException) -> None:
        """Nothing will be answered: the handler hears of it wherever it waits."""
        for _, places in self._waiting.values():
            for place in places:
                if not place.done():
                    place.set_exception(why)
        self._waiting.clear()

    def _set_deadline(self, deadline: asyncio.TimerHandle | None) -> None:
        """The handler waits with nothing in flight, until a deadline; or no longer."""
        if self._deadline is not None:
            self._deadline.cancel()
        if (deadline is None) != (self._deadline is None):
            self._suspended_calls.set_waiting(self, deadline is not None)
        self._deadline = deadline

    def _end_step(self, outcome: Outcome, error: BaseException | None) -> None:
        if self._last.done():  # it ended with nothing in flight: the next request gets what came of it
            self._begin_step()
        step = self._last
        if error is None:
            packed = outcome if isinstance(outcome, Raw) else Raw(codec.encode(outcome))
            self.size += len(packed)
            step.set_result(packed)
        else:
            self.size += self._held_memory()  # its traceback holds what the handler had
            step.set_result(Failure(error))

    def cancel(self, why: str = "") -> None:
        """End the handler; `why` is what a later request is told."""
        self.ended = True
        self._why = why or self._why
        if self.task is not None:
            self.task.cancel()
