"""Requests that a client gives up, and the tokens by which it hears of their progress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from accord.check.clients.conversation import CANCELLED
from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientMessage, ClientRun
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer
from accord.check.engine.rule import HTTP, LINE_TRANSPORTS, JudgedItems, NotObserved, Violation, rule
from accord.check.probes.message_log import LogEntry
from accord.check.probes.message_reader import id_key
from accord.messages.revision import RULES
from accord.wire.transcript import SENT

_SINCE = "2026-07-28"
_AT = ("basic/utilities/cancellation#behavior-requirements", "basic/patterns/cancellation#behavior-requirements")
_RACE = 1.0
"""Seconds in which a cancellation and an answer may cross."""
_SILENCE_LIMIT = 5.0


@rule(
    "client-cancel/own-active",
    "must",
    case="every cancellation",
    role="client",
    at=_AT,
    cause="Every request is cancelled when it ends, or the id is written with another type.",
)
def client_cancel_own_active(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client cancels only what it has asked for, and what is not answered yet."""
    cancels = [(run, each) for run in runs for each in run.notifications(CANCELLED)]
    for run, cancel in cancels:
        yield
        target = id_key(cancel.params.get("requestId"))
        asked = [each for each in _requests_before(run, cancel) if id_key(each.body["id"]) == target]
        if not asked:
            text = f"{cancel.params.get('requestId')!r} is the id of no request of the client"
            raise Violation(text, evidence=run.evidence(cancel.entry))
        answer = _response_to(asked[-1])
        if answer is not None and answer.at < cancel.entry.at - _RACE and _is_read(asked[-1], answer):
            text = "a request was cancelled long after its answer"
            raise Violation(text, evidence=run.evidence(asked[-1].entry, answer, cancel.entry))


def _is_read(request: ClientMessage, answer: LogEntry) -> bool:
    """Whether the client must have read an answer: it is no scenario's doing, and does not stand behind what is."""
    return not any(entry.misbehaved and entry.at <= answer.at for entry in request.conversation.log.entries)


@rule(
    "client-cancel/not-initialize",
    "must",
    case="every cancellation",
    role="client",
    at="basic/utilities/cancellation#behavior-requirements",
    until=_SINCE,
    cause="The timeout treats every request alike.",
)
def client_cancel_not_initialize(runs: Sequence[ClientRun]) -> JudgedItems:
    """initialize is never cancelled."""
    cancels = [(run, each) for run in runs for each in run.notifications(CANCELLED)]
    for run, cancel in cancels:
        yield
        for asked in _requests_before(run, cancel):
            if asked.method == "initialize" and id_key(asked.body["id"]) == id_key(cancel.params.get("requestId")):
                raise Violation("initialize was cancelled", evidence=run.evidence(asked.entry, cancel.entry))


@rule(
    "client-progress/token-type",
    "must",
    case="every progress token",
    role="client",
    at=("basic/utilities/progress#progress-flow", "basic/patterns/progress#progress-flow"),
    cause="A number with a fraction, or null, stands there.",
)
def client_progress_token_type(runs: Sequence[ClientRun]) -> JudgedItems:
    """A progress token is a string or an integer."""
    for each in _requests_with_token(runs):
        yield
        token = each.meta["progressToken"]
        if not isinstance(token, str | int) or isinstance(token, bool):
            raise Violation(f"the progress token is {token!r}", evidence=[each.entry.line()])


@rule(
    "client-progress/token-once",
    "must",
    case="every progress token",
    role="client",
    at=("basic/utilities/progress#progress-flow", "basic/patterns/progress#progress-flow"),
    cause="The token is a constant.",
)
def client_progress_token_once(runs: Sequence[ClientRun]) -> JudgedItems:
    """No two requests in flight have the same progress token."""
    open_: dict[Any, ClientMessage] = {}
    for each in _requests_with_token(runs):
        place = (id(each.conversation), id_key(each.meta["progressToken"]))
        before = open_.get(place)
        answer = None if before is None else _response_to(before)
        if before is not None and (answer is None or answer.at > each.entry.at) and not _is_retry(before, each):
            raise Violation("two requests in flight have one token", evidence=[before.entry.line(), each.entry.line()])
        open_[place] = each
        yield


