"""Responses of a client to requests from a server (until 2025-11-25), and the methods and types of its messages."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientMessage, ClientRun, error_code
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer
from accord.check.engine.rule import JudgedItems, NotObserved, Violation, client_rule
from accord.check.probes.message_log import LogEntry
from accord.check.probes.message_validation import type_mismatches
from accord.errors import METHOD_NOT_FOUND
from accord.messages.meta import PROTOCOL_VERSION
from accord.messages.methods import table
from accord.messages.revision import RULES
from accord.messages.tasks import NAMED_BY_ID

_UNTIL = "2026-07-28"
_UNKNOWN_METHOD = "com.example/unheard-of"


SERVER_REQUESTS_SCENARIO = Scenario(
    "server-requests", "the server sends requests before its response", until=_UNTIL, asks=True
)


@SERVER_REQUESTS_SCENARIO.on(FIRST_REQUEST)
async def answer_server_requests(request: IncomingRequest) -> ScriptedAnswer:
    for id in (None, 7, "7", 2**53 - 1):
        await request.send_request("ping", id=id, seconds=2.0)
    await request.send_request(_UNKNOWN_METHOD, {}, seconds=2.0)
    return await request.default_result()


@SERVER_REQUESTS_SCENARIO.rule(
    "client-answers/ping",
    "must",
    case="a ping before a response",
    at="basic/utilities/ping#behavior-requirements",
    until=_UNTIL,
    cause="While a request of the client is pending, only responses are expected.",
)
def client_answers_ping(run: ClientRun) -> None:
    """A client answers a ping promptly with an empty result."""
    run.require_intervention()
    for request in run.server_requests("ping")[:1]:
        answer = run.response_to(request["id"])
        if answer is None:
            raise Violation("the client did not answer a ping", evidence=run.exchange_lines(request))
        if answer.get("result") is None or {*answer["result"]} - {"_meta"}:
            raise Violation("the result of a ping is not empty", evidence=run.exchange_lines(request))


@SERVER_REQUESTS_SCENARIO.rule(
    "client-answers/id-types",
    "must",
    case="numeric ids and string ids",
    at="basic#responses",
    until=_UNTIL,
    cause="Ids are converted to strings or numbers.",
)
def client_answers_id_types(run: ClientRun) -> None:
    """The id of a response has the type of the request: 7 is not '7'."""
    run.require_intervention()
    answered = [request["id"] for request in run.server_requests("ping") if run.response_to(request["id"]) is not None]
    if not answered:
        raise NotObserved("the client answers no ping")
    for request in run.server_requests("ping"):
        if request["id"] not in answered:
            text = f"the client did not answer the request with the id {request['id']!r}"
            raise Violation(text, evidence=run.exchange_lines(request))


@SERVER_REQUESTS_SCENARIO.rule(
    "client-answers/unknown-method",
    "must",
    case="an unknown request",
    at="basic#responses",
    until=_UNTIL,
    cause="Unknown requests are dropped, and the server waits forever.",
)
def client_answers_unknown_method(run: ClientRun) -> None:
    """An unknown request returns an error."""
    run.require_intervention()
    for request in run.server_requests(_UNKNOWN_METHOD):
        if "error" not in (run.response_to(request["id"]) or {}):
            text = "an unknown request returned no error"
            raise Violation(text, evidence=run.exchange_lines(request))


@SERVER_REQUESTS_SCENARIO.rule(
    "client-answers/method-not-found",
    "should",
    case="an unknown request",
    at="basic#responses",
    until=_UNTIL,
    cause="All errors have the same code.",
)
def client_answers_method_not_found(run: ClientRun) -> None:
    """The error for an unknown request has the code -32601."""
    run.require_intervention()
    for request in run.server_requests(_UNKNOWN_METHOD):
        code = error_code(run.response_to(request["id"]))
        if code != METHOD_NOT_FOUND:
            raise Violation(f"the error has the code {code}", evidence=run.exchange_lines(request))


@client_rule(
    "client-envelope/methods",
    "must",
    case="all methods",
    at=("basic/lifecycle#operation", "basic/versioning"),
    cause="A method of another revision is used.",
)
def client_envelope_methods(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client uses only methods of its revision."""
    for run in runs:
        for each in run.messages():
            if isinstance(each.method, str):
                yield
                revision = _revision_of(run, each)
                if RULES[revision].extension_tasks and each.method in NAMED_BY_ID:
                    continue  # of the extension, which has rules of its own
                if each.method not in table(revision, "client") and each.method in _ANYWHERE:
                    raise Violation(
                        f"in {revision}, a client does not send {each.method}", evidence=[each.entry.line()]
                    )


@client_rule(
    "client-envelope/shapes",
    "must",
    case="all messages from the client",
    at="basic#messages",
    cause="A field is missing, is null instead of absent, or has the form of another revision.",
)
def client_envelope_shapes(runs: Sequence[ClientRun]) -> JudgedItems:
    """Each message from the client has the required fields of its type, with the types of the revision."""
    for run in runs:
        for conversation in run.conversations:
            for wrong in type_mismatches(conversation.log, "client"):
                if _is_of(run, wrong.entry):
                    text = f"{wrong.what}: at {wrong.where}: {wrong.why}"
                    raise Violation(text, symptom=wrong.symptom, evidence=run.evidence(wrong.entry))
        yield from run.messages()


_ANYWHERE = frozenset(name for revision in RULES for name in table(revision, "client"))
"""All methods of clients in any revision."""


def _revision_of(run: ClientRun, message: ClientMessage) -> str:
    """Return the revision of a message: before the handshake, a client may try a newer one, which `_meta` has."""
    own = message.meta.get(PROTOCOL_VERSION)
    return own if isinstance(own, str) and own in RULES else run.revision


def _is_of(run: ClientRun, entry: LogEntry) -> bool:
    """Return whether a message is in the revision of the run, not an attempt at a newer one."""
    own = [each for each in run.messages() if each.entry is entry]
    return all(_revision_of(run, each) == run.revision for each in own)
