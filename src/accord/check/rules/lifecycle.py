"""The handshake: what `initialize` agrees on, and what comes before it and after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.engine.rule import JudgedItems, NotApplicable, NotObserved, rule
from accord.check.probes.client_messages import INFO, LIST_METHODS, initialize_params
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import (
    AnsweredRequest,
    ObservedMessage,
    answered_requests,
    is_response,
    logged_messages,
    received_messages,
)
from accord.check.probes.pending_answer import Answer
from accord.check.probes.probe import Probe
from accord.messages.base import JSONObject
from accord.messages.revision import HANDSHAKE, PER_REQUEST
from accord.wire.transcript import SENT

INITIALIZATION = "basic/lifecycle#initialization"
NEGOTIATION = "basic/lifecycle#version-negotiation"
ENDS = PER_REQUEST[0]


@rule(
    "lifecycle/hello",
    "must",
    case="all answers to initialize",
    at=INITIALIZATION,
    until=ENDS,
    cause="A field of the result of initialize was forgotten.",
)
def lifecycle_hello(logs: Sequence[MessageLog]) -> JudgedItems:
    """The answer to initialize has the revision, the server's capabilities, and its name and version."""
    found = _initialize_results(logs)
    for each in found:
        yield
        info = each.result.get("serverInfo")
        named = isinstance(info, dict) and all(isinstance(info.get(name), str) for name in ("name", "version"))
        whole = isinstance(each.result.get("capabilities"), dict) and isinstance(
            each.result.get("protocolVersion"), str
        )
        if not (named and whole):
            raise each.violation(f"initialize is answered with {preview_json(each.result)}")


@rule(
    "lifecycle/same-version",
    "must",
    case="all answers to initialize",
    at=NEGOTIATION,
    until=ENDS,
    cause="The newest revision is answered whatever was asked for, or only the first client is listened to.",
)
def lifecycle_same_version(logs: Sequence[MessageLog]) -> JudgedItems:
    """A revision that the server speaks is agreed on whenever a client asks for it."""
    for each in _initialize_results(logs):
        if _requested_revision(each) == each.received.log.revision:
            yield
            if each.result.get("protocolVersion") != _requested_revision(each):
                version = preview_json(each.result.get("protocolVersion"))
                raise each.violation(f"the client requested {_requested_revision(each)}, the server answered {version}")


def _requested_revision(hello: AnsweredRequest) -> Any:
    return hello.request["params"].get("protocolVersion")


def _initialize_results(logs: Sequence[MessageLog]) -> list[AnsweredRequest]:
    """What came for each initialize that was in order."""
    return [
        each
        for each in answered_requests(logs)
        if each.request["method"] == "initialize" and "params" in each.request and isinstance(each.result, dict)
    ]


_UNKNOWN = "1900-01-01"


@rule(
    "lifecycle/other-version",
    "must",
    case="a revision that nobody knows",
    kind="raw",
    at=NEGOTIATION,
    until=ENDS,
    cause="The revision that was asked for is sent back without a look at it.",
)
async def lifecycle_other_version(probe: Probe) -> None:
    """Asked for a revision that it does not speak, the server names another, which it does speak."""
    version = await _negotiated_revision(probe, _UNKNOWN)
    if version == _UNKNOWN:
        raise probe.violation(f"asked for {_UNKNOWN} it agrees", since=0)
    if version not in (None, probe.revision):
        again = await _negotiated_revision(await probe.open_another_raw(), version)
        if again != version:
            raise probe.violation(f"asked for {_UNKNOWN} it names {version!r}; asked for that, {again!r}", since=0)


@lifecycle_other_version.case("a revision that has no handshake", kind="raw")
async def lifecycle_other_version_revision_handshake(probe: Probe) -> None:
    if await _negotiated_revision(probe, ENDS) == ENDS:
        raise probe.violation(f"asked for {ENDS} by initialize, which that revision does not have, it agrees", since=0)


@rule(
    "lifecycle/newest-version",
    "should",
    case="the answers to a revision that nobody knows",
    at=NEGOTIATION,
    until=ENDS,
    cause="A fixed revision is the answer, or the first of a list.",
)
def lifecycle_newest_version(logs: Sequence[MessageLog]) -> JudgedItems:
    """Asked for a revision that it does not speak, the server names the newest that it speaks."""
    for each in _initialize_results(logs):
        named, spoken = each.result.get("protocolVersion"), each.received.log.revision
        if _requested_revision(each) == _UNKNOWN and named in HANDSHAKE:
            yield
            if HANDSHAKE.index(named) < HANDSHAKE.index(spoken):
                raise each.violation(f"it names {named}, and speaks {spoken} as well")


async def _negotiated_revision(probe: Probe, asked: str) -> str | None:
    """The revision that is answered to `asked`, the first word of a conversation; None for an error."""
    answer = await probe.request("initialize", initialize_params(asked, {}), seconds=probe.settings.opening)
    return _result_revision(answer)


@rule(
    "lifecycle/no-early-requests",
    "should",
    case="all requests of the server",
    at=INITIALIZATION,
    until=ENDS,
    cause="Roots are asked for as soon as initialize is answered: wait for notifications/initialized.",
)
def lifecycle_no_early_requests(logs: Sequence[MessageLog]) -> JudgedItems:
    """Before it hears that the client is ready, the server sends no requests but pings."""
    for log in logs:
        yield
        for entry, message in logged_messages(log):
            if entry.direction == SENT and message.get("method") == "notifications/initialized":
                break
            if entry.direction != SENT and "id" in message and message.get("method", "ping") != "ping":
                raise ObservedMessage(log, entry, message).violation(f"it asked for {message['method']} too early")


