"""Cancellation of requests by a client, timeouts, and progress tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from accord.check.clients.conversation import CANCELLED
from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientMessage, ClientRun
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer
from accord.check.engine.rule import HTTP, LINE_TRANSPORTS, JudgedItems, NotObserved, Violation, client_rule
from accord.check.probes.message_log import LogEntry, id_key
from accord.messages.revision import RULES
from accord.wire.transcript import SENT

_SINCE = "2026-07-28"
_AT = ("basic/utilities/cancellation#behavior-requirements", "basic/patterns/cancellation#behavior-requirements")
_RACE = 1.0
"""Seconds in which a cancellation and a response may cross."""
_SILENCE_LIMIT = 5.0


@client_rule(
    "client-cancel/own-active",
    "must",
    case="all cancellations",
    at=_AT,
    cause="Each request is cancelled when it ends, or the id has another type.",
)
def client_cancel_own_active(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client cancels only its own requests, before their response."""
    cancels = [(run, each) for run in runs for each in run.notifications(CANCELLED)]
    for run, cancel in cancels:
        yield
        target = id_key(cancel.params.get("requestId"))
        asked = [each for each in _requests_before(run, cancel) if id_key(each.body["id"]) == target]
        if not asked:
            text = f"the client sent no request with the id {cancel.params.get('requestId')!r}"
            raise Violation(text, evidence=run.evidence(cancel.entry))
        answer = _response_to(asked[-1])
        if answer is not None and answer.at < cancel.entry.at - _RACE and _is_read(asked[-1], answer):
            text = "the client cancelled a request long after its response"
            raise Violation(text, evidence=run.evidence(asked[-1].entry, answer, cancel.entry))


def _is_read(request: ClientMessage, answer: LogEntry) -> bool:
    """Return whether the client must have read a response: no invalid message of the scenario came before it."""
    return not any(entry.misbehaved and entry.at <= answer.at for entry in request.conversation.log.entries)


