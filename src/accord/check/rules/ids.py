"""Ids: an answer has the id of its request, with its type, and a request of the server has one of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from accord.check.blocks import inside
from accord.check.reading import Heard, heard, is_answer, key, was_refused
from accord.check.record import Record, Said, objects
from accord.check.rule import Rule
from accord.check.symptoms import NOTIFICATION_ANSWERED
from accord.check.talk import Talk
from accord.check.values import shown
from accord.messages.base import JSONObject
from accord.wire.transcript import SENT

ECHO = Rule(
    "ids/same",
    "must",
    "An answer has exactly the id of its request: the same text, or the same number.",
    at=("basic/index#responses", "basic/messages#responses"),
    cause="Ids are kept as texts, or as floating point numbers, or an id that counts as false (0, an empty text) is "
    "taken for none: keep the JSON value as it came.",
)

_TWIN = 7_000_070
"""Beyond what we count to in one conversation: "The request ID MUST NOT have been previously used"."""
IDS: dict[str, tuple[Any, ...]] = {
    "numbers": (0, -1, 7_000_001, 2**31, 2**53 - 1),
    "texts": ("", "0", "null", "7000001", "a b/ü\u2028\n\"'{}", "x" * 300),
}


async def _echoed(talk: Talk, ids: Sequence[Any]) -> None:
    for id in ids:
        pending = talk.begin(talk.harmless, id=id)
        said = await talk.tide()
        taken = (str(id),) if pending.arrived else (str(id), "None")  # a GET may be refused without an id meanwhile
        for each in said:
            if is_answer(each) and key(each.get("id")) != key(id) and str(each.get("id")) in taken:
                raise talk.broken(f"{shown(id)} is answered as {shown(each.get('id'))}", since=pending.since)
        await pending.answer()


@ECHO.case("ids that are numbers, 0 among them")
async def _(talk: Talk) -> None:
    await _echoed(talk, IDS["numbers"])


@ECHO.case("ids that are texts, the empty one among them")
async def _(talk: Talk) -> None:
    await _echoed(talk, IDS["texts"])


@ECHO.case("a number and its text at the same time")
async def _(talk: Talk) -> None:
    number, text = talk.begin(talk.harmless, id=_TWIN), talk.begin(talk.harmless, id=str(_TWIN))
    await number.answer()
    await text.answer()


@ECHO.reading("all answers")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        known: set[tuple[type, Any]] = set()
        is_lawful, streams = True, set[int]()
        for said in record.entries:
            is_lawful = is_lawful and not said.misbehaved
            if said.direction == SENT:
                known.update(key(each["id"]) for each in objects(said.message) if "method" in each and "id" in each)
                streams.add(said.stream)
                continue
            for answer in _answers_in(record, said, streams):
                judged += 1
                if key(answer.get("id")) not in known and (is_lawful or "result" in answer):
                    _unknown(Heard(record, said, answer))
    return judged


def _answers_in(record: Record, said: Said, streams: set[int]) -> list[JSONObject]:
    """The answers in a message. Over HTTP, what comes on a stream that no message of ours opened is sent again."""
    if record.transport == "http" and said.stream not in streams:
        return []
    return [each for each in objects(said.message) if is_answer(each)]


def _unknown(answer: Heard) -> None:
    if not ("error" in answer.message and was_refused(answer)):
        id = answer.message.get("id")
        raise answer.broken(f"no request has the id {shown(id)}", symptom=NOTIFICATION_ANSWERED if id is None else "")


ONCE = Rule(
    "ids/one-answer",
    "must",
    "A request gets one answer, and no second one.",
    at=("basic/index#responses", "basic/messages#responses"),
    cause="After an error has been sent the handler goes on, and its result is sent as well.",
)


@ONCE.reading("all answers")
def _(records: Sequence[Record]) -> int:
    """Those to cancelled requests are a race, which `cancel/race` judges: a second one comes in some runs only."""
    judged = 0
    for record in records:
        asked: Counter[tuple[type, Any]] = Counter()
        cancelled: set[tuple[type, Any]] = set()
        streams: set[int] = set()
        for said in record.entries:
            if said.direction == SENT:
                streams.add(said.stream)
                asked.update(key(each["id"]) for each in objects(said.message) if _is_named(each))
                cancelled.update(key(inside(each, "params").get("requestId")) for each in _cancellations(said))
                continue
            for answer in _answers_in(record, said, streams):
                id = key(answer.get("id"))
                judged += id in asked
                asked.subtract([id] if id in asked else [])
                if asked[id] < 0 and id not in cancelled:
                    raise Heard(record, said, answer).broken(f"{shown(answer.get('id'))} was answered before")
    return judged


def _cancellations(said: Said) -> list[JSONObject]:
    return [each for each in objects(said.message) if each.get("method") == "notifications/cancelled"]


def _is_named(message: JSONObject) -> bool:
    return "method" in message and message.get("id") is not None


OF_REQUESTS = Rule(
    "ids/of-requests",
    "must",
    "A request of the server has an id that is a text or an integer.",
    at=("basic/index#requests", "basic/messages#requests"),
    until="2026-07-28",
    cause="Null, which JSON-RPC allows, is no id here.",
)


@OF_REQUESTS.reading("all requests of the server")
def _(records: Sequence[Record]) -> int:
    found = [each for each in heard(records) if _is_request(each.message)]
    for each in found:
        if type(each.message["id"]) not in (int, str):
            raise each.broken(f"{each.message['method']} has the id {shown(each.message['id'])}")
    return len(found)


UNUSED = Rule(
    "ids/unused",
    "must",
    "A request of the server has an id that it did not use before in this session.",
    at=("basic/index#requests", "basic/messages#requests"),
    until="2026-07-28",
    cause="Ids are counted for each stream or each call, and not for the session.",
)


@UNUSED.reading("all requests of the server")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        used: dict[tuple[type, Any], Any] = {}
        for each in heard([record]):
            id = key(each.message.get("id"))
            if _is_request(each.message) and each.said.stream not in _resumed(record):
                judged += 1
                if id in used:
                    raise each.broken(f"{shown(each.message['id'])} was the id of a request before", about=[used[id]])
                used[id] = each.said
    return judged


def _resumed(record: Record) -> set[int]:
    """Streams on which messages come again that came before."""
    return {reply.stream for reply in record.replies if "last-event-id" in reply.sent}


AGAIN = Rule(
    "ids/again",
    "must",
    "An id may be used again once its request was answered.",
    at="basic/index#requests",
    since="2026-07-28",
    cause="All ids that ever came are remembered, as if there were sessions still.",
)


@AGAIN.case("the same id three times, one after the other")
async def _(talk: Talk) -> None:
    for _ in range(3):
        await talk.result(talk.harmless, id="accord-check-again")


def _is_request(message: JSONObject) -> bool:
    return "id" in message and "method" in message and not str(message["method"]).startswith("notifications/")
