"""Requests that a client gives up, and the tokens by which it hears of their progress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from accord.check.clients.ask import Ask
from accord.check.clients.conversation import CANCELLED
from accord.check.clients.run import Message, Run
from accord.check.clients.scene import FIRST, Answer, Scene
from accord.check.reading import key
from accord.check.record import Said
from accord.check.rule import HTTP, LINES, Broken, NotObserved, Rule
from accord.messages.revision import RULES
from accord.wire.transcript import SENT

_SINCE = "2026-07-28"
_AT = ("basic/utilities/cancellation#behavior-requirements", "basic/patterns/cancellation#behavior-requirements")
_RACE = 1.0
"""Seconds in which a cancellation and an answer may cross."""
_PATIENCE = 5.0

OWN = Rule(
    "client-cancel/own-active",
    "must",
    "A client cancels only what it has asked for, and what is not answered yet.",
    at=_AT,
    role="client",
    cause="Every request is cancelled when it ends, or the id is written with another type.",
)

INITIALIZE = Rule(
    "client-cancel/not-initialize",
    "must",
    "initialize is never cancelled.",
    at="basic/utilities/cancellation#behavior-requirements",
    role="client",
    until=_SINCE,
    cause="The timeout treats every request alike.",
)

TIMEOUT = Rule(
    "client-cancel/on-timeout",
    "should",
    "A request that is given up is cancelled, so that the server can stop.",
    at=("basic/lifecycle#timeouts", "basic/patterns/cancellation#timeouts"),
    role="client",
    cause="The caller gets an error, and the server is told nothing.",
)

NOTIFIED = Rule(
    "client-cancel/by-notification",
    "must",
    "Over stdio a request is cancelled by notifications/cancelled.",
    at="basic/transports/stdio#cancellation",
    role="client",
    since=_SINCE,
    over=LINES,
    cause="The caller gets an error, and the server is told nothing.",
)

CLOSED = Rule(
    "client-cancel/by-closing",
    "should",
    "Over HTTP a request is cancelled by closing its stream, and by nothing else.",
    at=("basic/transports/streamable-http#cancellation", "basic/patterns/cancellation#transport-specific-cancellation"),
    role="client",
    since=_SINCE,
    over=HTTP,
    cause="The stream is left open, or notifications/cancelled is posted as in older revisions.",
)

LATE = Rule(
    "client-cancel/late-answer",
    "should",
    "An answer that comes after the client has given up is passed over.",
    at=_AT,
    role="client",
    cause="Every answer has to be for a request that is known.",
)

TIMEOUTS = Rule(
    "client-robust/timeouts",
    "should",
    "A request that is never answered is given up at some time.",
    at=("basic/lifecycle#timeouts", "basic/patterns/cancellation#timeouts"),
    role="client",
    cause="There is no timeout by default.",
)

TOKENS = Rule(
    "client-progress/token-type",
    "must",
    "A progress token is a string or an integer.",
    at=("basic/utilities/progress#progress-flow", "basic/patterns/progress#progress-flow"),
    role="client",
    cause="A number with a fraction, or null, stands there.",
)

ONCE = Rule(
    "client-progress/token-once",
    "must",
    "No two requests in flight have the same progress token.",
    at=("basic/utilities/progress#progress-flow", "basic/patterns/progress#progress-flow"),
    role="client",
    cause="The token is a constant.",
)


@OWN.reading("every cancellation")
def _(runs: Sequence[Run]) -> int:
    cancels = [(run, each) for run in runs for each in run.notifications(CANCELLED)]
    for run, cancel in cancels:
        target = key(cancel.params.get("requestId"))
        asked = [each for each in _before(run, cancel) if key(each.body["id"]) == target]
        if not asked:
            text = f"{cancel.params.get('requestId')!r} is the id of no request of the client"
            raise Broken(text, evidence=run.evidence(cancel.said))
        answer = _answer_to(asked[-1])
        if answer is not None and answer.at < cancel.said.at - _RACE and _is_known(asked[-1], answer):
            text = "a request was cancelled long after its answer"
            raise Broken(text, evidence=run.evidence(asked[-1].said, answer, cancel.said))
    return len(cancels)


def _is_known(request: Message, answer: Said) -> bool:
    """Whether the client must have read an answer: it is no scene's doing, and does not stand behind what is."""
    return not any(said.misbehaved and said.at <= answer.at for said in request.conversation.record.entries)


@INITIALIZE.reading("every cancellation")
def _(runs: Sequence[Run]) -> int:
    cancels = [(run, each) for run in runs for each in run.notifications(CANCELLED)]
    for run, cancel in cancels:
        for asked in _before(run, cancel):
            if asked.method == "initialize" and key(asked.body["id"]) == key(cancel.params.get("requestId")):
                raise Broken("initialize was cancelled", evidence=run.evidence(asked.said, cancel.said))
    return len(cancels)


@TOKENS.reading("every progress token")
def _(runs: Sequence[Run]) -> int:
    tokens = [*_tokens(runs)]
    for each in tokens:
        token = each.meta["progressToken"]
        if not isinstance(token, str | int) or isinstance(token, bool):
            raise Broken(f"the progress token is {token!r}", evidence=[each.said.line()])
    return len(tokens)


