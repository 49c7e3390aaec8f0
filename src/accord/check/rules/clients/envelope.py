"""What every message of a client is: JSON-RPC 2.0, one at a time, with ids that are used once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from accord.check.clients.incoming_request import IncomingRequest, build_notification
from accord.check.clients.run import ClientMessage, ClientRun
from accord.check.clients.scenario import FIRST_REQUEST, RawMessage, Scenario, ScriptedAnswer
from accord.check.engine.rule import CaseVariant, JudgedItems, Violation, rule
from accord.check.probes.message_log import LogEntry
from accord.check.probes.message_reader import id_key
from accord.wire.transcript import RECEIVED, SENT

BATCH_SCENARIO = Scenario("batch", "answers come in batches", since="2025-03-26", until="2025-06-18")


@BATCH_SCENARIO.on(FIRST_REQUEST)
async def answer_batch(request: IncomingRequest) -> ScriptedAnswer:
    told = build_notification("notifications/message", {"level": "info", "data": "a batch"})
    return RawMessage([told, request.build_response(await request.default_result())])


@BATCH_SCENARIO.rule(
    "client-envelope/batch",
    "must",
    case="a notification and the answer in one batch",
    at="basic#batching",
    since="2025-03-26",
    until="2025-06-18",
    cause="A message is taken to be an object.",
)
def client_envelope_batch(run: ClientRun) -> None:
    """Batches of the server are understood."""
    run.require_ordinary_behavior()


@rule(
    "client-envelope/valid",
    "must",
    case="every message",
    role="client",
    at="basic#messages",
    cause="Something else is written where messages go: a log line, a prompt, a pretty-printed or partial message.",
)
def client_envelope_valid(runs: Sequence[ClientRun]) -> JudgedItems:
    """Whatever the client sends is a message: UTF-8, JSON, an object that says it is JSON-RPC 2.0."""
    for run in runs:
        for entry in _received_entries(run):
            yield
            items = entry.message if isinstance(entry.message, list) else [entry.message]
            if not all(isinstance(item, dict) and item.get("jsonrpc") == "2.0" for item in items):
                raise Violation("the client sent what is no message of JSON-RPC 2.0", evidence=run.evidence(entry))


@rule(
    "client-envelope/id",
    "must",
    case="every request",
    role="client",
    at="basic#requests",
    cause="The id is null, a fraction, or something structured.",
)
def client_envelope_id(runs: Sequence[ClientRun]) -> JudgedItems:
    """The id of a request is a string or an integer, never null."""
    for run in runs:
        for request in run.requests():
            yield
            id = request.body["id"]
            if not isinstance(id, str | int) or isinstance(id, bool):
                raise Violation(f"{request.method} has the id {id!r}", evidence=[request.entry.line()])


@rule(
    "client-envelope/id-once",
    "must",
    variants=[CaseVariant("all requests of a session", until="2026-07-28")],
    role="client",
    at="basic#requests",
    cause="The counter starts again within a connection, or every request has the same id.",
)
def client_envelope_id_once(runs: Sequence[ClientRun]) -> JudgedItems:
    """An id is used for one request only: ever in a session, or as long as the request is not answered (2026-07-28)."""
    for run in runs:
        yield from _require_unique_ids(run)


@client_envelope_id_once.case("all requests in flight", since="2026-07-28")
def client_envelope_id_once_requests_flight(runs: Sequence[ClientRun]) -> JudgedItems:
    for run in runs:
        yield from _require_unique_ids_in_flight(run)


@rule(
    "client-envelope/response",
    "must",
    case="every answer",
    role="client",
    at=("basic#responses", "basic#result-responses"),
    until="2026-07-28",
    cause="The id is turned into a string or a number, or result and error are both set.",
)
def client_envelope_response(runs: Sequence[ClientRun]) -> JudgedItems:
    """An answer of the client has the id of a request of the server, with its type, and either a result or an error."""
    for run in runs:
        for answer in run.responses():
            yield
            if ("result" in answer.body) == ("error" in answer.body):
                raise Violation(
                    "an answer has not exactly one of result and error", evidence=run.evidence(answer.entry)
                )
            if answer.body.get("id") is not None and id_key(answer.body["id"]) not in _server_request_ids(answer):
                text = f"an answer has the id {answer.body['id']!r}, which no request of the server had"
                raise Violation(text, evidence=run.evidence(answer.entry))


@rule(
    "client-envelope/error",
    "must",
    case="every error",
    role="client",
    at=("basic#responses", "basic#error-responses"),
    until="2026-07-28",
    cause="The code is a name, or the message is missing.",
)
def client_envelope_error(runs: Sequence[ClientRun]) -> JudgedItems:
    """An error has an integer as its code, and a message."""
    for run in runs:
        for answer in run.responses():
            if "error" in answer.body:
                yield
                error = answer.body["error"]
                is_one = (
                    isinstance(error, dict) and type(error.get("code")) is int and isinstance(error.get("message"), str)
                )
                if not is_one:
                    raise Violation("an error has no integer as code, or no message", evidence=[answer.entry.line()])


@rule(
    "client-envelope/no-answer-to-notifications",
    "must",
    case="every notification of the server",
    role="client",
    at="basic#notifications",
    cause="Unknown notifications are treated as requests, and refused with an error.",
)
def client_envelope_no_answer_to_notifications(runs: Sequence[ClientRun]) -> JudgedItems:
    """Nothing is answered to a notification."""
    for run in runs:
        yield from _server_notifications(run)
        for answer in run.responses():
            if (
                answer.body.get("id") is None
                and _is_invalid_request(answer.body)
                and not _follows_invalid_message(answer)
            ):
                raise Violation("the client answered a notification", evidence=run.evidence(answer.entry))


@rule(
    "client-envelope/single",
    "must",
    case="every message",
    role="client",
    at=("basic/transports#sending-messages-to-the-server", "basic/transports/streamable-http#sending-messages"),
    since="2025-06-18",
    cause="Requests are collected in arrays, which only 2025-03-26 has.",
)
def client_envelope_single(runs: Sequence[ClientRun]) -> JudgedItems:
    """A message is a single object, not a batch."""
    for run in runs:
        for entry in _received_entries(run):
            yield
            if isinstance(entry.message, list):
                raise Violation("the client sent a batch", evidence=run.evidence(entry))


def _received_entries(run: ClientRun) -> Iterator[LogEntry]:
    for conversation in run.conversations:
        yield from (entry for entry in conversation.log.entries if entry.direction == RECEIVED)


def _require_unique_ids(run: ClientRun) -> JudgedItems:
    """Each id once in a conversation."""
    seen: set[Any] = set()
    for request in run.requests():
        place = (request.conversation.number, id_key(request.body["id"]))
        if place in seen:
            raise Violation(f"the id {request.body['id']!r} is used again", evidence=run.evidence(request.entry))
        if seen:
            yield
        seen.add(place)


def _require_unique_ids_in_flight(run: ClientRun) -> JudgedItems:
    """No id of a request that is neither answered nor given up."""
    open_: dict[Any, ClientMessage] = {}
    for request in run.requests():
        place = (request.conversation.number, id_key(request.body["id"]))
        before = open_.get(place)
        if before is not None and not _is_finished(before, request):
            text = f"the id {request.body['id']!r} is used again while its first request is not answered"
            raise Violation(text, evidence=[before.entry.line(), request.entry.line()])
        if open_:
            yield
        open_[place] = request


def _is_finished(request: ClientMessage, later: ClientMessage) -> bool:
    """Whether a request was answered, or given up, before a later one."""
    for entry in request.conversation.log.entries:
        if request.entry.at <= entry.at <= later.entry.at and isinstance(entry.message, dict):
            answered = entry.direction == SENT and "method" not in entry.message
            if answered and entry.message.get("id") == request.body["id"]:
                return True
            params = entry.message.get("params")
            if isinstance(params, dict) and params.get("requestId") == request.body["id"]:
                return True
    return False


def _server_request_ids(answer: ClientMessage) -> set[Any]:
    return {
        id_key(entry.message["id"])
        for entry in answer.conversation.log.entries
        if entry.direction == SENT
        and isinstance(entry.message, dict)
        and "method" in entry.message
        and "id" in entry.message
    }


def _server_notifications(run: ClientRun) -> Iterator[LogEntry]:
    for conversation in run.conversations:
        for entry in conversation.log.entries:
            message = entry.message
            if entry.direction == SENT and isinstance(message, dict) and "method" in message and "id" not in message:
                yield entry


def _is_invalid_request(answer: dict[str, Any]) -> bool:
    error = answer.get("error")
    return isinstance(error, dict) and error.get("code") in (-32601, -32600, -32602)


def _follows_invalid_message(answer: ClientMessage) -> bool:
    """Whether we had sent something wrong before it: an error without an id is right then."""
    return any(entry.misbehaved for entry in answer.conversation.log.entries if entry.at <= answer.entry.at)