def _is_retry(before: ClientMessage, after: ClientMessage) -> bool:
    """Whether it is the same request sent again, its first try given up."""
    given_up = before.conversation.is_cancelled(before.body["id"])
    return given_up or before.conversation is not after.conversation


# --- silence -----------------------------------------------------------------------------------------------------

SILENCE_SCENARIO = Scenario("silence", "a call is never answered", patience=_SILENCE_LIMIT)


@SILENCE_SCENARIO.on("tools/call", FIRST_REQUEST)
async def answer_silence(request: IncomingRequest) -> ScriptedAnswer:
    if not request.conversation.server.is_first_time("silence"):
        return await request.default_result()
    await request.wait_for_cancellation(seconds=60.0)
    return None


@SILENCE_SCENARIO.rule(
    "client-robust/timeouts",
    "should",
    case="a call that is never answered",
    at=("basic/lifecycle#timeouts", "basic/patterns/cancellation#timeouts"),
    cause="There is no timeout by default.",
)
def client_robust_timeouts(run: ClientRun) -> None:
    """A request that is never answered is given up at some time."""
    run.require_no_crash()
    if run.messages_after() or run.ending == "itself":
        return
    raise NotObserved(f"after {_SILENCE_LIMIT:g} s the client still waited; its timeout may be longer")


@SILENCE_SCENARIO.rule(
    "client-cancel/on-timeout",
    "should",
    case="a call that is never answered",
    at=("basic/lifecycle#timeouts", "basic/patterns/cancellation#timeouts"),
    cause="The caller gets an error, and the server is told nothing.",
)
def client_cancel_on_timeout(run: ClientRun) -> None:
    """A request that is given up is cancelled, so that the server can stop."""
    silent = _abandoned_request(run)
    closed = run.transport == "http" and not RULES[run.revision].handshake
    if not _is_cancelled(run, silent) and not (
        closed and run.exchanges[silent.entry.stream - 1].client_closed_at is not None
    ):
        raise Violation("the request was given up, and not cancelled", evidence=run.evidence())


@SILENCE_SCENARIO.rule(
    "client-cancel/by-notification",
    "must",
    case="a call that is never answered",
    at="basic/transports/stdio#cancellation",
    since=_SINCE,
    over=LINE_TRANSPORTS,
    cause="The caller gets an error, and the server is told nothing.",
)
def client_cancel_by_notification(run: ClientRun) -> None:
    """Over stdio a request is cancelled by notifications/cancelled."""
    if not _is_cancelled(run, _abandoned_request(run)):
        raise Violation("the request was given up, and not cancelled", evidence=run.evidence())


def _is_cancelled(run: ClientRun, request: ClientMessage) -> bool:
    """Whether the client said that it gives it up."""
    id = id_key(request.body["id"])
    return any(id_key(each.params.get("requestId")) == id for each in run.notifications(CANCELLED))


@SILENCE_SCENARIO.rule(
    "client-cancel/by-closing",
    "should",
    case="a call that is never answered",
    at=("basic/transports/streamable-http#cancellation", "basic/patterns/cancellation#transport-specific-cancellation"),
    since=_SINCE,
    over=HTTP,
    cause="The stream is left open, or notifications/cancelled is posted as in older revisions.",
)
def client_cancel_by_closing(run: ClientRun) -> None:
    """Over HTTP a request is cancelled by closing its stream, and by nothing else."""
    silent = _abandoned_request(run)
    for cancel in run.notifications(CANCELLED):
        raise Violation("notifications/cancelled was posted", evidence=[cancel.entry.line()])
    exchange = run.exchanges[silent.entry.stream - 1]
    if exchange.client_closed_at is None:
        raise Violation("the stream was left open", evidence=[exchange.line()])


