"""Requests whose result asks for input, sent again with the answers until they complete (2026-07-28, Multi Round-Trip
Requests).

All input requests of a result are validated first and answered concurrently; then the same request is sent under a new
id, with `inputResponses` and the `requestState` of that result, if any. An input request that cannot be answered, or
that is declined where no answer can express that, ends the request with that error, and nothing is sent. The time of
handlers does not count: `timeout` bounds each round trip, `total_timeout` all of them together. Answers and state are
sent to the connection that requested them; if that is lost, the request starts again, or fails.
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
"""Sends the request with these params, and returns its result; the second argument is its `total_timeout`. Raises
`InputRequiredError`.
"""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
"""The pause in seconds before a request without input requests is sent again; it doubles each time."""


class RawInputRequest(msgspec.Struct):
    """One input request, of a known or unknown method."""

    method: Name
    params: Raw | UnsetType = UNSET


class _RawInputRequired(msgspec.Struct, rename="camel"):
    """An `InputRequiredResult` whose input requests are not decoded yet."""

    input_requests: dict[Name, RawInputRequest] | None = None
    request_state: State | None = None


class InputResponder:
    """Answers the input requests of one client."""

    def __init__(self, handlers: InputHandlers, limits: Limits) -> None:
        self.handlers: InputHandlers = handlers
        self._limits = limits

    async def run(
        self,
        required: InputRequiredError,
        sticky: StickyConnection,
        params: P,
        send: Send[P, T],
        total_timeout: float | None,
    ) -> T:
        """Return the result of a request whose first result was `required`, within `total_timeout` seconds.

        Raises the errors of the handlers and of `send`, `NotSupported` without a handler, `InvalidResult`, and
        `RemoteProtocolError` after too many rounds.
        """
        clock = _PausableBudget(total_timeout, f"{required.method} to {required.name}")
        pause = _FIRST_PAUSE
        for _ in range(self._limits.client.rounds):
            session = _session(sticky)
            if session.rules.server_requests:  # such results do not exist in this revision
                raise required
            result = self._read(required)
            if result.input_requests:
                answers = await self._answers(required, result.input_requests, session)
            else:  # "the client MAY retry the original request immediately"
                answers = None
                await clock.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            # "If the InputRequiredResult does not contain a requestState field, the client MUST NOT include one"
            retry_params = msgspec.structs.replace(
                codec.narrow(
                    params, session.rules.revision
                ),  # now: narrowing decodes, and the answers stay as they are
                input_responses=answers,
                request_state=result.request_state,
            )
            try:
                return await _send_again(retry_params, sticky, params, send, clock)
            except InputRequiredError as exc:
                required = exc
        raise RemoteProtocolError(
            f"{required.name}: {required.method} still asks for input after {self._limits.client.rounds} rounds "
            f"(ClientLimits.rounds); the last time for {_described(self._read(required))}"
        )

    def _read(self, required: InputRequiredError) -> _RawInputRequired:
        try:
            result: _RawInputRequired = codec.decoder(_RawInputRequired).decode(required.raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise _invalid(required, str(exc)) from exc
        if not result.input_requests and result.request_state is None:
            # "Servers MUST include at least one of inputRequests or requestState"
            raise _invalid(required, "it has neither inputRequests nor requestState")
        if len(result.input_requests or ()) > self._limits.requests_in_flight:
            raise _invalid(
                required,
                f"it has more input requests than {self._limits.requests_in_flight} things (Limits.requests_in_flight)",
            )
        return result

    async def _answers(
        self, required: InputRequiredError, requests: Mapping[str, RawInputRequest], session: Session
    ) -> dict[str, Any]:
        try:  # validate all of them before any handler runs
            questions = {key: self._question(request, session.rules) for key, request in requests.items()}
        except InvalidParams as exc:
            raise _invalid(required, str(exc)) from exc
        return await _answer_all(questions, self.handlers.context(session, required.method), self._limits.close_seconds)

    async def answer(
        self, name: str, method: str, requests: Mapping[str, RawInputRequest], session: Session
    ) -> dict[str, Any]:
        """Return the answers to the input requests of a task, encoded, by key. Raises the errors of the handlers,
        `NotSupported` without a handler, and `InvalidResult`.
        """
        if len(requests) > self._limits.requests_in_flight:
            raise InvalidResult(
                f"{name}: a task has more input requests than {self._limits.requests_in_flight}", raw=b""
            )
        return await self._answers(InputRequiredError(name, method, b""), requests, session)

    def _question(self, request: RawInputRequest, rules: Rules) -> IncomingQuestion:
        return self.handlers.read(request.method, request.params, rules)


def _session(sticky: StickyConnection) -> Session:
    assert sticky.connection is not None, "a request that was answered was answered on a connection"
    return sticky.connection.session


async def _send_again(
    retry_params: P, sticky: StickyConnection, params: P, send: Send[P, T], clock: _PausableBudget
) -> T:
    """Return the next result. If the connection was lost, send the original request to the next server."""
    try:
        return await clock.run(send, retry_params)
    except StickyConnectionLost:
        sticky.connection = None
        return await clock.run(send, params)


async def _answer_all(
    questions: Mapping[str, IncomingQuestion], context: ClientContext, cleanup_seconds: float
) -> dict[str, Raw]:
    """Return the answers by key. The first handler that raises, or a cancellation, cancels the others."""
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
        await _end(tasks.values(), cleanup_seconds)


async def _end(tasks: Any, cleanup_seconds: float) -> None:
    """Cancel the running tasks, and let them clean up."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running, timeout=cleanup_seconds)
    for task in running:
        if task.done() and not task.cancelled():
            task.exception()  # retrieved, because it is too late to matter


def _invalid(required: InputRequiredError, problem: str) -> InvalidResult:
    return InvalidResult(
        f"{required.name}: {required.method} asks for input, but not as it should: {problem}", raw=required.raw
    )


def _described(result: _RawInputRequired) -> str:
    methods = sorted({request.method for request in (result.input_requests or {}).values()})
    return ", ".join(methods) or "nothing but to be sent again"


class _PausableBudget:
    """The remaining time of one request over all round trips; it does not run while handlers answer."""

    def __init__(self, remaining: float | None, request: str) -> None:
        self._left = remaining
        self._request = request
        self._time = asyncio.get_running_loop().time

    async def run(self, send: Send[P, T], params: P) -> T:
        """Run one round trip. Raises `RequestTimeout` when no time is left."""
        if self._left is not None and self._left <= 0:
            raise RequestTimeout(
                f"{self._request}: the total timeout passed before the answers could be sent; "
                "if it may take longer, raise total_timeout="
            )
        started = self._time()
        try:
            return await send(params, self._left)
        finally:
            self._charge(started)

    async def sleep(self, seconds: float) -> None:
        """Wait, but no longer than the remaining time."""
        started = self._time()
        await asyncio.sleep(seconds if self._left is None else max(0, min(seconds, self._left)))
        self._charge(started)

    def _charge(self, started: float) -> None:
        if self._left is not None:
            self._left -= self._time() - started
