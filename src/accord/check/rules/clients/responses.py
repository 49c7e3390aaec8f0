"""Through 2025-11-25: what a client answers to requests that any server may send, and to those that nobody has.

The methods and the types of a client's messages: those of its revision.
"""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientMessage, ClientRun, error_code
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer
from accord.check.engine.rule import JudgedItems, NotObserved, Violation, rule
from accord.check.probes.message_log import LogEntry
from accord.check.probes.message_validation import type_mismatches
from accord.errors import METHOD_NOT_FOUND
from accord.messages.meta import PROTOCOL_VERSION
from accord.messages.methods import table
from accord.messages.revision import RULES

_UNTIL = "2026-07-28"
_UNKNOWN_METHOD = "com.example/unheard-of"


SERVER_REQUESTS_SCENARIO = Scenario("server-requests", "the server asks while it is asked", until=_UNTIL, asks=True)


@SERVER_REQUESTS_SCENARIO.on(FIRST_REQUEST)
async def answer_server_requests(request: IncomingRequest) -> ScriptedAnswer:
    for id in (None, 7, "7", 2**53 - 1):
        await request.send_request("ping", id=id, seconds=2.0)
    await request.send_request(_UNKNOWN_METHOD, {}, seconds=2.0)
    return await request.default_result()


@SERVER_REQUESTS_SCENARIO.rule(
    "client-answers/ping",
    "must",
    case="a ping before an answer",
    at="basic/utilities/ping#behavior-requirements",
    until=_UNTIL,
    cause="Only answers are expected from the server, while a request of the client is open.",
)
def client_answers_ping(run: ClientRun) -> None:
    """A ping is answered promptly, with nothing."""
    run.require_intervention()
    for request in run.server_requests("ping")[:1]:
        answer = run.response_to(request["id"])
        if answer is None:
            raise Violation("a ping was not answered", evidence=run.exchange_lines(request))
        if answer.get("result") is None or {*answer["result"]} - {"_meta"}:
            raise Violation("a ping was not answered with an empty result", evidence=run.exchange_lines(request))


@SERVER_REQUESTS_SCENARIO.rule(
    "client-answers/id-types",
    "must",
    case="ids that are numbers, and ids that are text",
    at="basic#responses",
    until=_UNTIL,
    cause="Ids are turned into text, or into numbers.",
)
def client_answers_id_types(run: ClientRun) -> None:
    """The id of a request comes back with its type: 7 is not '7'."""
    run.require_intervention()
    answered = [request["id"] for request in run.server_requests("ping") if run.response_to(request["id"]) is not None]
    if not answered:
        raise NotObserved("the client answers no ping")
    for request in run.server_requests("ping"):
        if request["id"] not in answered:
            text = f"the request with the id {request['id']!r} was not answered with that id"
            raise Violation(text, evidence=run.exchange_lines(request))


@SERVER_REQUESTS_SCENARIO.rule(
    "client-answers/unknown-method",
    "must",
    case="a request that nobody has",
    at="basic#responses",
    until=_UNTIL,
    cause="What is not known is dropped, and the server waits for ever.",
)
def client_answers_unknown_method(run: ClientRun) -> None:
    """A request that the client does not know is answered with an error."""
    run.require_intervention()
    for request in run.server_requests(_UNKNOWN_METHOD):
        if "error" not in (run.response_to(request["id"]) or {}):
            text = "a request that nobody has was not answered with an error"
            raise Violation(text, evidence=run.exchange_lines(request))


@SERVER_REQUESTS_SCENARIO.rule(
    "client-answers/method-not-found",
    "should",
    case="a request that nobody has",
    at="basic#responses",
    until=_UNTIL,
    cause="Every failure has the same code.",
)
def client_answers_method_not_found(run: ClientRun) -> None:
    """That error has the code -32601."""
    run.require_intervention()
    for request in run.server_requests(_UNKNOWN_METHOD):
        code = error_code(run.response_to(request["id"]))
        if code != METHOD_NOT_FOUND:
            raise Violation(f"its error has the code {code}", evidence=run.exchange_lines(request))


@rule(
    "client-envelope/methods",
    "must",
    case="every method",
    role="client",
    at=("basic/lifecycle#operation", "basic/versioning"),
    cause="A method of another revision is sent, whatever was agreed.",
)
def client_envelope_methods(runs: Sequence[ClientRun]) -> JudgedItems:
    """Of the methods that the protocol names, a client uses only those that its revision has."""
    for run in runs:
        for each in run.messages():
            if isinstance(each.method, str):
                yield
                revision = _revision_of(run, each)
                if each.method not in table(revision, "client") and each.method in _ANYWHERE:
                    raise Violation(f"{revision} has no {each.method} of a client", evidence=[each.entry.line()])


@rule(
    "client-envelope/shapes",
    "must",
    case="every message that was heard",
    role="client",
    at="basic#messages",
    cause="A field is left out, is null instead of absent, or has the shape of another revision.",
)
def client_envelope_shapes(runs: Sequence[ClientRun]) -> JudgedItems:
    """Every message of the client has the fields that its type requires, each of the type that the revision says."""
    for run in runs:
        for conversation in run.conversations:
            for wrong in type_mismatches(conversation.log, "client"):
                if _is_of(run, wrong.entry):
                    text = f"{wrong.what}: at {wrong.where}: {wrong.why}"
                    raise Violation(text, symptom=wrong.symptom, evidence=run.evidence(wrong.entry))
        yield from run.messages()


_ANYWHERE = frozenset(name for revision in RULES for name in table(revision, "client"))
"""Every method that a client has in some revision."""


def _revision_of(run: ClientRun, message: ClientMessage) -> str:
    """The revision of a message: a newer one may be tried before the handshake, as its `_meta` says."""
    own = message.meta.get(PROTOCOL_VERSION)
    return own if isinstance(own, str) and own in RULES else run.revision


def _is_of(run: ClientRun, entry: LogEntry) -> bool:
    """Whether a message is one of the run's revision, and no attempt at a newer one."""
    own = [each for each in run.messages() if each.entry is entry]
    return all(_revision_of(run, each) == run.revision for each in own)
