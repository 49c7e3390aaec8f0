"""Asking while the handler waits: for what may not run twice (2026-07-28).

The handler runs in a task of its own. Each request of the call is a *step*: it brings answers, and ends with the next
question or with the result. The outcome of a step is kept, so that a retry whose answer was lost, or that was sent
twice at once, gets the same outcome and nothing happens twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from accord.errors import InvalidParams, ToolError
from accord.server.asking.asker import Asked, inside, made, read
from accord.server.asking.question import Question
from accord.server.asking.state import State

if TYPE_CHECKING:
    from accord.server.asking.call import Call
    from accord.server.asking.runs import Runs
    from accord.server.peer import Peer

_SMALL = 1 << 10
"""Bytes that an outcome takes which is no large one."""

Outcome = Any
"""A result that is ready to send, or the questions that stand before it."""

Ask = Callable[[State, Mapping[str, Asked]], Outcome]
"""Makes the result that asks these questions and carries this state."""


class Run:
    """A handler that runs once, however many requests that takes."""

    def __init__(self, call: Call, state: State, ask: Ask, runs: Runs) -> None:
        self._call = call
        self._state = state
        self._ask = ask
        self._runs = runs
        self._steps: list[asyncio.Future[Outcome]] = []
        self._watchers = 0
        self._waiting: dict[str, tuple[Asked, asyncio.Future[Any]]] = {}
        self._round: list[str] = []
        """The keys of what was asked last."""
        self._flushing = False
        self._count = 0
        self._kept: dict[str, bytes] = {}
        self._ended: tuple[Outcome, BaseException | None] | None = None
        """How the handler ended."""
        self.task: asyncio.Task[None] | None = None
        """What runs the handler."""
        self.size: int = 0
        """Bytes of the outcomes, about."""
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def nonce(self) -> bytes:
        """What its states are known by."""
        return self._state.nonce

    @property
    def peer(self) -> Peer:
        """The client that it runs for."""
        return self._call.peer

    @property
    def principal(self) -> str:
        """The person that it runs for."""
        return self._call.peer.principal

    # --- what requests do --------------------------------------------------------------------------------------

    async def begin(self, work: Callable[[Call], Coroutine[Any, Any, Outcome]]) -> Outcome:
        """Start the handler on behalf of the first request; how that request ends."""
        step = self._begin_step()
        self.task = asyncio.get_running_loop().create_task(self._run(work))
        self._runs.begun(self)
        return await self._watch(step)

    async def resume(self, step: int, answers: Mapping[str, bytes], call: Call) -> Outcome:
        """Bring the answers of step `step`; how it ends. A step that was taken before ends as it did then.

        Raises `InvalidParams` for answers that are none; the handler waits on.
        """
        if step > len(self._steps):
            raise InvalidParams("requestState is ahead of the call it belongs to")
        if step < len(self._steps):
            return await self._watch(self._steps[step])
        outstanding = [key for key in self._round if key in self._waiting]
        values = {key: read(key, self._waiting[key][0].question, answers[key]) for key in outstanding if key in answers}
        future = self._begin_step()
        self._call.rebind(call)
        if self._ended is not None:
            self._end_step(*self._ended)  # it went on without the answer
        elif len(values) == len(outstanding):
            self._answer(values)
        else:  # a round is answered as a whole: "respond with a new InputRequiredResult requesting the missing"
            self._flush_soon()
        return await self._watch(future)

    def _begin_step(self) -> asyncio.Future[Outcome]:
        self._resting(None)
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._steps.append(future)
        return future

    def _answer(self, values: Mapping[str, Any]) -> None:
        for key, value in values.items():
            _, future = self._waiting.pop(key)
            if not future.done():
                future.set_result(value)
        self._round = []
        if self._waiting:  # asked since, with nothing in flight
            self._flush_soon()

    async def _watch(self, step: asyncio.Future[Outcome]) -> Outcome:
        """Wait for a step to end. The request that is cancelled last takes the handler with it."""
        self._watchers += 1
        try:
            return await asyncio.shield(step)
        except asyncio.CancelledError:
            if self._watchers == 1 and not step.done():
                self.cancel()
            raise
        finally:
            self._watchers -= 1

    # --- what the handler does ---------------------------------------------------------------------------------

    async def ask(self, questions: Sequence[Question[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """Wait for the answers, with the request answered meanwhile."""
        exchange = self._call.exchange
        asked = [inside(question, exchange, self._call.peer) for question in questions]
        named = [self._free(key) for key in keys] or self._keys(questions)
        futures = [self._wait_for(key, one) for key, one in zip(named, asked, strict=True)]
        self._flush_soon()
        try:
            return [await future for future in futures]
        finally:  # a handler may stop waiting
            for key in named:
                self._waiting.pop(key, None)

    def _keys(self, questions: Sequence[Question[Any]]) -> list[str]:
        first = self._count + 1
        self._count += len(questions)
        return [f"ask-{number}" for number in range(first, self._count + 1)]

    def _free(self, key: str) -> str:
        """A declared key; another where that very question is being asked already, by a handler called twice."""
        while key in self._waiting:
            key += "+"
        return key

    def _wait_for(self, key: str, asked: Asked) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[key] = asked, future
        return future

    over = False

    def check(self, question: Question[Any]) -> None:
        """Whether it can be asked. Raises `NotSupported`, `MissingClientCapability`."""
        inside(question, self._call.exchange, self._call.peer)

    async def once(self, key: str, make: Callable[[], Any]) -> bytes:
        """There is one run only; a key keeps its first value."""
        if key not in self._kept:
            self._kept[key] = await made(make)
        return self._kept[key]

    async def _run(self, work: Callable[[Call], Coroutine[Any, Any, Outcome]]) -> None:
        try:
            self._end(await work(self._call), None)
        except asyncio.CancelledError:
            self._end(None, ToolError("the call was cancelled while it ran; whether it took effect is not known"))
            raise
        except BaseException as exc:
            self._end(None, exc)

    def _end(self, outcome: Outcome, error: BaseException | None) -> None:
        self._ended = outcome, error
        self._resting(None)
        self._end_step(outcome, error)
        self._runs.ended(self)

    def _flush_soon(self) -> None:
        """What is asked in one turn of the loop is asked together."""
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if not self._waiting or self._steps[-1].done():
            return  # answered since, or nothing is in flight: the next request will hear of it
        self._round = list(self._waiting)
        self._state.step = len(self._steps)
        try:
            self._runs.park(self)
            outcome = self._ask(self._state, {key: asked for key, (asked, _) in self._waiting.items()})
        except ToolError as error:
            self._refuse(error)
        else:
            self._resting(asyncio.get_running_loop().call_later(self._runs.seconds, self.cancel))
            self._end_step(outcome, None)

    def _resting(self, deadline: asyncio.TimerHandle | None) -> None:
        """The handler waits with nothing in flight, until a deadline; or no longer."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._runs.waiting[self.principal] += (deadline is not None) - (self._deadline is not None)
        self._deadline = deadline

    def _refuse(self, error: ToolError) -> None:
        """It cannot be asked: the handler hears of it where it waits."""
        for _, future in self._waiting.values():
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()

    def _end_step(self, outcome: Outcome, error: BaseException | None) -> None:
        step = self._steps[-1]
        if step.done():
            return  # nothing is in flight: the next request will hear of it
        if error is None:
            self.size += len(outcome) if isinstance(outcome, Raw) else _SMALL
            step.set_result(outcome)
        else:
            step.set_exception(error)
            step.exception()  # seen: nobody may be waiting

    def cancel(self) -> None:
        """End the handler."""
        if self.task is not None:
            self.task.cancel()
