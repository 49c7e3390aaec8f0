"""Requests of inspected servers that wait for an answer: elicitation, sampling and roots (client features).

A request becomes a `Question` in one table, which the page lists and answers; a page that is loaded again finds it
there, and without a page it waits. It is closed by an answer, at its deadline, or when the server cancels it or is
lost. An answer is sent as it was typed, so that a developer also sees what the server does with an invalid one.

`Questions.options(server)` are the handlers of the `Client` of one server.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Raw

from accord.client.handlers import ClientContext
from accord.client.roots import roots_of
from accord.errors import InternalError, RateLimited, SamplingDeclined
from accord.host.models.model import LanguageModel
from accord.inspector.commands import InspectorError
from accord.inspector.topics import Topics
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages.bounds import NAME_LENGTH
from accord.messages.elicitation import ElicitParams
from accord.messages.input_required import Root
from accord.messages.sampling import CreateMessageParams

Kind: TypeAlias = Literal["form", "url", "sampling", "roots"]
Outcome: TypeAlias = Literal["accepted", "declined", "cancelled", "expired", "withdrawn"]

MAX_OPEN = 100
"""Open questions of one server; a further one is refused."""
MAX_OPEN_BYTES = 32 << 20
"""Bytes of the params of the open questions of one server."""
_MAX_CLOSED = 200
_MAX_CAUSES = 20
_SHARE_OF_TIME = 0.98
"""The part of `Limits.answer_seconds` after which a question expires: the client itself fails it after the whole."""

_DECLINE = Raw(b'{"action":"decline"}')
_CANCEL = Raw(b'{"action":"cancel"}')

_current_call: ContextVar[str] = ContextVar("accord_inspector_call", default="")


class QuestionAnswer(msgspec.Struct, frozen=True):
    """The answer to a question. `result` is the JSON of an accepted result; None where it was not accepted."""

    outcome: Outcome
    result: Raw | None = None
    reason: str = ""


class Question(msgspec.Struct, kw_only=True, eq=False):
    """One request of a server that waits for an answer."""

    id: int
    server: str
    kind: Kind
    method: str
    revision: str
    params: bytes
    """The JSON of the params, as the server sent it."""
    message: str
    """The text for the user; empty where the request has none."""
    causes: tuple[str, ...]
    """The calls of the user that may have caused it; one if that is certain."""
    opened_at: float
    expires_at: float
    """When it expires, by the monotonic clock."""
    answer: asyncio.Future[QuestionAnswer]
    elicitation_id: str = ""
    """The id in the notification of its completion; empty for one that no notification may have."""


class ClosedQuestion(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A question that no longer waits."""

    id: int
    server: str
    kind: Kind
    outcome: Outcome
    reason: str
    seconds: float
    """How long it was open."""
    is_completed: bool = False
    """Whether the server reported that the user has finished on the page of a URL."""
    elicitation_id: str = ""


class OfferedRoots(msgspec.Struct):
    """The roots of one server: sent at once, or shown to the user as a question first if `asks`."""

    roots: list[Root] = []
    asks: bool = False