@ONCE.reading("every progress token")
def _(runs: Sequence[Run]) -> int:
    open_: dict[Any, Message] = {}
    judged = 0
    for each in _tokens(runs):
        place = (id(each.conversation), key(each.meta["progressToken"]))
        before = open_.get(place)
        answer = None if before is None else _answer_to(before)
        if before is not None and (answer is None or answer.at > each.said.at) and not _retries(before, each):
            raise Broken("two requests in flight have one token", evidence=[before.said.line(), each.said.line()])
        open_[place] = each
        judged += 1
    return judged


def _retries(before: Message, after: Message) -> bool:
    """Whether it is the same request sent again, its first try given up."""
    given_up = before.conversation.is_given_up(before.body["id"])
    return given_up or before.conversation is not after.conversation


# --- silence -----------------------------------------------------------------------------------------------------

SILENT = Scene("silence", "a call is never answered", patience=_PATIENCE)


@SILENT.on("tools/call", FIRST)
async def _(ask: Ask) -> Answer:
    if not ask.conversation.stand.once("silence"):
        return await ask.usual()
    await ask.cancelled(seconds=60.0)
    return None


@SILENT.judges(TIMEOUTS, "a call that is never answered")
def _(run: Run) -> None:
    run.survived()
    if run.after() or run.ending == "itself":
        return
    raise NotObserved(f"after {_PATIENCE:g} s the client still waited; its timeout may be longer")


@SILENT.judges(TIMEOUT, "a call that is never answered")
def _(run: Run) -> None:
    silent = _given_up(run)
    closed = run.transport == "http" and not RULES[run.revision].handshake
    if not _is_cancelled(run, silent) and not (closed and run.exchanges[silent.said.stream - 1].hung_up is not None):
        raise Broken("the request was given up, and not cancelled", evidence=run.evidence())


@SILENT.judges(NOTIFIED, "a call that is never answered")
def _(run: Run) -> None:
    if not _is_cancelled(run, _given_up(run)):
        raise Broken("the request was given up, and not cancelled", evidence=run.evidence())


def _is_cancelled(run: Run, request: Message) -> bool:
    """Whether the client said that it gives it up."""
    id = key(request.body["id"])
    return any(key(each.params.get("requestId")) == id for each in run.notifications(CANCELLED))


@SILENT.judges(CLOSED, "a call that is never answered")
def _(run: Run) -> None:
    silent = _given_up(run)
    for cancel in run.notifications(CANCELLED):
        raise Broken("notifications/cancelled was posted", evidence=[cancel.said.line()])
    exchange = run.exchanges[silent.said.stream - 1]
    if exchange.hung_up is None:
        raise Broken("the stream was left open", evidence=[exchange.line()])


def _given_up(run: Run) -> Message:
    """The request that was not answered. Raises `NotObserved` where the client still waited for it."""
    run.survived()
    if not run.after() and run.ending != "itself":
        raise NotObserved("the client still waited when it was ended")
    unanswered = [each for each in run.requests() if _answer_to(each) is None and each.method not in _OPENING]
    if not unanswered:
        raise NotObserved("every request was answered")
    return unanswered[0]


_OPENING = ("initialize", "server/discover", "subscriptions/listen")

BELATED = Scene("late-answer", "a call is answered after the client has given up", patience=_PATIENCE)


@BELATED.on("tools/call", FIRST)
async def _(ask: Ask) -> Answer:
    if ask.conversation.stand.once("late"):
        await ask.cancelled(seconds=30.0)
    return await ask.usual()


@BELATED.judges(LATE, "an answer after a cancellation")
def _(run: Run) -> None:
    run.survived()
    told = any(each.method == CANCELLED for each in run.after())
    if not told and not any(each.hung_up is not None and each.hung_up < run.finished for each in run.posts()):
        raise NotObserved("the client cancelled nothing")
    answers = [(each, answer.at) for each in run.requests() if (answer := _answer_to(each))]
    late = max((at for each, at in answers if _is_cancelled(run, each)), default=0.0)
    run.got_away(min((at for _, at in answers if at > late), default=late))  # a request that crossed it shows nothing


DUMB = Scene("silent-initialize", "initialize is never answered", until=_SINCE, patience=_PATIENCE)


@DUMB.on("initialize")
async def _(ask: Ask) -> Answer:
    await ask.cancelled(seconds=60.0)
    return None


@DUMB.judges(INITIALIZE, "initialize that is never answered")
def _(run: Run) -> None:
    run.survived()
    opened = run.requests("initialize")
    for cancel in run.notifications(CANCELLED):
        if any(key(each.body["id"]) == key(cancel.params.get("requestId")) for each in opened):
            raise Broken("initialize was cancelled", evidence=run.evidence(opened[0].said, cancel.said))
    if run.ending != "itself":
        raise NotObserved("the client still waited when it was ended")


# --- reading -----------------------------------------------------------------------------------------------------


def _before(run: Run, message: Message) -> list[Message]:
    """The requests of the same conversation that came before."""
    return [
        each for each in run.requests() if each.conversation is message.conversation and each.said.at <= message.said.at
    ]


def _answer_to(request: Message) -> Said | None:
    """What we answered."""
    for said in request.conversation.record.entries:
        message = said.message
        sent = said.direction == SENT and said.at >= request.said.at and isinstance(message, dict)
        if sent and "method" not in message and message.get("id") == request.body["id"]:
            return said
    return None


def _tokens(runs: Sequence[Run]) -> Iterator[Message]:
    """The requests that carry a token."""
    return (each for run in runs for each in run.requests() if "progressToken" in each.meta)
