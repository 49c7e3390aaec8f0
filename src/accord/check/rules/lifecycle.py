"""The handshake: what `initialize` agrees on, and what comes before it and after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.reading import Answered, Heard, answers, heard, is_answer, messages
from accord.check.record import Record
from accord.check.rule import NotApplicable, NotObserved, Rule
from accord.check.speech import INFO, LISTS, hello_params
from accord.check.talk import Talk
from accord.check.values import shown
from accord.check.waiting import Answer
from accord.messages.base import JSONObject
from accord.messages.revision import HANDSHAKE, PER_REQUEST
from accord.wire.transcript import SENT

INITIALIZATION = "basic/lifecycle#initialization"
NEGOTIATION = "basic/lifecycle#version-negotiation"
ENDS = PER_REQUEST[0]

HELLO = Rule(
    "lifecycle/hello",
    "must",
    "The answer to initialize has the revision, the server's capabilities, and its name and version.",
    at=INITIALIZATION,
    until=ENDS,
    cause="A field of the result of initialize was forgotten.",
)


@HELLO.reading("all answers to initialize")
def _(records: Sequence[Record]) -> int:
    found = _hellos(records)
    for each in found:
        info = each.result.get("serverInfo")
        named = isinstance(info, dict) and all(isinstance(info.get(name), str) for name in ("name", "version"))
        whole = isinstance(each.result.get("capabilities"), dict) and isinstance(
            each.result.get("protocolVersion"), str
        )
        if not (named and whole):
            raise each.broken(f"initialize is answered with {shown(each.result)}")
    return len(found)


SAME = Rule(
    "lifecycle/same-version",
    "must",
    "A revision that the server speaks is agreed on whenever a client asks for it.",
    at=NEGOTIATION,
    until=ENDS,
    cause="The newest revision is answered whatever was asked for, or only the first client is listened to.",
)


@SAME.reading("all answers to initialize")
def _(records: Sequence[Record]) -> int:
    found = [each for each in _hellos(records) if _asked(each) == each.heard.record.revision]
    for each in found:
        if each.result.get("protocolVersion") != _asked(each):
            raise each.broken(f"asked for {_asked(each)} it answers {shown(each.result.get('protocolVersion'))}")
    return len(found)


def _asked(hello: Answered) -> Any:
    return hello.request["params"].get("protocolVersion")


def _hellos(records: Sequence[Record]) -> list[Answered]:
    """What came for each initialize that was in order."""
    return [
        each
        for each in answers(records)
        if each.request["method"] == "initialize" and "params" in each.request and isinstance(each.result, dict)
    ]


OTHER = Rule(
    "lifecycle/other-version",
    "must",
    "Asked for a revision that it does not speak, the server names another, which it does speak.",
    at=NEGOTIATION,
    until=ENDS,
    cause="The revision that was asked for is sent back without a look at it.",
)
NEWEST = Rule(
    "lifecycle/newest-version",
    "should",
    "Asked for a revision that it does not speak, the server names the newest that it speaks.",
    at=NEGOTIATION,
    until=ENDS,
    cause="A fixed revision is the answer, or the first of a list.",
)
_UNKNOWN = "1900-01-01"


@OTHER.case("a revision that nobody knows", kind="raw")
async def _(talk: Talk) -> None:
    version = await _named(talk, _UNKNOWN)
    if version == _UNKNOWN:
        raise talk.broken(f"asked for {_UNKNOWN} it agrees", since=0)
    if version not in (None, talk.revision):
        again = await _named(await talk.another(), version)
        if again != version:
            raise talk.broken(f"asked for {_UNKNOWN} it names {version!r}; asked for that, {again!r}", since=0)


@OTHER.case("a revision that has no handshake", kind="raw")
async def _(talk: Talk) -> None:
    if await _named(talk, ENDS) == ENDS:
        raise talk.broken(f"asked for {ENDS} by initialize, which that revision does not have, it agrees", since=0)


@NEWEST.reading("the answers to a revision that nobody knows")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for each in _hellos(records):
        named, spoken = each.result.get("protocolVersion"), each.heard.record.revision
        if _asked(each) == _UNKNOWN and named in HANDSHAKE:
            judged += 1
            if HANDSHAKE.index(named) < HANDSHAKE.index(spoken):
                raise each.broken(f"it names {named}, and speaks {spoken} as well")
    return judged


async def _named(talk: Talk, asked: str) -> str | None:
    """The revision that is answered to `asked`, the first word of a conversation; None for an error."""
    answer = await talk.request("initialize", hello_params(asked, {}), seconds=talk.settings.opening)
    return _version(answer)


PATIENT = Rule(
    "lifecycle/no-early-requests",
    "should",
    "Before it hears that the client is ready, the server sends no requests but pings.",
    at=INITIALIZATION,
    until=ENDS,
    cause="Roots are asked for as soon as initialize is answered: wait for notifications/initialized.",
)


@PATIENT.reading("all requests of the server")
def _(records: Sequence[Record]) -> int:
    for record in records:
        for said, message in messages(record):
            if said.direction == SENT and message.get("method") == "notifications/initialized":
                break
            if said.direction != SENT and "id" in message and message.get("method", "ping") != "ping":
                raise Heard(record, said, message).broken(f"it asked for {message['method']} too early")
    return len(records)


FIRST = Rule(
    "lifecycle/handshake-first",
    "may",
    "Nothing but pings is served before initialize.",
    at=INITIALIZATION,
    until=ENDS,
    cause="Requests are served as they come: refuse them with an error until initialize was answered.",
)
STILL = Rule(
    "lifecycle/opens-after-error",
    "must",
    "What came too early, or a wrong initialize, does not keep the server from answering the right one.",
    at=INITIALIZATION,
    until=ENDS,
    cause="The error of the first message ends the session, or leaves it half open.",
)


@FIRST.reading("all that was asked before initialize")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        opened = False
        for each in answers([record]):
            opened = opened or (each.request["method"] == "initialize" and each.result is not None)
            if not opened and each.request["method"] not in ("initialize", "ping"):
                judged += 1
                if each.result is not None:
                    raise each.broken(f"{each.request['method']} is served before initialize")
    return judged


@STILL.case("a list, and wrong ones, before the right one", kind="raw")
async def _(talk: Talk) -> None:
    await talk.request(_list_of(talk))
    for params in _wrong_hellos(talk.revision):
        answer = await talk.send({"jsonrpc": "2.0", "id": talk.next_id(), "method": "initialize", **params}).answer()
        if answer.error is None:
            raise NotObserved(f"a wrong initialize is good enough: {shown(params)}")
    answer = await _greeted(talk)
    if answer.error is not None:
        raise talk.broken(f"then initialize is answered with {shown(answer.error)}", since=0)


def _wrong_hellos(revision: str) -> list[JSONObject]:
    """What `initialize` must not be: without params, without one of them, with a number for one of them."""
    good = hello_params(revision, {})
    without = [{name: value for name, value in good.items() if name != left} for left in good]
    return [{}, *({"params": params} for params in (*without, *({**good, name: 7} for name in good)))]


BAD = Rule(
    "lifecycle/bad-hello",
    "should",
    "An initialize without revision, capabilities or client, or with wrong types in their place, is refused.",
    at=INITIALIZATION,
    until=ENDS,
    cause="The params of initialize are taken as they are.",
)


@BAD.reading("the answers to each initialize that was wrong")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        wrong = [message["id"] for message in record.sent() if _is_wrong(message, record.revision)]
        for each in heard([record]):
            if is_answer(each.message) and each.message.get("id") in wrong:
                judged += 1
                if "error" not in each.message:
                    about = [said for said in record.entries if _is_wrong(said.message, record.revision)]
                    raise each.broken("a wrong initialize is answered with a result", about=about[-1:])
    return judged


def _is_wrong(message: Any, revision: str) -> bool:
    is_hello = isinstance(message, dict) and message.get("method") == "initialize"
    return is_hello and any(message.get("params") == wrong.get("params") for wrong in _wrong_hellos(revision))


TWICE = Rule(
    "lifecycle/initialize-twice",
    "must",
    "A second initialize is answered, if only with an error, and the session goes on.",
    at=INITIALIZATION,
    until=ENDS,
    cause="The state machine has no way out of a message in the wrong state.",
)


@TWICE.case("initialize in an open session", kind="own")
async def _(talk: Talk) -> None:
    await _greeted(talk)
    await talk.tide()


OPEN = Rule(
    "lifecycle/open-capabilities",
    "must",
    "Capabilities and fields of a client that the server does not know change nothing.",
    at=("schema#clientcapabilities", INITIALIZATION),
    until=ENDS,
    cause="The params of initialize are read with closed types: any client may have more.",
)


@OPEN.case("an unknown capability, an experimental one, and unknown fields", kind="raw")
async def _(talk: Talk) -> None:
    capabilities = {**talk.declared, "accordCheckNobody": {"any": [1]}, "experimental": {"com.example/x": {"a": 1}}}
    params = {**hello_params(talk.revision, capabilities), "accordCheck": 1, "clientInfo": {**INFO, "accordCheck": 1}}
    answer = await talk.request("initialize", params, seconds=talk.settings.opening)
    if answer.error is not None or _version(answer) != talk.revision:
        raise talk.broken(f"it is answered with {shown(answer.error or answer.result)}", since=0)


async def _greeted(talk: Talk) -> Answer:
    hello = hello_params(talk.revision, talk.declared)
    return await talk.request("initialize", hello, seconds=talk.settings.opening)


def _version(answer: Answer) -> str | None:
    """The revision in an answer to initialize; None for an error."""
    return answer.result.get("protocolVersion") if isinstance(answer.result, dict) else None


def _list_of(talk: Talk) -> str:
    """A method that lists what this server has."""
    for capability, method in LISTS.items():
        if talk.has(capability):
            return method
    raise NotApplicable("the server declares nothing that could be listed")
