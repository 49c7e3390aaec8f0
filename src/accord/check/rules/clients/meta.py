"""`_meta` of requests (2026-07-28), and the types of results."""

from __future__ import annotations

import re
from collections.abc import Sequence

from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer
from accord.check.engine.rule import JudgedItems, Violation, client_rule
from accord.messages.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION

_SINCE = "2026-07-28"
_NAME = re.compile(
    r"([A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?)*/)?([A-Za-z0-9]([\w.-]*[A-Za-z0-9])?)?"
)
_RETRIES = 5


# basic#resulttype: "clients MUST treat an absent resultType as complete", but "for backward compatibility with servers
# implementing earlier protocol versions": that a server of this revision may be refused is another way to read it.


@client_rule(
    "client-meta/required",
    "must",
    case="all requests",
    at="basic#meta",
    since=_SINCE,
    cause="Only the first request has them, as in a handshake.",
)
def client_meta_required(runs: Sequence[ClientRun]) -> JudgedItems:
    """Each request has the revision and the capabilities of the client in `_meta`."""
    for run in runs:
        for each in run.requests():
            if each.method != "initialize":
                yield
                if not isinstance(each.meta.get(PROTOCOL_VERSION), str):
                    raise Violation(f"{each.method} has no {PROTOCOL_VERSION} in _meta", evidence=[each.entry.line()])
                if not isinstance(each.meta.get(CLIENT_CAPABILITIES), dict):
                    raise Violation(
                        f"{each.method} has no {CLIENT_CAPABILITIES} in _meta", evidence=[each.entry.line()]
                    )


@client_rule(
    "client-meta/client-info",
    "should",
    case="all requests",
    at="basic#meta",
    since=_SINCE,
    cause="clientInfo is missing.",
)
def client_meta_client_info(runs: Sequence[ClientRun]) -> JudgedItems:
    """Each request has the name and version of the client in `_meta`."""
    for run in runs:
        for each in run.requests():
            if each.method != "initialize":
                yield
                if not isinstance(each.meta.get(CLIENT_INFO), dict):
                    raise Violation(f"{each.method} has no {CLIENT_INFO} in _meta", evidence=[each.entry.line()])


@client_rule(
    "client-meta/no-responses",
    "must",
    case="all messages",
    at=("basic/transports/stdio#sending-messages", "basic/transports/streamable-http#sending-messages"),
    since=_SINCE,
    cause="Requests of a server are answered as in earlier revisions.",
)
def client_meta_no_responses(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client sends no responses: it repeats a request with its input responses."""
    for run in runs:
        for answer in run.responses():
            raise Violation("the client sent a response", evidence=run.evidence(answer.entry))
        yield from run.requests()


@client_rule(
    "client-meta/names",
    "must",
    case="all _meta",
    at="basic#meta",
    since="2025-06-18",
    cause="A key has spaces, or begins or ends with a punctuation mark.",
)
def client_meta_names(runs: Sequence[ClientRun]) -> JudgedItems:
    """A key in `_meta` is a name with an optional prefix and a slash."""
    for run in runs:
        for each in run.messages():
            if each.meta:
                yield
                for name in each.meta:
                    if not _NAME.fullmatch(name):
                        raise Violation(f"the key {name!r} is invalid", evidence=[each.entry.line()])


# --- results and their types -------------------------------------------------------------------------------------

NO_RESULT_TYPE_SCENARIO = Scenario("no-result-type", "results without a type", since=_SINCE)


@NO_RESULT_TYPE_SCENARIO.on(FIRST_REQUEST, "tools/list", "tools/call", "resources/list", "prompts/list")
async def answer_no_result_type(request: IncomingRequest) -> ScriptedAnswer:
    result = await request.default_result()
    return {name: value for name, value in result.items() if name != "resultType"}


@NO_RESULT_TYPE_SCENARIO.rule(
    "client-meta/result-type",
    "should",
    case="results without resultType",
    at="basic#resulttype",
    since=_SINCE,
    cause="resultType is required when results are decoded.",
)
def client_meta_result_type(run: ClientRun) -> None:
    """A result without resultType is complete."""
    run.require_ordinary_behavior()


UNKNOWN_RESULT_TYPE_SCENARIO = Scenario("unknown-result-type", "a result of an unknown type", since=_SINCE)


@UNKNOWN_RESULT_TYPE_SCENARIO.on(FIRST_REQUEST)
async def answer_unknown_result_type(request: IncomingRequest) -> ScriptedAnswer:
    return {**await request.default_result(), "resultType": "com.example/unheard-of"}


@UNKNOWN_RESULT_TYPE_SCENARIO.rule(
    "client-meta/unknown-result-type",
    "must",
    case="a result of an unknown type",
    at="basic#resulttype",
    since=_SINCE,
    cause="An unknown resultType is taken for a request for input, or the call never ends.",
)
def client_meta_unknown_result_type(run: ClientRun) -> None:
    """A result of an unknown type is an error for the caller, without a hang or endless retries."""
    run.require_progress()
    for method in run.ordinary_run.methods:
        again = len(run.requests(method)) - len(run.ordinary_run.requests(method))
        if again > _RETRIES:
            raise Violation(f"the client sent {method} {again} times more than usual", evidence=run.evidence())
