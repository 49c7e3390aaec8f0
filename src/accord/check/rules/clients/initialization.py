"""The handshake of a client, and its reaction to unexpected results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from accord.check.clients.conversation import ClientConversation
from accord.check.clients.features import ScriptedFeatures, handshake_result
from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientMessage, ClientRun
from accord.check.clients.scenario import Scenario, ScriptedAnswer, ScriptedError
from accord.check.engine.rule import JudgedItems, Violation, client_rule
from accord.messages.meta import PROTOCOL_VERSION
from accord.messages.methods import table
from accord.messages.revision import HANDSHAKE, is_in_revision

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_SLOW = 0.4
"""Seconds that a slow server takes for `initialize`."""
_UNKNOWN_REVISION = "1999-01-01"
"""A revision that no client supports."""


def _handshakes(runs: Sequence[ClientRun]) -> Iterator[tuple[ClientRun, ClientConversation, list[ClientMessage]]]:
    """Yield the sessions with a handshake, each with the messages of the client."""
    for run in runs:
        for conversation in run.conversations:
            entry = [each for each in run.messages() if each.conversation is conversation]
            if any(each.method == "initialize" for each in entry):
                yield run, conversation, entry


@client_rule(
    "client-opening/first",
    "must",
    case="the first request of each connection",
    at="basic/lifecycle#initialization",
    until="2026-07-28",
    cause="Requests are sent as soon as the transport is open.",
)
def client_opening_first(runs: Sequence[ClientRun]) -> JudgedItems:
    """The first request of a connection is initialize; only pings, and requests in a newer revision, may precede it."""
    for run in runs:
        first = {each.conversation.number: each for each in reversed(run.requests()) if not _may_come_before(each)}
        for request in first.values():
            if request.method != "initialize":
                raise Violation(f"the first request was {request.method}", evidence=run.evidence(request.entry))
    yield from _handshakes(runs)


def _may_come_before(request: ClientMessage) -> bool:
    return request.method == "ping" or PROTOCOL_VERSION in request.meta


@client_rule(
    "client-opening/initialize",
    "must",
    case="all initialize requests",
    at="basic/lifecycle#initialization",
    until="2026-07-28",
    cause="protocolVersion, capabilities or clientInfo (with name and version) is missing.",
)
def client_opening_initialize(runs: Sequence[ClientRun]) -> JudgedItems:
    """initialize has the revision, the capabilities, and the name and version of the client."""
    for run in runs:
        for each in run.requests("initialize"):
            yield
            info = each.params.get("clientInfo")
            named = (
                isinstance(info, dict) and isinstance(info.get("name"), str) and isinstance(info.get("version"), str)
            )
            for what, fits in (
                ("protocolVersion", isinstance(each.params.get("protocolVersion"), str)),
                ("capabilities", isinstance(each.params.get("capabilities"), dict)),
                ("clientInfo with name and version", named),
            ):
                if not fits:
                    raise Violation(f"initialize has no {what}", evidence=[each.entry.line()])


@client_rule(
    "client-opening/version",
    "must",
    case="all initialize requests",
    at="basic/lifecycle#version-negotiation",
    until="2026-07-28",
    cause="The revision is the version of the client software, or 2026-07-28, which has no handshake.",
)
def client_opening_version(runs: Sequence[ClientRun]) -> JudgedItems:
    """initialize requests a revision with a handshake."""
    for run in runs:
        for each in run.requests("initialize"):
            yield
            wanted = each.params.get("protocolVersion")
            if not isinstance(wanted, str) or not _DATE.fullmatch(wanted) or wanted not in HANDSHAKE:
                raise Violation(f"initialize requests {wanted!r}", evidence=[each.entry.line()])


@client_rule(
    "client-opening/latest",
    "should",
    case="all initialize requests",
    at="basic/lifecycle#version-negotiation",
    until="2026-07-28",
    cause="An older revision is a constant in the client.",
)
def client_opening_latest(runs: Sequence[ClientRun]) -> JudgedItems:
    """initialize requests the latest revision that the client supports."""
    for run in runs:
        for each in run.requests("initialize"):
            if run.ordinary_run is run:
                yield
                wanted = each.params.get("protocolVersion")
                if wanted in HANDSHAKE and not is_in_revision(str(wanted), run.revision, None):
                    text = f"initialize requests {wanted}, but the client supports {run.revision}"
                    raise Violation(text, evidence=[each.entry.line()])


@client_rule(
    "client-opening/initialized",
    "must",
    case="all handshakes",
    at="basic/lifecycle#initialization",
    until="2026-07-28",
    cause="The notification is missing, or is sent as a request.",
)
def client_opening_initialized(runs: Sequence[ClientRun]) -> JudgedItems:
    """After the result of initialize, the client sends notifications/initialized."""
    for run, _, entry in _handshakes(runs):
        later = entry[[each.method for each in entry].index("initialize") + 1 :]
        requests = [each for each in later if each.method not in ("ping", "initialize") and "id" in each.body]
        ready = [each for each in later if each.method == "notifications/initialized" and "id" not in each.body]
        if requests and not ready:
            raise Violation(
                "the client did not send notifications/initialized",
                evidence=run.evidence(*(one.entry for one in entry[:6])),
            )
        if ready:
            yield


# --- a slow handshake --------------------------------------------------------------------------------------------

SLOW_INITIALIZE_SCENARIO = Scenario("slow-initialize", "a slow initialize", until="2026-07-28")


@SLOW_INITIALIZE_SCENARIO.on("initialize")
async def answer_slow_initialize(request: IncomingRequest) -> ScriptedAnswer:
    await request.sleep(_SLOW)
    return await request.default_result()


@SLOW_INITIALIZE_SCENARIO.rule(
    "client-opening/no-early-requests",
    "should",
    case="a slow initialize",
    at="basic/lifecycle#initialization",
    until="2026-07-28",
    cause="Requests are not delayed until the end of the handshake.",
)
def client_opening_no_early_requests(run: ClientRun) -> None:
    """Before the result of initialize, a client sends no requests except pings."""
    run.require_intervention()
    for request in run.requests("initialize")[:1]:
        early = [each for each in run.requests() if request.entry.at < each.entry.at < request.entry.at + _SLOW * 0.9]
        for each in early:
            if each.method not in ("ping", "initialize"):
                text = f"the client sent {each.method} before the result of initialize"
                raise Violation(text, evidence=[request.entry.line(), each.entry.line()])


# --- a revision that nobody has ----------------------------------------------------------------------------------

UNSUPPORTED_VERSION_SCENARIO = Scenario("unsupported-version", "a server with an unknown revision", until="2026-07-28")


@UNSUPPORTED_VERSION_SCENARIO.on("initialize")
async def answer_unsupported_version(request: IncomingRequest) -> ScriptedAnswer:
    return handshake_result(request.conversation.server.revision, ScriptedFeatures()) | {
        "protocolVersion": _UNKNOWN_REVISION
    }


@UNSUPPORTED_VERSION_SCENARIO.rule(
    "client-opening/unsupported-version",
    "must",
    case="a server with an unknown revision",
    at=("basic/lifecycle#version-negotiation", "schema#initializeresult"),
    until="2026-07-28",
    cause="The protocolVersion of the result is not checked.",
)
def client_opening_unsupported_version(run: ClientRun) -> None:
    """A client disconnects if it does not support the revision in the result of initialize."""
    _require_disconnect(run, f"the client continued with a server of revision {_UNKNOWN_REVISION}")


INITIALIZE_REFUSED_SCENARIO = Scenario("initialize-refused", "initialize returns an error", until="2026-07-28")


@INITIALIZE_REFUSED_SCENARIO.on("initialize")
async def answer_initialize_refused(request: IncomingRequest) -> ScriptedAnswer:
    raise ScriptedError(-32603, "Internal error: the server has no configuration")


@INITIALIZE_REFUSED_SCENARIO.rule(
    "client-opening/refused",
    "should",
    case="initialize with an error",
    at="basic/lifecycle#error-handling",
    until="2026-07-28",
    cause="The response to initialize is not checked for an error.",
)
def client_opening_refused(run: ClientRun) -> None:
    """After an error for initialize, a client neither continues nor waits forever."""
    _require_disconnect(run, "the client continued after an error for initialize")
    if run.ending != "itself" and run.ordinary_run.ending == "itself":
        raise Violation("the client does not exit: it waits forever")


def _require_disconnect(run: ClientRun, text: str) -> None:
    run.require_no_crash()
    for each in run.messages_after():
        known = each.method in table(run.revision, "client") and each.method not in ("initialize", _CANCELLED)
        if known and PROTOCOL_VERSION not in each.meta:
            raise Violation(text, evidence=run.evidence(each.entry))


_CANCELLED = "notifications/cancelled"
