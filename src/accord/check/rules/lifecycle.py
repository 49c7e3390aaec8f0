"""The handshake: `initialize`, and the messages before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from accord.check.engine.rule import JudgedItems, NotApplicable, NotObserved, rule
from accord.check.probes.client_messages import INFO, LIST_METHODS, initialize_params
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import MessageLog, is_response
from accord.check.probes.message_reader import AnsweredRequest, ObservedMessage, answered_requests, received_messages
from accord.check.probes.pending_answer import Answer
from accord.check.probes.probe import Probe
from accord.messages.base import JSONObject
from accord.messages.revision import HANDSHAKE, PER_REQUEST
from accord.wire.transcript import SENT

INITIALIZATION = "basic/lifecycle#initialization"
NEGOTIATION = "basic/lifecycle#version-negotiation"
ENDS = PER_REQUEST[0]


_rule = partial(rule, until=ENDS)


@_rule(
    "lifecycle/hello",
    "must",
    case="all results of initialize",
    at=INITIALIZATION,
    cause="A required field of the result is missing.",
)
def lifecycle_hello(logs: Sequence[MessageLog]) -> JudgedItems:
    """The result of initialize has the revision, the server capabilities, and the name and version of the server."""
    found = _initialize_results(logs)
    for each in found:
        yield
        info = each.result.get("serverInfo")
        named = isinstance(info, dict) and all(isinstance(info.get(name), str) for name in ("name", "version"))
        whole = isinstance(each.result.get("capabilities"), dict) and isinstance(
            each.result.get("protocolVersion"), str
        )
        if not (named and whole):
            raise each.violation(f"initialize returned {preview_json(each.result)}")


@_rule(
    "lifecycle/same-version",
    "must",
    case="all results of initialize",
    at=NEGOTIATION,
    cause="The newest revision is returned whatever the client requests, or only the first client is handled.",
)
def lifecycle_same_version(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server returns the requested revision if it supports that revision."""
    for each in _initialize_results(logs):
        if _requested_revision(each) == each.received.log.revision:
            yield
            if each.result.get("protocolVersion") != _requested_revision(each):
                version = preview_json(each.result.get("protocolVersion"))
                raise each.violation(f"the client requested {_requested_revision(each)}, the server answered {version}")


def _requested_revision(hello: AnsweredRequest) -> Any:
    return hello.request["params"].get("protocolVersion")


def _initialize_results(logs: Sequence[MessageLog]) -> list[AnsweredRequest]:
    """Yield the responses to valid initialize requests."""
    return [
        each
        for each in answered_requests(logs)
        if each.request["method"] == "initialize" and "params" in each.request and isinstance(each.result, dict)
    ]


_UNKNOWN = "1900-01-01"


@_rule(
    "lifecycle/other-version",
    "must",
    case="an unknown revision",
    kind="raw",
    at=NEGOTIATION,
    cause="The requested revision is returned without a check.",
)
async def lifecycle_other_version(probe: Probe) -> None:
    """For an unsupported revision, the server returns another one, which it supports."""
    version = await _negotiated_revision(probe, _UNKNOWN)
    if version == _UNKNOWN:
        raise probe.violation(f"for {_UNKNOWN}, the server returned the same revision", since=0)
    if version not in (None, probe.revision):
        again = await _negotiated_revision(await probe.open_another_raw(), version)
        if again != version:
            raise probe.violation(
                f"for {_UNKNOWN}, the server returned {version!r}; for that revision, {again!r}", since=0
            )


@lifecycle_other_version.case("a revision without a handshake", kind="raw")
async def lifecycle_other_version_without_handshake(probe: Probe) -> None:
    if await _negotiated_revision(probe, ENDS) == ENDS:
        raise probe.violation(
            f"initialize with {ENDS}, a revision without initialize, returned the same revision", since=0
        )


@_rule(
    "lifecycle/newest-version",
    "should",
    case="the responses to an unknown revision",
    at=NEGOTIATION,
    cause="The server returns a fixed revision, or the first of a list.",
)
def lifecycle_newest_version(logs: Sequence[MessageLog]) -> JudgedItems:
    """For an unsupported revision, the server returns the newest revision that it supports."""
    for each in _initialize_results(logs):
        named, spoken = each.result.get("protocolVersion"), each.received.log.revision
        if _requested_revision(each) == _UNKNOWN and named in HANDSHAKE:
            yield
            if HANDSHAKE.index(named) < HANDSHAKE.index(spoken):
                raise each.violation(f"the server returned {named}, but also supports {spoken}")


async def _negotiated_revision(probe: Probe, asked: str) -> str | None:
    """Return the revision that initialize with `asked` returns in a new session; None for an error."""
    answer = await probe.request("initialize", initialize_params(asked, {}), seconds=probe.settings.opening)
    return _result_revision(answer)


