"""From 2026-07-28 on: what each request of a client says of itself, and how a client finds the revision it shares."""

from __future__ import annotations

import re
from collections.abc import Sequence

from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer
from accord.check.engine.rule import Rule, Violation
from accord.messages.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION

_SINCE = "2026-07-28"
_NAME = re.compile(
    r"([A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?)*/)?([A-Za-z0-9]([\w.-]*[A-Za-z0-9])?)?"
)
_RETRIES = 5

REQUIRED = Rule(
    "client-meta/required",
    "must",
    "Every request carries the revision and the capabilities of the client in _meta.",
    at="basic#meta",
    role="client",
    since=_SINCE,
    cause="Only the first request says them, as if there were a handshake.",
)

CLIENT_INFO_RULE = Rule(
    "client-meta/client-info",
    "should",
    "Every request says in _meta who the client is.",
    at="basic#meta",
    role="client",
    since=_SINCE,
    cause="clientInfo is left out.",
)

NO_RESPONSES = Rule(
    "client-meta/no-responses",
    "must",
    "A client sends no answers: it is asked in results, and answers by asking again.",
    at=("basic/transports/stdio#sending-messages", "basic/transports/streamable-http#sending-messages"),
    role="client",
    since=_SINCE,
    cause="Requests of a server are answered as in older revisions.",
)

NAMES = Rule(
    "client-meta/names",
    "must",
    "The keys in _meta are well formed: a prefix of labels, a slash, and a name.",
    at="basic#meta",
    role="client",
    since="2025-06-18",
    cause="A key has spaces, or begins or ends with a sign.",
)

# basic#resulttype: "clients MUST treat an absent resultType as complete", but "for backward compatibility with servers
# implementing earlier protocol versions": that a server of this revision may be refused is another way to read it.
RESULT_TYPE = Rule(
    "client-meta/result-type",
    "should",
    "A result without resultType is a complete one.",
    at="basic#resulttype",
    role="client",
    since=_SINCE,
    cause="resultType is required when results are read.",
)

UNKNOWN_RESULT_TYPE = Rule(
    "client-meta/unknown-result-type",
    "must",
    "A result of an unknown type is an error for whoever asked: the client neither hangs nor asks again for ever.",
    at="basic#resulttype",
    role="client",
    since=_SINCE,
    cause="An unknown resultType is taken as a request for input, or leaves the call without an end.",
)


@REQUIRED.reading("every request")
def read_required(runs: Sequence[ClientRun]) -> int:
    requests = [each for run in runs for each in run.requests() if each.method != "initialize"]
    for each in requests:
        if not isinstance(each.meta.get(PROTOCOL_VERSION), str):
            raise Violation(f"{each.method} has no {PROTOCOL_VERSION} in _meta", evidence=[each.entry.line()])
        if not isinstance(each.meta.get(CLIENT_CAPABILITIES), dict):
            raise Violation(f"{each.method} has no {CLIENT_CAPABILITIES} in _meta", evidence=[each.entry.line()])
    return len(requests)


@CLIENT_INFO_RULE.reading("every request")
def read_client_info(runs: Sequence[ClientRun]) -> int:
    requests = [each for run in runs for each in run.requests() if each.method != "initialize"]
    for each in requests:
        if not isinstance(each.meta.get(CLIENT_INFO), dict):
            raise Violation(f"{each.method} has no {CLIENT_INFO} in _meta", evidence=[each.entry.line()])
    return len(requests)


@NO_RESPONSES.reading("every message")
def read_no_responses(runs: Sequence[ClientRun]) -> int:
    for run in runs:
        for answer in run.responses():
            raise Violation("the client sent an answer", evidence=run.evidence(answer.entry))
    return sum(len(run.requests()) for run in runs)


@NAMES.reading("every _meta")
def read_names(runs: Sequence[ClientRun]) -> int:
    carrying = [each for run in runs for each in run.messages() if each.meta]
    for each in carrying:
        for name in each.meta:
            if not _NAME.fullmatch(name):
                raise Violation(f"{name!r} is no key for _meta", evidence=[each.entry.line()])
    return len(carrying)


# --- results and their types -------------------------------------------------------------------------------------

NO_RESULT_TYPE_SCENARIO = Scenario("no-result-type", "results do not say what they are", since=_SINCE)


@NO_RESULT_TYPE_SCENARIO.on(FIRST_REQUEST, "tools/list", "tools/call", "resources/list", "prompts/list")
async def answer_no_result_type(ask: IncomingRequest) -> ScriptedAnswer:
    result = await ask.default_result()
    return {name: value for name, value in result.items() if name != "resultType"}


@NO_RESULT_TYPE_SCENARIO.case(RESULT_TYPE, "results without resultType")
def check_result_type(run: ClientRun) -> None:
    run.require_ordinary_behavior()


UNKNOWN_RESULT_TYPE_SCENARIO = Scenario("unknown-result-type", "a result is of a type that nobody knows", since=_SINCE)


@UNKNOWN_RESULT_TYPE_SCENARIO.on(FIRST_REQUEST)
async def answer_unknown_result_type(ask: IncomingRequest) -> ScriptedAnswer:
    return {**await ask.default_result(), "resultType": "com.example/unheard-of"}


@UNKNOWN_RESULT_TYPE_SCENARIO.case(UNKNOWN_RESULT_TYPE, "a result of a type that nobody knows")
def check_unknown_result_type(run: ClientRun) -> None:
    run.require_progress()
    for method in run.ordinary_run.methods:
        again = len(run.requests(method)) - len(run.ordinary_run.requests(method))
        if again > _RETRIES:
            raise Violation(f"{method} was sent {again} times more than usual", evidence=run.evidence())
