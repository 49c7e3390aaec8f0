"""Pings: an empty answer, at once, at any time of a session."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from accord.check.rule import Rule
from accord.check.slow import has_slow, start_slow
from accord.check.speech import hello_params
from accord.check.talk import Talk
from accord.check.values import shown
from accord.check.waiting import Answer

BEHAVIOUR = "basic/utilities/ping#behavior-requirements"
UNTIL = "2026-07-28"

ANSWERED = Rule(
    "ping/answered",
    "must",
    "A ping is answered with an empty result.",
    at=BEHAVIOUR,
    until=UNTIL,
    cause="There is no handler for ping, or it answers with a word: the result is an empty object.",
)


@ANSWERED.case("without params, with empty ones, with _meta")
async def _(talk: Talk) -> None:
    forms: tuple[Any, ...] = (UNSET, {}, {"_meta": {}}, {"_meta": {"progressToken": "accord-check"}})
    for params in forms:
        message = {"jsonrpc": "2.0", "id": talk.next_id(), "method": "ping"}
        if params is not UNSET:
            message["params"] = params
        _is_empty(talk, await talk.send(message, misbehaved=False).answer())


def _is_empty(talk: Talk, answer: Answer) -> None:
    if not isinstance(answer.result, dict) or answer.result.keys() - {"_meta"}:
        raise talk.broken(f"a ping is answered with {shown(answer.error or answer.result)}")


PROMPT = Rule(
    "ping/prompt",
    "must",
    "A ping is answered promptly.",
    at=BEHAVIOUR,
    until=UNTIL,
    cause="Pings wait in the queue of the requests that take long, or the thread that reads is the one that works.",
)
_SOON = 2.0
"""In seconds: longer than a server at rest needs."""


@PROMPT.case("three in a row, at rest")
async def _(talk: Talk) -> None:
    for _ in range(3):
        answer = await talk.request("ping")
        if answer.seconds > _SOON:
            raise talk.broken(f"the answer took {answer.seconds:.1f} s")


BUSY = Rule(
    "ping/while-busy",
    "should",
    "A ping is answered while a call is at work.",
    at=BEHAVIOUR,
    until=UNTIL,
    cause="One message is served after the other: the call keeps the connection busy.",
)


@BUSY.case("a ping in the middle of a long call", kind="own", needs="tools", calls=True, applies=has_slow)
async def _(talk: Talk) -> None:
    call = await start_slow(talk)
    answer = await talk.request("ping")
    if call.arrived and answer.error is None:
        raise talk.broken("the ping was answered after the call was done", since=call.since)


EARLY = Rule(
    "ping/before-initialized",
    "should",
    "A ping is answered before the client has said that it is ready.",
    at=("basic/lifecycle#initialization", BEHAVIOUR),
    until=UNTIL,
    cause="Everything is refused until notifications/initialized comes: let pings through.",
)


@EARLY.case("a ping between the answer to initialize and the notification", kind="raw")
async def _(talk: Talk) -> None:
    await talk.request("initialize", hello_params(talk.revision, talk.declared), seconds=talk.settings.opening)
    answer = await talk.request("ping")
    if answer.error is not None:
        raise talk.broken(f"it is answered with {shown(answer.error)}", since=0)