@_rule(
    "lifecycle/no-early-requests",
    "should",
    case="all requests from the server",
    at=INITIALIZATION,
    cause="The roots are requested immediately after initialize: wait for notifications/initialized.",
)
def lifecycle_no_early_requests(logs: Sequence[MessageLog]) -> JudgedItems:
    """Before notifications/initialized, the server sends no requests except pings."""
    for log in logs:
        yield
        for entry, message in log.messages:
            if entry.direction == SENT and message.get("method") == "notifications/initialized":
                break
            if entry.direction != SENT and "id" in message and message.get("method", "ping") != "ping":
                raise ObservedMessage(log, entry, message).violation(f"the server sent {message['method']} too early")


@_rule(
    "lifecycle/handshake-first",
    "may",
    case="all requests before initialize",
    at=INITIALIZATION,
    cause="Requests are answered before the handshake: return an error until initialize has succeeded.",
)
def lifecycle_handshake_first(logs: Sequence[MessageLog]) -> JudgedItems:
    """Before initialize, the server answers no requests except pings."""
    for log in logs:
        opened = False
        for each in answered_requests([log]):
            opened = opened or (each.request["method"] == "initialize" and each.result is not None)
            if not opened and each.request["method"] not in ("initialize", "ping"):
                yield
                if each.result is not None:
                    raise each.violation(f"the server answered {each.request['method']} before initialize")


@_rule(
    "lifecycle/opens-after-error",
    "must",
    case="a list method and invalid initialize requests before a valid one",
    kind="raw",
    at=INITIALIZATION,
    cause="The error of the first message ends the session, or leaves it in the wrong state.",
)
async def lifecycle_opens_after_error(probe: Probe) -> None:
    """After an early request or an invalid initialize, the server answers a valid initialize."""
    await probe.request(_list_of(probe))
    for params in _invalid_initialize_params(probe.revision):
        answer = await probe.send({"jsonrpc": "2.0", "id": probe.next_id(), "method": "initialize", **params}).wait()
        if answer.error is None:
            raise NotObserved(f"an invalid initialize succeeds: {preview_json(params)}")
    answer = await _initialize(probe)
    if answer.error is not None:
        raise probe.violation(f"then, initialize returned {preview_json(answer.error)}", since=0)


def _invalid_initialize_params(revision: str) -> list[JSONObject]:
    """Yield invalid params of `initialize`: absent, one missing, or a number instead of one."""
    good = initialize_params(revision, {})
    without = [{name: value for name, value in good.items() if name != left} for left in good]
    return [{}, *({"params": params} for params in (*without, *({**good, name: 7} for name in good)))]


@_rule(
    "lifecycle/bad-hello",
    "should",
    case="the responses to all invalid initialize requests",
    at=INITIALIZATION,
    cause="The params of initialize are not validated.",
)
def lifecycle_bad_hello(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server refuses an initialize without a revision, capabilities or client, or with values of wrong types."""
    for log in logs:
        wrong = [message["id"] for message in log.sent_messages() if _is_invalid_initialize(message, log.revision)]
        for each in received_messages([log]):
            if is_response(each.message) and each.message.get("id") in wrong:
                yield
                if "error" not in each.message:
                    about = [entry for entry in log.entries if _is_invalid_initialize(entry.message, log.revision)]
                    raise each.violation("an invalid initialize succeeded", about=about[-1:])


def _is_invalid_initialize(message: Any, revision: str) -> bool:
    is_hello = isinstance(message, dict) and message.get("method") == "initialize"
    return is_hello and any(
        message.get("params") == wrong.get("params") for wrong in _invalid_initialize_params(revision)
    )


@_rule(
    "lifecycle/initialize-twice",
    "must",
    case="initialize in an initialized session",
    kind="own",
    at=INITIALIZATION,
    cause="The state machine has no transition for a message in the wrong state.",
)
async def lifecycle_initialize_twice(probe: Probe) -> None:
    """The server answers a second initialize, at least with an error, and the session continues."""
    await _initialize(probe)
    await probe.fence()


@_rule(
    "lifecycle/open-capabilities",
    "must",
    case="an unknown capability, an experimental one, and unknown fields",
    kind="raw",
    at=("schema#clientcapabilities", INITIALIZATION),
    cause="The params of initialize are decoded with closed types: clients may send more fields.",
)
async def lifecycle_open_capabilities(probe: Probe) -> None:
    """The server ignores unknown capabilities and fields of the client."""
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
        raise probe.violation(f"the server answered with {preview_json(answer.error or answer.result)}", since=0)


async def _initialize(probe: Probe) -> Answer:
    hello = initialize_params(probe.revision, probe.client_capabilities)
    return await probe.request("initialize", hello, seconds=probe.settings.opening)


def _result_revision(answer: Answer) -> str | None:
    """Return the revision in a response to initialize; None for an error."""
    return answer.result.get("protocolVersion") if isinstance(answer.result, dict) else None


def _list_of(probe: Probe) -> str:
    """Return a method that lists a feature of this server."""
    for capability, method in LIST_METHODS.items():
        if probe.has_capability(capability):
            return method
    raise NotApplicable("the server declares no capability with a list")
