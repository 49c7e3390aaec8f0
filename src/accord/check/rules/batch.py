"""Batches: several messages in one array, which 2025-03-26 has, and no revision before or after it."""

from __future__ import annotations

from typing import Any

from accord.check.reading import Heard, is_answer, was_refused
from accord.check.record import Said, objects
from accord.check.rule import LINES, Broken, Rule
from accord.check.talk import Talk
from accord.check.values import shown
from accord.messages.base import JSONObject
from accord.wire.transcript import RECEIVED

BATCHING = "basic/index#batching"
SINCE, UNTIL = "2025-03-26", "2025-06-18"

SERVED = Rule(
    "batch/served",
    "must",
    "A batch is received, and each request in it is answered.",
    at=BATCHING,
    since=SINCE,
    until=UNTIL,
    cause="Only single messages are understood. Whoever speaks 2025-03-26 must understand batches: refuse the "
    "revision, or take each item as a message of its own.",
)


@SERVED.case("one request alone, and two with a notification between them")
async def _(talk: Talk) -> None:
    await _served(talk, [_request("accord-check-only")])
    await _served(talk, [_request("accord-check-first"), _notification(), _request("accord-check-second")])


async def _served(talk: Talk, items: list[Any], *, misbehaved: bool = False) -> None:
    for pending in talk.send_batch(items, misbehaved=misbehaved):
        try:
            answer = await pending.answer()
        except Broken as exc:
            exc.cause = ""  # no request got lost: the array was not read
            raise
        if answer.error is not None:
            raise talk.broken(f"{shown(pending.id)} is answered with {shown(answer.error)}", since=pending.since)


SILENT = Rule(
    "batch/notifications",
    "must",
    "A batch of nothing but notifications is not answered.",
    at=(BATCHING, "basic/index#notifications"),
    since=SINCE,
    until=UNTIL,
    cause="An empty array is sent for the answers that are none.",
)


@SILENT.case("two notifications")
async def _(talk: Talk) -> None:
    since = len(talk.record.entries)
    talk.send([_notification(), _notification()], misbehaved=False)
    await talk.tide()
    for said in talk.record.entries[since:]:
        if said.direction == RECEIVED and (said.message == [] or _is_said(talk, said)):
            raise talk.broken(f"it is answered with {shown(said.message)}", since=since)


def _is_said(talk: Talk, said: Said) -> bool:
    """Whether the server sent a response without an id, which is not the body of an HTTP refusal."""
    return any(
        is_answer(each) and each.get("id") is None and not was_refused(Heard(talk.record, said, each))
        for each in objects(said.message)
    )


MIXED = Rule(
    "batch/invalid-items",
    "should",
    "What is wrong with one item of a batch does not keep the others from being answered.",
    at=BATCHING,
    since=SINCE,
    until=UNTIL,
    cause="The whole array is held against the type of a batch.",
)


@MIXED.case("a number beside a request", kind="own", over=LINES)  # HTTP may refuse the whole body
async def _(talk: Talk) -> None:
    await _served(talk, [7, _request("accord-check-good")], misbehaved=True)


EMPTY = Rule(
    "batch/empty",
    "should",
    "An empty array is refused with an error.",
    at=BATCHING,
    since=SINCE,
    until=UNTIL,
    cause="An array without items passes for a batch of notifications.",
)


@EMPTY.case("an array without items", kind="own")
async def _(talk: Talk) -> None:
    since = len(talk.record.entries)
    said = await talk.exchange([])
    refused = talk.http is not None and any(reply.status >= 400 for reply in talk.record.replies)
    if not refused and not any("error" in each for each in said):
        raise talk.broken("nothing says that it is wrong", since=since)


def _request(id: str) -> JSONObject:
    return {"jsonrpc": "2.0", "id": id, "method": "ping"}


def _notification() -> JSONObject:
    return {"jsonrpc": "2.0", "method": "notifications/accord-check-nobody"}
