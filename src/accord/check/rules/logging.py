"""Log messages: who may send them, which of them, and what must not stand in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from accord.check import lists
from accord.check.blocks import inside
from accord.check.reading import Heard, heard, is_answer, key, messages
from accord.check.record import Record, Said
from accord.check.rule import HTTP, Rule
from accord.check.talk import Talk
from accord.check.values import declares, shown
from accord.errors import INVALID_PARAMS
from accord.messages.base import JSONObject, LoggingLevel
from accord.messages.meta import LOG_LEVEL
from accord.wire.transcript import SENT

LEVELS: tuple[str, ...] = get_args(LoggingLevel)
"""The least severe first."""
MESSAGE = "notifications/message"
_MOST = 10

DECLARED = Rule(
    "logging/declared",
    "must",
    "A server that sends log messages declares the capability `logging`.",
    at="server/utilities/logging#capabilities",
    cause="Something in the server logs to the client, and the capabilities do not say so.",
)


@DECLARED.reading("all log messages")
def _(records: Sequence[Record]) -> int:
    found = list(_said(records))
    for each in found:
        if not declares(inside(each.record.hello, "capabilities"), "logging"):
            raise each.broken(
                "a log message came, and the server does not declare `logging`", symptom=f"undeclared:{MESSAGE}"
            )
    return len(found)


SET = Rule(
    "logging/set-level",
    "must",
    "A server that declares `logging` takes each of the eight levels.",
    at=("server/utilities/logging#setting-log-level", "server/utilities/logging#log-levels"),
    until="2026-07-28",
    cause="No handler answers `logging/setLevel`, or it knows the levels of another library (no notice, no alert).",
)


@SET.case("every level", needs="logging")
async def _(talk: Talk) -> None:
    for level in reversed(LEVELS):  # debug at last: nothing is kept from those who read
        await talk.result("logging/setLevel", {"level": level})


UNKNOWN = Rule(
    "logging/unknown-level",
    "should",
    "A level that does not exist gives the error -32602.",
    at="server/utilities/logging#error-handling",
    cause="The level is used as it comes.",
)


@UNKNOWN.case("a level that nobody has", needs="logging", until="2026-07-28")
async def _(talk: Talk) -> None:
    for params in ({"level": talk.nobody}, {"level": 5}, {}):
        answer = await talk.request("logging/setLevel", params)
        if answer.code != INVALID_PARAMS:
            raise talk.broken(f"{shown(params)} is answered with {shown(answer.error or answer.result)}")


@UNKNOWN.case("a level that nobody has, in _meta", needs="logging", since="2026-07-28")
async def _(talk: Talk) -> None:
    answer = await talk.request("server/discover", meta={LOG_LEVEL: talk.nobody})
    if answer.code != INVALID_PARAMS:
        raise talk.broken(f"it is answered with {shown(answer.error or answer.result)}")


KEPT = Rule(
    "logging/level-kept",
    "should",
    "Messages below the level that was set are not sent.",
    at="server/utilities/logging#setting-log-level",
    until="2026-07-28",
    cause="The level is taken, and nothing looks at it before a message is sent.",
)


@KEPT.case("tools that may log, after the level was set to emergency", kind="own", needs="logging", calls=True)
async def _(talk: Talk) -> None:
    await talk.result("logging/setLevel", {"level": LEVELS[-1]})
    since = len(talk.record.entries)
    await _provoke(talk)
    await talk.tide()
    for message in talk.others(since, None):
        if message.get("method") == MESSAGE and _severity(message) < len(LEVELS) - 1:
            raise talk.broken(f"a message came: {shown(message)}")


@KEPT.reading("all log messages after a level was set", needs="logging")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        for each, floor in _floors(record):
            judged += 1
            if _severity(each.message) < floor:
                raise each.broken(f"the level was set to {LEVELS[floor]!r} before")
    return judged


ASKED = Rule(
    "logging/only-asked",
    "must",
    "Log messages come for requests that ask for them, and for no others.",
    at="server/utilities/logging#per-request-log-level",
    since="2026-07-28",
    cause="The level of an earlier request is remembered, or messages are sent whatever was asked.",
)


@ASKED.case("tools that may log, and nobody asks", kind="own", needs="logging", calls=True)
async def _(talk: Talk) -> None:
    since = len(talk.record.entries)
    await _provoke(talk)
    await talk.tide()
    for message in talk.others(since, None):
        if message.get("method") == MESSAGE:
            raise talk.broken(f"no request had {LOG_LEVEL}, and a message came: {shown(message)}")


@ASKED.case("a stream that listens for changes", kind="own", needs="logging", over=HTTP, calls=True)
async def _(talk: Talk) -> None:
    listening = talk.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    await talk.hear(lambda message: message.get("method") == "notifications/subscriptions/acknowledged")
    await _provoke(talk, {LOG_LEVEL: LEVELS[0]})
    await talk.tide()
    for each in _said([talk.record]):
        if each.said.stream == listening.stream:
            raise each.broken("a log message came on a stream of subscriptions/listen")


@ASKED.reading("all log messages")
def _(records: Sequence[Record]) -> int:
    found = [each for record in records for each in _requested(record)]
    for each, floors in found:
        if not floors:
            raise each.broken(f"no request in flight, of which this may be, has {LOG_LEVEL}")
    return len(found)


SEVERE = Rule(
    "logging/severe-enough",
    "must",
    "Log messages for a request are at least as severe as the level that it names.",
    at="server/utilities/logging#per-request-log-level",
    since="2026-07-28",
    cause="That there is a level is looked at, and not which.",
)


@SEVERE.reading("all log messages")
def _(records: Sequence[Record]) -> int:
    found = [each for record in records for each in _requested(record)]
    for each, floors in found:
        if floors and _severity(each.message) < min(floors):
            raise each.broken(f"the request wants {LEVELS[min(floors)]!r} and more severe")
    return len(found)


@SEVERE.case("tools that may log, asked for emergencies", kind="own", needs="logging", calls=True)
async def _(talk: Talk) -> None:
    since = len(talk.record.entries)
    await _provoke(talk, {LOG_LEVEL: LEVELS[-1]})
    for message in talk.others(since, None):
        if message.get("method") == MESSAGE and _severity(message) < len(LEVELS) - 1:
            raise talk.broken(f"a message came: {shown(message)}")


SECRETS = Rule(
    "logging/secrets",
    "must",
    "Log messages hold no passwords, keys and tokens.",
    at="server/utilities/logging#security",
    cause="Whole requests, headers or settings are logged: leave out what is secret before it is sent.",
)

_NAMED = re.compile(r"(?:passw(?:or)?d|secret|api_?key|private_?key|(?:access|refresh)_?token|authorization)$", re.I)
_HIDDEN = re.compile(r"^\W*$|\*\*|redact|hidden|mask|filter|remov|omit|secret|xxx", re.I)
_TOKENS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}\b|\bxox[abpr]-[\w-]{20,}"
    r"|\bsk-[\w-]{24,}|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"
)


@SECRETS.reading("all log messages")
def _(records: Sequence[Record]) -> int:
    found = list(_said(records))
    for each in found:
        for name, value in _members("", inside(each.message, "params").get("data")):
            if _TOKENS.search(value) or (_NAMED.search(name) and not _HIDDEN.search(value)):
                raise each.broken(f"{name or 'the text'} looks like a secret")
    return len(found)


def _members(name: str, data: Any) -> Iterator[tuple[str, str]]:
    """Every text in a value, with the name that it has there."""
    if isinstance(data, str):
        yield name, data
    elif isinstance(data, dict):
        for inner, value in data.items():
            yield from _members(inner, value)
    elif isinstance(data, list):
        for value in data:
            yield from _members(name, value)


async def _provoke(talk: Talk, meta: JSONObject | None = None) -> None:
    """Call the tools that may log: those that say so, else the first ones."""
    tools = await talk.callable()
    likely = [tool for tool in tools if "log" in shown([tool.get("name"), tool.get("description")], 1 << 16).lower()]
    for tool in (likely or tools)[:_MOST]:
        await lists.called(talk, tool, meta=meta)


def _said(records: Sequence[Record]) -> Iterator[Heard]:
    return (each for each in heard(records) if each.message.get("method") == MESSAGE)


def _severity(message: JSONObject) -> int:
    """Return the rank of a level; the highest for an unknown one, which another rule reports."""
    level = inside(message, "params").get("level")
    return LEVELS.index(level) if level in LEVELS else len(LEVELS) - 1


def _floors(record: Record) -> Iterator[tuple[Heard, int]]:
    """Yield the log messages after a level was set, each with the least severe level that may apply."""
    asked: dict[Any, int] = {}
    floor: int | None = None
    for said, message in messages(record):
        if said.direction == SENT and message.get("method") == "logging/setLevel":
            level = inside(message, "params").get("level")
            asked[key(message.get("id"))] = LEVELS.index(level) if level in LEVELS else 0
        elif is_answer(message) and key(message.get("id")) in asked:
            wanted = asked.pop(key(message.get("id")))
            floor = wanted if "result" in message else floor
        elif message.get("method") == MESSAGE and floor is not None:
            yield Heard(record, said, message), min(floor, *asked.values(), floor)


def _requested(record: Record) -> Iterator[tuple[Heard, list[int]]]:
    """Log messages, each with the levels of the requests in flight that it may be for."""
    flying: dict[Any, tuple[Said, JSONObject]] = {}
    for said, message in messages(record):
        if said.direction == SENT and "method" in message and "id" in message:
            flying[key(message["id"])] = said, message
        elif is_answer(message):
            flying.pop(key(message.get("id")), None)
        elif message.get("method") == MESSAGE:
            wanted = [_level(request) for ours, request in flying.values() if said.stream in (0, ours.stream)]
            yield Heard(record, said, message), [level for level in wanted if level is not None]


def _level(request: JSONObject) -> int | None:
    level = inside(request, "params", "_meta").get(LOG_LEVEL)
    return LEVELS.index(level) if level in LEVELS else None
