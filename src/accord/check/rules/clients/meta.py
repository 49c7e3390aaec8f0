"""From 2026-07-28 on: what each request of a client says of itself, and how a client finds the revision it shares."""

from __future__ import annotations

import re
from collections.abc import Sequence

from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer
from accord.check.engine.rule import JudgedItems, Violation, rule
from accord.messages.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION

_SINCE = "2026-07-28"
_NAME = re.compile(
    r"([A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?)*/)?([A-Za-z0-9]([\w.-]*[A-Za-z0-9])?)?"
)
_RETRIES = 5


# basic#resulttype: "clients MUST treat an absent resultType as complete", but "for backward compatibility with servers
# implementing earlier protocol versions": that a server of this revision may be refused is another way to read it.


@rule(
    "client-meta/required",
    "must",
    case="every request",
    role="client",
    at="basic#meta",
    since=_SINCE,
    cause="Only the first request says them, as if there were a handshake.",
)
def client_meta_required(runs: Sequence[ClientRun]) -> JudgedItems:
    """Every request carries the revision and the capabilities of the client in _meta."""
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


@rule(
    "client-meta/client-info",
    "should",
    case="every request",
    role="client",
    at="basic#meta",
    since=_SINCE,
    cause="clientInfo is left out.",
)
def client_meta_client_info(runs: Sequence[ClientRun]) -> JudgedItems:
    """Every request says in _meta who the client is."""
    for run in runs:
        for each in run.requests():
            if each.method != "initialize":
                yield
                if not isinstance(each.meta.get(CLIENT_INFO), dict):
                    raise Violation(f"{each.method} has no {CLIENT_INFO} in _meta", evidence=[each.entry.line()])


@rule(
    "client-meta/no-responses",
    "must",
    case="every message",
    role="client",
    at=("basic/transports/stdio#sending-messages", "basic/transports/streamable-http#sending-messages"),
    since=_SINCE,
    cause="Requests of a server are answered as in older revisions.",
)
def client_meta_no_responses(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client sends no answers: it is asked in results, and answers by asking again."""
    for run in runs:
        for answer in run.responses():
            raise Violation("the client sent an answer", evidence=run.evidence(answer.entry))
        yield from run.requests()


@rule(
    "client-meta/names",
    "must",
    case="every _meta",
    role="client",
    at="basic#meta",
    since="2025-06-18",
    cause="A key has spaces, or begins or ends with a sign.",
)
def client_meta_names(runs: Sequence[ClientRun]) -> JudgedItems:
    """The keys in _meta are well formed: a prefix of labels, a slash, and a name."""
    for run in runs:
        for each in run.messages():
            if each.meta:
                yield
                for name in each.meta:
                    if not _NAME.fullmatch(name):
                        raise Violation(f"{name!r} is no key for _meta", evidence=[each.entry.line()])


# --- results and their types -------------------------------------------------------------------------------------

NO_RESULT_TYPE_SCENARIO = Scenario("no-result-type", "results do not say what they are", since=_SINCE)


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
    cause="resultType is required when results are read.",
)
def client_meta_result_type(run: ClientRun) -> None:
    """A result without resultType is a complete one."""
    run.require_ordinary_behavior()


UNKNOWN_RESULT_TYPE_SCENARIO = Scenario("unknown-result-type", "a result is of a type that nobody knows", since=_SINCE)


@UNKNOWN_RESULT_TYPE_SCENARIO.on(FIRST_REQUEST)
async def answer_unknown_result_type(request: IncomingRequest) -> ScriptedAnswer:
    return {**await request.default_result(), "resultType": "com.example/unheard-of"}


@UNKNOWN_RESULT_TYPE_SCENARIO.rule(
    "client-meta/unknown-result-type",
    "must",
    case="a result of a type that nobody knows",
    at="basic#resulttype",
    since=_SINCE,
    cause="An unknown resultType is taken as a request for input, or leaves the call without an end.",
)
def client_meta_unknown_result_type(run: ClientRun) -> None:
    """A result of an unknown type is an error for whoever asked: the client neither hangs nor asks again for ever."""
    run.require_progress()
    for method in run.ordinary_run.methods:
        again = len(run.requests(method)) - len(run.ordinary_run.requests(method))
        if again > _RETRIES:
            raise Violation(f"{method} was sent {again} times more than usual", evidence=run.evidence())
