"""A request whose answer asks for input, sent again with the answers until it is done (2026-07-28, Multi Round-Trip
Requests).

All that one answer asks for is read first and answered at once, side by side; then the same request goes out under a
new id, with `inputResponses` and exactly the `requestState` of that answer, or none. What cannot be answered, or is
declined where no answer can say so, ends the request with that error, and nothing is sent. The person's time is
outside the request's: `timeout` counts for each round trip, `total_timeout` for all of them together. Answers and
state go to the connection that asked for them; where that is gone, the request begins again, or ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from accord.client.handlers import ClientContext
from accord.client.input_handlers import IncomingQuestion, InputHandlers
from accord.client.results import InputRequiredError
from accord.client.retry import StickyConnection, StickyConnectionLost
from accord.errors import InternalError, InvalidParams, InvalidResult, RemoteProtocolError, RequestTimeout
from accord.limits import Limits
from accord.messages import codec
from accord.messages.bounds import Name, State
from accord.messages.meta import InputResponseParams
from accord.messages.revision import Rules
from accord.session.session import Session

P = TypeVar("P", bound=InputResponseParams)
T = TypeVar("T")

Send = Callable[[P, float | None], Awaitable[T]]
"""Sends the request with these params, and reads its result; the second argument is its `total_timeout`. Raises
`InputRequiredError`."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
"""Seconds before a request is sent again that only has to be: doubled each time."""


class _RawInputRequest(msgspec.Struct):
    """One input request: of any kind, known here or not."""

    method: Name
    params: Raw | UnsetType = UNSET


class _RawInputRequired(msgspec.Struct, rename="camel"):
    """`InputRequiredResult`, with what is asked not yet read."""

    input_requests: dict[Name, _RawInputRequest] | None = None
    request_state: State | None = None


class InputResponder:
    """Answers for the requests of one client."""

    def __init__(self, asked: InputHandlers, limits: Limits) -> None:
        self.handlers: InputHandlers = asked
        self._limits = limits

    async def run(
        self, required: InputRequiredError, stay: StickyConnection, params: P, send: Send[P, T], total: float | None
    ) -> T:
        """The result of a request whose first answer was `required`; `total` is what is left of its time in seconds.

        Raises what the handlers raise, `NotSupported` for what nobody here answers, `InvalidResult`,
        `RemoteProtocolError` when there is no end to it, and what `send` raises.
        """
        clock = _PausableBudget(total, f"{required.method} to {required.name}")
        pause = _FIRST_PAUSE
        for _ in range(self._limits.client.rounds):
            session = _session(stay)
            if session.rules.server_requests:  # asking inside a result is no part of this revision
                raise required
            asks = self._read(required)
            if asks.input_requests:
                answers = await self._answers(required, asks.input_requests, session)
            else:  # "the client MAY retry the original request immediately"
                answers = None
                await clock.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            # "If the InputRequiredResult does not contain a requestState field, the client MUST NOT include one"
            again = msgspec.structs.replace(params, input_responses=answers, request_state=asks.request_state)
            try:
                return await _send_again(again, stay, params, send, clock)
            except InputRequiredError as exc:
                required = exc
        raise RemoteProtocolError(
            f"{required.name}: {required.method} still asks for input after {self._limits.client.rounds} rounds "
            f"(ClientLimits.rounds); the last time for {_described(self._read(required))}"
        )

    def _read(self, required: InputRequiredError) -> _RawInputRequired:
        try:
            asks: _RawInputRequired = codec.decoder(_RawInputRequired).decode(required.raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise _invalid(required, str(exc)) from exc
        if not asks.input_requests and asks.request_state is None:
            # "Servers MUST include at least one of inputRequests or requestState"
            raise _invalid(required, "it has neither inputRequests nor requestState")
        if len(asks.input_requests or ()) > self._limits.requests_in_flight:
            raise _invalid(
                required,
                f"it has more input requests than {self._limits.requests_in_flight} things (Limits.requests_in_flight)",
            )
        return asks

    async def _answers(
        self, required: InputRequiredError, asked: Mapping[str, _RawInputRequest], session: Session
    ) -> dict[str, Any]:
        try:  # all of them before anybody is bothered with one
            questions = {key: self._question(each, session.rules) for key, each in asked.items()}
        except InvalidParams as exc:
            raise _invalid(required, str(exc)) from exc
        return await _answer_all(questions, self.handlers.context(session, required.method), self._limits.close_seconds)

    def _question(self, asked: _RawInputRequest, rules: Rules) -> IncomingQuestion:
        return self.handlers.read(asked.method, asked.params, rules)


def _session(stay: StickyConnection) -> Session:
    assert stay.connection is not None, "a request that was answered was answered on a connection"
    return stay.connection.session


async def _send_again(again: P, stay: StickyConnection, params: P, send: Send[P, T], clock: _PausableBudget) -> T:
    """The next result. A server that knows nothing of what was asked before gets the request as it was first."""
    try:
        return await clock.run(send, again)
    except StickyConnectionLost:
        stay.connection = None
        return await clock.run(send, params)


async def _answer_all(
    questions: Mapping[str, IncomingQuestion], context: ClientContext, patience: float
) -> dict[str, Raw]:
    """The answers, by key. The first handler that raises ends the others; so does the end of this await."""
    tasks = {key: asyncio.ensure_future(question.answer(context)) for key, question in questions.items()}
    try:
        await asyncio.wait(tasks.values(), return_when=asyncio.FIRST_EXCEPTION)
        failed = [task for task in tasks.values() if task.done() and not task.cancelled() and task.exception()]
        if failed:
            failed[0].result()
        if any(task.cancelled() for task in tasks.values()):
            raise InternalError("a handler cancelled its own task and returned no result")
        return {key: task.result() for key, task in tasks.items()}
    finally:
        await _end(tasks.values(), patience)


async def _end(tasks: Any, patience: float) -> None:
    """Cancel what still runs, and give it a moment to clean up."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running, timeout=patience)
    for task in running:
        if task.done() and not task.cancelled():
            task.exception()  # seen: it came too late to matter


def _invalid(required: InputRequiredError, why: str) -> InvalidResult:
    return InvalidResult(
        f"{required.name}: {required.method} asks for input, but not as it should: {why}", raw=required.raw
    )


def _described(asks: _RawInputRequired) -> str:
    methods = sorted({each.method for each in (asks.input_requests or {}).values()})
    return ", ".join(methods) or "nothing but to be sent again"


class _PausableBudget:
    """What is left of the time of one request over all its round trips; it stands still while handlers answer."""

    def __init__(self, left: float | None, request: str) -> None:
        self._left = left
        self._request = request
        self._time = asyncio.get_running_loop().time

    async def run(self, send: Send[P, T], params: P) -> T:
        """One more round trip. Raises `RequestTimeout` when no time is left."""
        if self._left is not None and self._left <= 0:
            raise RequestTimeout(
                f"{self._request}: the total timeout passed before the answers could be sent; "
                "if it may take longer, raise total_timeout="
            )
        began = self._time()
        try:
            return await send(params, self._left)
        finally:
            self._charge(began)

    async def sleep(self, seconds: float) -> None:
        """Wait, but no longer than there is time."""
        began = self._time()
        await asyncio.sleep(seconds if self._left is None else max(0, min(seconds, self._left)))
        self._charge(began)

    def _charge(self, began: float) -> None:
        if self._left is not None:
            self._left -= self._time() - began
