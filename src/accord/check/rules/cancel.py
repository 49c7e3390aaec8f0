"""Cancelling: what is cancelled ends quietly, and what cannot be cancelled is no mistake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.reading import Heard, is_answer, key, messages
from accord.check.record import Record
from accord.check.rule import LINES, Rule
from accord.check.rules.progress import PROGRESS, token_of
from accord.check.slow import has_slow, start_slow
from accord.check.symptoms import NOTIFICATION_ANSWERED
from accord.check.talk import Talk
from accord.check.values import shown
from accord.messages.base import JSONObject
from accord.messages.methods import CLIENT, table
from accord.wire.transcript import SENT

OLD, NEW = "basic/utilities/cancellation", "basic/patterns/cancellation"
BEHAVIOUR = (f"{OLD}#behavior-requirements", f"{NEW}#behavior-requirements")
TIMING = (f"{OLD}#timing-considerations", f"{NEW}#timing-considerations")
CANCELLED = "notifications/cancelled"
MODERN = "2026-07-28"
_LONGEST = 3.0
"""Seconds in which a call that was not cancelled would be done."""

QUIET = Rule(
    "cancel/no-answer",
    "should",
    "A request that was cancelled while it was at work is not answered.",
    at=BEHAVIOUR,
    cause="The handler is stopped, and its end is sent as an error; or it is not stopped at all.",
)
STOPS = Rule(
    "cancel/stops",
    "should",
    "A request that was cancelled is not worked on any more.",
    at=BEHAVIOUR,
    cause="Cancelling only drops the answer: stop the handler itself.",
)


@QUIET.case("a call in the middle of its work", kind="own", needs="tools", calls=True, applies=has_slow, until=MODERN)
@QUIET.case(
    "the same over stdio, where no stream can be closed",
    kind="own",
    calls=True,
    applies=has_slow,
    since=MODERN,
    over=LINES,
)
async def _(talk: Talk) -> None:
    call = await start_slow(talk)
    _cancel(talk, call.id)
    await talk.tide()
    if await talk.hear(lambda message: is_answer(message) and message.get("id") == call.id, _LONGEST):
        raise talk.broken("the call is answered after it was cancelled", since=call.since)


@STOPS.reading("the progress of requests that were cancelled")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        ended = _Ended()
        for said, message in messages(record):
            if said.direction == SENT:
                ended.sent(message)
                continue
            if message.get("method") == PROGRESS and key(_params(message).get("progressToken")) in ended.over:
                raise Heard(record, said, message).broken("it tells of its progress after it was cancelled")
            ended.heard(message)
        judged += len(ended.over)
    return judged


class _Ended:
    """Tokens of requests that were cancelled, and that the server knows of: a later request has been answered."""

    def __init__(self) -> None:
        self.over: set[Any] = set()
        self._tokens: dict[Any, Any] = {}
        self._cancelled: list[Any] = []
        self._after: dict[Any, list[Any]] = {}

    def sent(self, message: JSONObject) -> None:
        """Process one message of ours."""
        if message.get("method") == CANCELLED and key(_subject(message)) in self._tokens:
            self._cancelled.append(self._tokens[key(_subject(message))])
        elif "method" in message and "id" in message:
            self._after[key(message["id"])], self._cancelled = self._cancelled, []
            if (token := token_of(message)) is not None:
                self._tokens[key(message["id"])] = key(token)

    def heard(self, message: JSONObject) -> None:
        """Process one message of the server."""
        if is_answer(message):
            self.over.update(self._after.pop(key(message.get("id")), ()))


IGNORED = Rule(
    "cancel/ignored",
    "should",
    "A cancellation that names no request in flight changes nothing and gets no answer.",
    at=(f"{OLD}#error-handling", f"{NEW}#error-handling"),
    cause="A notification that cannot be followed is answered with an error, or ends the connection.",
)


@IGNORED.case("unknown ids, ids of what is done, and params that are none")
async def _(talk: Talk) -> None:
    done = await talk.request(talk.harmless)
    ids: tuple[Any, ...] = (talk.nobody, 999_999_999, done.id, "", None, {}, [1])
    wrong: list[Any] = [{"requestId": id, "reason": "accord check"} for id in ids]
    for params in (*wrong, {}, [], None):
        await _unheeded(talk, {"jsonrpc": "2.0", "method": CANCELLED, "params": params})
    await _unheeded(talk, {"jsonrpc": "2.0", "method": CANCELLED})


async def _unheeded(talk: Talk, message: JSONObject) -> None:
    since = len(talk.record.entries)
    talk.send(message)
    said = [each for each in await talk.tide() if is_answer(each)]
    if said and (talk.http is None or "result" in said[0]):
        raise talk.broken(f"{shown(said[0])} is said to {shown(message)}", since=since, symptom=NOTIFICATION_ANSWERED)


@IGNORED.case("ids of requests that are sent only then", over=LINES)
async def _(talk: Talk) -> None:
    for number in range(3):
        _cancel(talk, f"accord-check-early-{number}")
        await talk.tide()
        await talk.result(talk.harmless, id=f"accord-check-early-{number}")


RACE = Rule(
    "cancel/race",
    "must",
    "A request that is done when its cancellation comes is answered once or not at all, and others are not touched.",
    at=TIMING,
    cause="A request is taken out of the table twice, or the task that is stopped is the one that reads.",
)


@RACE.case("fifty requests, each cancelled at once, and one that is not", kind="own", shares=True, until=MODERN)
@RACE.case(
    "fifty requests, each cancelled at once, and one that is not", kind="own", shares=True, since=MODERN, over=LINES
)
async def _(talk: Talk) -> None:
    since = len(talk.record.entries)
    for number in range(50):
        talk.begin(talk.harmless, id=f"accord-check-race-{number}")
        _cancel(talk, f"accord-check-race-{number}")
    kept = talk.begin(talk.harmless)
    await kept.answer()
    await talk.tide()
    counted: dict[Any, int] = {}
    for each in talk.others(since, kept.id):
        if is_answer(each) and each.get("id") is not None:  # what has no id answers a notification
            counted[key(each.get("id"))] = counted.get(key(each.get("id")), 0) + 1
    if max(counted.values(), default=0) > 1:
        raise talk.broken("a request was answered twice after it was cancelled", since=since)


HANDSHAKE = Rule(
    "cancel/initialize",
    "must",
    "To cancel initialize, which a client must not do, does not take back what was agreed.",
    at=(BEHAVIOUR[0], TIMING[0]),
    until=MODERN,
    cause="initialize is kept among the requests that can be cancelled, and the session goes with it.",
)


@HANDSHAKE.case("initialize, cancelled after its answer")
async def _(talk: Talk) -> None:
    for message in talk.record.sent():
        if message.get("method") == "initialize":
            talk.send({"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": message["id"]}})
    await talk.tide()


OWN = Rule(
    "cancel/own-requests",
    "must",
    "The server cancels only requests that it sent itself, and no tasks.",
    at=BEHAVIOUR[0],
    until=MODERN,
    cause="The id of the client's request is used: a server that gives up on that answers with an error.",
)
LISTENS = Rule(
    "cancel/only-subscriptions",
    "must",
    "The server sends a cancellation only to end a subscription, by the id of its request.",
    at=(NEW, BEHAVIOUR[1]),
    since=MODERN,
    cause="A request that takes too long is told off by a cancellation: answer it with an error.",
)


@OWN.reading("all cancellations of the server")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        issued: dict[tuple[type, Any], JSONObject] = {}
        for said, message in messages(record):
            if said.direction == SENT:
                continue
            if "method" in message and "id" in message:
                issued[key(message["id"])] = message
            elif message.get("method") == CANCELLED:
                judged += 1
                request = issued.get(key(_subject(message)))
                if request is None:
                    raise Heard(record, said, message).broken(f"the server sent no request {shown(_subject(message))}")
                if "task" in _params(request):
                    raise Heard(record, said, message).broken("a task is cancelled: tasks/cancel is there for that")
    return judged


@LISTENS.reading("all cancellations of the server")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        staying = [name for name, row in table(record.revision, CLIENT).items() if row.stays]
        listens = {key(message.get("id")) for message in record.sent() if message.get("method") in staying}
        for said, message in messages(record):
            if said.direction != SENT and message.get("method") == CANCELLED:
                judged += 1
                if key(_subject(message)) not in listens:
                    raise Heard(record, said, message).broken(f"no subscription has the id {shown(_subject(message))}")
    return judged


def _subject(message: JSONObject) -> Any:
    return _params(message).get("requestId")


def _params(message: JSONObject) -> JSONObject:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _cancel(talk: Talk, id: Any) -> None:
    talk.notify(CANCELLED, {"requestId": id, "reason": "accord check tries what happens"})