class Questions:
    """The questions of all servers. `models` may answer sampling requests."""

    def __init__(
        self, topics: Topics, limits: Limits = DEFAULT_LIMITS, *, models: Sequence[LanguageModel] = ()
    ) -> None:
        self.models: list[LanguageModel] = list(models)
        self.closed: deque[ClosedQuestion] = deque(maxlen=_MAX_CLOSED)
        self._topics = topics
        self._seconds = limits.answer_seconds * _SHARE_OF_TIME
        self._open: dict[int, Question] = {}
        self._numbers = itertools.count(1)
        self._roots: dict[str, OfferedRoots] = {}
        self._calls: dict[str, dict[str, None]] = {}

    # --- the client --------------------------------------------------------------------------------------------

    def options(self, server: str) -> dict[str, Any]:
        """Return the options of the `Client` of a server."""
        return {
            "elicitation": partial(self._elicit, server),
            "elicitation_modes": ("form", "url"),
            "on_elicitation_complete": partial(self._complete, server),
            "sampling": partial(self._sample, server),
            "sampling_tools": True,
            "roots": partial(self._list_roots, server),
        }

    @contextmanager
    def calling(self, server: str, call: str) -> Iterator[None]:
        """Name the call that runs meanwhile: questions of the server may be caused by it."""
        running = self._calls.setdefault(server, {})
        running[call] = None
        token = _current_call.set(call)
        try:
            yield
        finally:
            _current_call.reset(token)
            running.pop(call, None)

    async def _elicit(self, server: str, params: ElicitParams, context: ClientContext) -> Raw:
        kind: Kind = "url" if params.mode == "url" else "form"
        answer = await self._ask(server, kind, "elicitation/create", context, params.message, params.elicitation_id)
        if answer.outcome == "accepted":
            return answer.result or Raw(b'{"action":"accept"}')
        return _DECLINE if answer.outcome == "declined" else _CANCEL

    async def _sample(self, server: str, params: CreateMessageParams, context: ClientContext) -> Raw:
        answer = await self._ask(server, "sampling", "sampling/createMessage", context)
        if answer.result is None:
            raise SamplingDeclined(answer.reason) if answer.reason else SamplingDeclined
        return answer.result

    async def _list_roots(self, server: str, context: ClientContext) -> Raw | list[Root]:
        offered = self.roots(server)
        if not offered.asks:
            return offered.roots
        answer = await self._ask(server, "roots", "roots/list", context)
        if answer.result is None:
            raise InternalError(answer.reason or "the user declined to list the roots")
        return answer.result

    def _complete(self, server: str, elicitation_id: str) -> None:
        for at, each in enumerate(self.closed):
            if each.server == server and each.elicitation_id == elicitation_id:
                self.closed[at] = msgspec.structs.replace(each, is_completed=True)
        self._publish()

    async def _ask(
        self,
        server: str,
        kind: Kind,
        method: str,
        context: ClientContext,
        message: str = "",
        elicitation_id: str | None = None,
    ) -> QuestionAnswer:
        """Return the answer of the user. Raises `RateLimited` for too many open questions."""
        params = bytes(context.params or b"{}")
        self._check_room(server, len(params))
        now = time.monotonic()
        question = Question(
            id=next(self._numbers),
            server=server,
            kind=kind,
            method=method,
            revision=context.revision,
            params=params,
            message=message,
            causes=self._causes(server),
            opened_at=now,
            expires_at=now + self._seconds,
            answer=asyncio.get_running_loop().create_future(),
            elicitation_id=elicitation_id if elicitation_id and len(elicitation_id) <= NAME_LENGTH else "",
        )
        self._open[question.id] = question
        self._publish()
        return await self._wait(question)

    async def _wait(self, question: Question) -> QuestionAnswer:
        answer = QuestionAnswer("withdrawn", reason="it was cancelled")
        try:
            async with asyncio.timeout(self._seconds):
                answer = await question.answer
        except TimeoutError:
            answer = QuestionAnswer("expired", reason=f"nobody answered in {self._seconds:g} s")
        finally:
            self._close(question, answer)
        return answer

    def _close(self, question: Question, answer: QuestionAnswer) -> None:
        del self._open[question.id]
        self.closed.append(
            ClosedQuestion(
                id=question.id,
                server=question.server,
                kind=question.kind,
                outcome=answer.outcome,
                reason=answer.reason,
                seconds=round(time.monotonic() - question.opened_at, 3),
                elicitation_id=question.elicitation_id,
            )
        )
        self._publish()

    def _check_room(self, server: str, size: int) -> None:
        own = [question for question in self._open.values() if question.server == server]
        if len(own) >= MAX_OPEN or size + sum(len(question.params) for question in own) > MAX_OPEN_BYTES:
            raise RateLimited(
                f"{len(own)} requests of this server already wait for an answer in the inspector "
                f"(at most {MAX_OPEN}, and {MAX_OPEN_BYTES >> 20} MB)"
            )

    def _causes(self, server: str) -> tuple[str, ...]:
        """Return the call in whose task the request is handled (2026-07-28), or all that it may belong to."""
        running = self._calls.get(server, {})
        current = _current_call.get()
        return (current,) if current in running else tuple(itertools.islice(running, _MAX_CAUSES))

    def _publish(self) -> None:
        servers = sorted({question.server for question in self._open.values()})
        self._topics.changed("questions", {"open": len(self._open), "servers": servers})

    # --- the user ----------------------------------------------------------------------------------------------

    def open(self, server: str = "") -> list[Question]:
        """Return the open questions, of one server or of all, in the order of their arrival."""
        return [question for question in self._open.values() if server in ("", question.server)]

    def get(self, id: int) -> Question:
        """Return an open question. Raises `InspectorError`."""
        question = self._open.get(id)
        if question is None or question.answer.done():
            raise InspectorError(f"the request {id} is not open any more", _why_closed(self.closed, id), status=404)
        return question

    def accept(self, id: int, result: Raw | None) -> None:
        """Send this result, unchecked. Raises `InspectorError` if the question is not open."""
        self.get(id).answer.set_result(QuestionAnswer("accepted", result))

    def refuse(self, id: int, outcome: Literal["declined", "cancelled"]) -> None:
        """Decline or cancel. Raises `InspectorError` if the question is not open."""
        self.get(id).answer.set_result(QuestionAnswer(outcome))

    def withdraw(self, server: str, reason: str) -> None:
        """Close all questions of a server, because nothing can be sent to it any more."""
        for question in self.open(server):
            if not question.answer.done():
                question.answer.set_result(QuestionAnswer("withdrawn", reason=reason))

    def forget(self, server: str) -> None:
        """Forget the roots of a server: another one may get its name."""
        self._roots.pop(server, None)

    def roots(self, server: str) -> OfferedRoots:
        """Return the roots of a server."""
        return self._roots.get(server, OfferedRoots())

    def set_roots(self, server: str, folders: Sequence[str | Root], *, asks: bool) -> None:
        """Set the roots of a server: paths, `file:` URIs, or `Root` values. Raises `LocalProtocolError`."""
        self._roots[server] = OfferedRoots(roots_of(folders), asks)
        self._publish()


def _why_closed(closed: Sequence[ClosedQuestion], id: int) -> str:
    known = next((each for each in closed if each.id == id), None)
    if known is None:
        return "reload the list of requests"
    return f"it was {known.outcome}" + (f": {known.reason}" if known.reason else ", perhaps in another tab")


def json_line(text: str, what: str) -> bytes:
    """Return JSON text on one line, otherwise unchanged. Raises `InspectorError` if it is not JSON."""
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse_constant)
        line = text.encode()
    except (ValueError, RecursionError) as exc:
        raise InspectorError(f"{what} is not JSON: {exc}", "correct the text", status=400) from None
    return b" ".join(line.splitlines()) if b"\n" in line or b"\r" in line else line


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no value of JSON")