@client_rule(
    "client-cancel/not-initialize",
    "must",
    case="all cancellations",
    at="basic/utilities/cancellation#behavior-requirements",
    until=_SINCE,
    cause="The timeout treats all requests alike.",
)
def client_cancel_not_initialize(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client does not cancel initialize."""
    cancels = [(run, each) for run in runs for each in run.notifications(CANCELLED)]
    for run, cancel in cancels:
        yield
        for asked in _requests_before(run, cancel):
            if asked.method == "initialize" and id_key(asked.body["id"]) == id_key(cancel.params.get("requestId")):
                raise Violation("the client cancelled initialize", evidence=run.evidence(asked.entry, cancel.entry))


@client_rule(
    "client-progress/token-type",
    "must",
    case="all progress tokens",
    at=("basic/utilities/progress#progress-flow", "basic/patterns/progress#progress-flow"),
    cause="The token is null, or a number with a fraction.",
)
def client_progress_token_type(runs: Sequence[ClientRun]) -> JudgedItems:
    """A progress token is a string or an integer."""
    for each in _requests_with_token(runs):
        yield
        token = each.meta["progressToken"]
        if not isinstance(token, str | int) or isinstance(token, bool):
            raise Violation(f"the progress token is {token!r}", evidence=[each.entry.line()])


@client_rule(
    "client-progress/token-once",
    "must",
    case="all progress tokens",
    at=("basic/utilities/progress#progress-flow", "basic/patterns/progress#progress-flow"),
    cause="The token is a constant.",
)
def client_progress_token_once(runs: Sequence[ClientRun]) -> JudgedItems:
    """Requests in flight have different progress tokens."""
    open_: dict[Any, ClientMessage] = {}
    for each in _requests_with_token(runs):
        place = (id(each.conversation), id_key(each.meta["progressToken"]))
        before = open_.get(place)
        answer = None if before is None else _response_to(before)
        if before is not None and (answer is None or answer.at > each.entry.at) and not _is_retry(before, each):
            raise Violation(
                "two requests in flight have the same token", evidence=[before.entry.line(), each.entry.line()]
            )
        open_[place] = each
        yield


def _is_retry(before: ClientMessage, after: ClientMessage) -> bool:
    """Return whether it is a retry of the same request, whose first attempt was cancelled."""
    given_up = before.conversation.is_cancelled(before.body["id"])
    return given_up or before.conversation is not after.conversation


# --- silence -----------------------------------------------------------------------------------------------------

SILENCE_SCENARIO = Scenario("silence", "a call gets no response", patience=_SILENCE_LIMIT)


@SILENCE_SCENARIO.on("tools/call", FIRST_REQUEST)
async def answer_silence(request: IncomingRequest) -> ScriptedAnswer:
    if not request.conversation.server.is_first_time("silence"):
        return await request.default_result()
    await request.wait_for_cancellation(seconds=60.0)
    return None


@SILENCE_SCENARIO.rule(
    "client-robust/timeouts",
    "should",
    case="a call without a response",
    at=("basic/lifecycle#timeouts", "basic/patterns/cancellation#timeouts"),
    cause="There is no timeout by default.",
)
def client_robust_timeouts(run: ClientRun) -> None:
    """A request without a response times out."""
    run.require_no_crash()
    if run.messages_after() or run.ending == "itself":
        return
    raise NotObserved(f"after {_SILENCE_LIMIT:g} s, the client was still waiting; its timeout may be longer")


@SILENCE_SCENARIO.rule(
    "client-cancel/on-timeout",
    "should",
    case="a call without a response",
    at=("basic/lifecycle#timeouts", "basic/patterns/cancellation#timeouts"),
    cause="The caller gets an error, but the server gets no cancellation.",
)
def client_cancel_on_timeout(run: ClientRun) -> None:
    """After a timeout, a client cancels the request."""
    silent = _abandoned_request(run)
    closed = run.transport == "http" and not RULES[run.revision].handshake
    if not _is_cancelled(run, silent) and not (
        closed and run.exchanges[silent.entry.stream - 1].client_closed_at is not None
    ):
        raise Violation("the request timed out, but was not cancelled", evidence=run.evidence())


@SILENCE_SCENARIO.rule(
    "client-cancel/by-notification",
    "must",
    case="a call without a response",
    at="basic/transports/stdio#cancellation",
    since=_SINCE,
    over=LINE_TRANSPORTS,
    cause="The caller gets an error, but the server gets no cancellation.",
)
def client_cancel_by_notification(run: ClientRun) -> None:
    """Over stdio, a client cancels a request by notifications/cancelled."""
    if not _is_cancelled(run, _abandoned_request(run)):
        raise Violation("the request timed out, but was not cancelled", evidence=run.evidence())


def _is_cancelled(run: ClientRun, request: ClientMessage) -> bool:
    """Return whether the client cancelled the request."""
    id = id_key(request.body["id"])
    return any(id_key(each.params.get("requestId")) == id for each in run.notifications(CANCELLED))


@SILENCE_SCENARIO.rule(
    "client-cancel/by-closing",
    "should",
    case="a call without a response",
    at=("basic/transports/streamable-http#cancellation", "basic/patterns/cancellation#transport-specific-cancellation"),
    since=_SINCE,
    over=HTTP,
    cause="The stream stays open, or notifications/cancelled is posted, as in earlier revisions.",
)
def client_cancel_by_closing(run: ClientRun) -> None:
    """Over HTTP, a client cancels a request only by closing its stream."""
    silent = _abandoned_request(run)
    for cancel in run.notifications(CANCELLED):
        raise Violation("the client posted notifications/cancelled", evidence=[cancel.entry.line()])
    exchange = run.exchanges[silent.entry.stream - 1]
    if exchange.client_closed_at is None:
        raise Violation("the client did not close the stream", evidence=[exchange.line()])


def _abandoned_request(run: ClientRun) -> ClientMessage:
    """Return the request without a response. Raises `NotObserved` if the client was still waiting."""
    run.require_no_crash()
    if not run.messages_after() and run.ending != "itself":
        raise NotObserved("the client was still waiting when the checker ended it")
    unanswered = [each for each in run.requests() if _response_to(each) is None and each.method not in _OPENING]
    if not unanswered:
        raise NotObserved("each request got a response")
    return unanswered[0]


_OPENING = ("initialize", "server/discover", "subscriptions/listen")

LATE_ANSWER_SCENARIO = Scenario(
    "late-answer", "a call gets its response after its cancellation", patience=_SILENCE_LIMIT
)


@LATE_ANSWER_SCENARIO.on("tools/call", FIRST_REQUEST)
async def answer_late_answer(request: IncomingRequest) -> ScriptedAnswer:
    if request.conversation.server.is_first_time("late"):
        await request.wait_for_cancellation(seconds=30.0)
    return await request.default_result()


@LATE_ANSWER_SCENARIO.rule(
    "client-cancel/late-answer",
    "should",
    case="a response after a cancellation",
    at=_AT,
    cause="A response without a pending request is an error.",
)
def client_cancel_late_answer(run: ClientRun) -> None:
    """A client ignores a response after the cancellation of its request."""
    run.require_no_crash()
    has_cancelled = any(each.method == CANCELLED for each in run.messages_after())
    if not has_cancelled and not any(
        each.client_closed_at is not None and each.client_closed_at < run.finished_at for each in run.posts()
    ):
        raise NotObserved("the client sent no cancellation")
    answers = [(each, answer.at) for each in run.requests() if (answer := _response_to(each))]
    late = max((at for each, at in answers if _is_cancelled(run, each)), default=0.0)
    run.require_progress(
        min((at for _, at in answers if at > late), default=late)
    )  # a request that crossed it shows nothing


SILENT_INITIALIZE_SCENARIO = Scenario(
    "silent-initialize", "initialize gets no response", until=_SINCE, patience=_SILENCE_LIMIT
)


@SILENT_INITIALIZE_SCENARIO.on("initialize")
async def answer_silent_initialize(request: IncomingRequest) -> ScriptedAnswer:
    await request.wait_for_cancellation(seconds=60.0)
    return None


@SILENT_INITIALIZE_SCENARIO.case(client_cancel_not_initialize, "initialize without a response")
def client_cancel_not_initialize_in_silence(run: ClientRun) -> None:
    run.require_no_crash()
    opened = run.requests("initialize")
    for cancel in run.notifications(CANCELLED):
        if any(id_key(each.body["id"]) == id_key(cancel.params.get("requestId")) for each in opened):
            raise Violation("the client cancelled initialize", evidence=run.evidence(opened[0].entry, cancel.entry))
    if run.ending != "itself":
        raise NotObserved("the client was still waiting when the checker ended it")


# --- reading -----------------------------------------------------------------------------------------------------


def _requests_before(run: ClientRun, message: ClientMessage) -> list[ClientMessage]:
    """Return the earlier requests of the same session."""
    return [
        each
        for each in run.requests()
        if each.conversation is message.conversation and each.entry.at <= message.entry.at
    ]


def _response_to(request: ClientMessage) -> LogEntry | None:
    """Return our response to a request."""
    for entry in request.conversation.log.entries:
        message = entry.message
        sent = entry.direction == SENT and entry.at >= request.entry.at and isinstance(message, dict)
        if sent and "method" not in message and message.get("id") == request.body["id"]:
            return entry
    return None


def _requests_with_token(runs: Sequence[ClientRun]) -> Iterator[ClientMessage]:
    """Return the requests with a progress token."""
    return (each for run in runs for each in run.requests() if "progressToken" in each.meta)