@rule(
    "lifecycle/handshake-first",
    "may",
    case="all that was asked before initialize",
    at=INITIALIZATION,
    until=ENDS,
    cause="Requests are served as they come: refuse them with an error until initialize was answered.",
)
def lifecycle_handshake_first(logs: Sequence[MessageLog]) -> JudgedItems:
    """Nothing but pings is served before initialize."""
    for log in logs:
        opened = False
        for each in answered_requests([log]):
            opened = opened or (each.request["method"] == "initialize" and each.result is not None)
            if not opened and each.request["method"] not in ("initialize", "ping"):
                yield
                if each.result is not None:
                    raise each.violation(f"{each.request['method']} is served before initialize")


@rule(
    "lifecycle/opens-after-error",
    "must",
    case="a list, and wrong ones, before the right one",
    kind="raw",
    at=INITIALIZATION,
    until=ENDS,
    cause="The error of the first message ends the session, or leaves it half open.",
)
async def lifecycle_opens_after_error(probe: Probe) -> None:
    """What came too early, or a wrong initialize, does not keep the server from answering the right one."""
    await probe.request(_list_of(probe))
    for params in _invalid_initialize_params(probe.revision):
        answer = await probe.send({"jsonrpc": "2.0", "id": probe.next_id(), "method": "initialize", **params}).wait()
        if answer.error is None:
            raise NotObserved(f"a wrong initialize is good enough: {preview_json(params)}")
    answer = await _initialize(probe)
    if answer.error is not None:
        raise probe.violation(f"then initialize is answered with {preview_json(answer.error)}", since=0)


def _invalid_initialize_params(revision: str) -> list[JSONObject]:
    """What `initialize` must not be: without params, without one of them, with a number for one of them."""
    good = initialize_params(revision, {})
    without = [{name: value for name, value in good.items() if name != left} for left in good]
    return [{}, *({"params": params} for params in (*without, *({**good, name: 7} for name in good)))]


@rule(
    "lifecycle/bad-hello",
    "should",
    case="the answers to each initialize that was wrong",
    at=INITIALIZATION,
    until=ENDS,
    cause="The params of initialize are taken as they are.",
)
def lifecycle_bad_hello(logs: Sequence[MessageLog]) -> JudgedItems:
    """An initialize without revision, capabilities or client, or with wrong types in their place, is refused."""
    for log in logs:
        wrong = [message["id"] for message in log.sent_messages() if _is_invalid_initialize(message, log.revision)]
        for each in received_messages([log]):
            if is_response(each.message) and each.message.get("id") in wrong:
                yield
                if "error" not in each.message:
                    about = [entry for entry in log.entries if _is_invalid_initialize(entry.message, log.revision)]
                    raise each.violation("a wrong initialize is answered with a result", about=about[-1:])


def _is_invalid_initialize(message: Any, revision: str) -> bool:
    is_hello = isinstance(message, dict) and message.get("method") == "initialize"
    return is_hello and any(
        message.get("params") == wrong.get("params") for wrong in _invalid_initialize_params(revision)
    )


@rule(
    "lifecycle/initialize-twice",
    "must",
    case="initialize in an open session",
    kind="own",
    at=INITIALIZATION,
    until=ENDS,
    cause="The state machine has no way out of a message in the wrong state.",
)
async def lifecycle_initialize_twice(probe: Probe) -> None:
    """A second initialize is answered, if only with an error, and the session goes on."""
    await _initialize(probe)
    await probe.fence()


@rule(
    "lifecycle/open-capabilities",
    "must",
    case="an unknown capability, an experimental one, and unknown fields",
    kind="raw",
    at=("schema#clientcapabilities", INITIALIZATION),
    until=ENDS,
    cause="The params of initialize are read with closed types: any client may have more.",
)
async def lifecycle_open_capabilities(probe: Probe) -> None:
    """Capabilities and fields of a client that the server does not know change nothing."""
    capabilities = {
        **probe.client_capabilities,
        "accordCheckNobody": {"any": [1]},
        "experimental": {"com.example/x": {"a": 1}},
    }
    params = {
        **initialize_params(probe.revision, capabilities),
        "accordCheck": 1,
        "clientInfo": {**INFO, "accordCheck": 1},
    }
    answer = await probe.request("initialize", params, seconds=probe.settings.opening)
    if answer.error is not None or _result_revision(answer) != probe.revision:
        raise probe.violation(f"it is answered with {preview_json(answer.error or answer.result)}", since=0)


async def _initialize(probe: Probe) -> Answer:
    hello = initialize_params(probe.revision, probe.client_capabilities)
    return await probe.request("initialize", hello, seconds=probe.settings.opening)


def _result_revision(answer: Answer) -> str | None:
    """The revision in an answer to initialize; None for an error."""
    return answer.result.get("protocolVersion") if isinstance(answer.result, dict) else None


def _list_of(probe: Probe) -> str:
    """A method that lists what this server has."""
    for capability, method in LIST_METHODS.items():
        if probe.has_capability(capability):
            return method
    raise NotApplicable("the server declares nothing that could be listed")