def _abandoned_request(run: ClientRun) -> ClientMessage:
    """The request that was not answered. Raises `NotObserved` where the client still waited for it."""
    run.require_no_crash()
    if not run.messages_after() and run.ending != "itself":
        raise NotObserved("the client still waited when it was ended")
    unanswered = [each for each in run.requests() if _response_to(each) is None and each.method not in _OPENING]
    if not unanswered:
        raise NotObserved("every request was answered")
    return unanswered[0]


_OPENING = ("initialize", "server/discover", "subscriptions/listen")

LATE_ANSWER_SCENARIO = Scenario(
    "late-answer", "a call is answered after the client has given up", patience=_SILENCE_LIMIT
)


@LATE_ANSWER_SCENARIO.on("tools/call", FIRST_REQUEST)
async def answer_late_answer(request: IncomingRequest) -> ScriptedAnswer:
    if request.conversation.server.is_first_time("late"):
        await request.wait_for_cancellation(seconds=30.0)
    return await request.default_result()


@LATE_ANSWER_SCENARIO.rule(
    "client-cancel/late-answer",
    "should",
    case="an answer after a cancellation",
    at=_AT,
    cause="Every answer has to be for a request that is known.",
)
def client_cancel_late_answer(run: ClientRun) -> None:
    """An answer that comes after the client has given up is passed over."""
    run.require_no_crash()
    told = any(each.method == CANCELLED for each in run.messages_after())
    if not told and not any(
        each.client_closed_at is not None and each.client_closed_at < run.finished_at for each in run.posts()
    ):
        raise NotObserved("the client cancelled nothing")
    answers = [(each, answer.at) for each in run.requests() if (answer := _response_to(each))]
    late = max((at for each, at in answers if _is_cancelled(run, each)), default=0.0)
    run.require_progress(
        min((at for _, at in answers if at > late), default=late)
    )  # a request that crossed it shows nothing


SILENT_INITIALIZE_SCENARIO = Scenario(
    "silent-initialize", "initialize is never answered", until=_SINCE, patience=_SILENCE_LIMIT
)


@SILENT_INITIALIZE_SCENARIO.on("initialize")
async def answer_silent_initialize(request: IncomingRequest) -> ScriptedAnswer:
    await request.wait_for_cancellation(seconds=60.0)
    return None


@SILENT_INITIALIZE_SCENARIO.case(client_cancel_not_initialize, "initialize that is never answered")
def client_cancel_not_initialize_again(run: ClientRun) -> None:
    run.require_no_crash()
    opened = run.requests("initialize")
    for cancel in run.notifications(CANCELLED):
        if any(id_key(each.body["id"]) == id_key(cancel.params.get("requestId")) for each in opened):
            raise Violation("initialize was cancelled", evidence=run.evidence(opened[0].entry, cancel.entry))
    if run.ending != "itself":
        raise NotObserved("the client still waited when it was ended")


# --- reading -----------------------------------------------------------------------------------------------------


def _requests_before(run: ClientRun, message: ClientMessage) -> list[ClientMessage]:
    """The requests of the same conversation that came before."""
    return [
        each
        for each in run.requests()
        if each.conversation is message.conversation and each.entry.at <= message.entry.at
    ]


def _response_to(request: ClientMessage) -> LogEntry | None:
    """What we answered."""
    for entry in request.conversation.log.entries:
        message = entry.message
        sent = entry.direction == SENT and entry.at >= request.entry.at and isinstance(message, dict)
        if sent and "method" not in message and message.get("id") == request.body["id"]:
            return entry
    return None


def _requests_with_token(runs: Sequence[ClientRun]) -> Iterator[ClientMessage]:
    """The requests that carry a token."""
    return (each for run in runs for each in run.requests() if "progressToken" in each.meta)
