"""JSON-RPC messages of a client: single messages, with unique ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from accord.check.clients.incoming_request import IncomingRequest, build_notification
from accord.check.clients.run import ClientMessage, ClientRun
from accord.check.clients.scenario import FIRST_REQUEST, RawMessage, Scenario, ScriptedAnswer
from accord.check.engine.rule import CaseVariant, JudgedItems, Violation, client_rule
from accord.check.probes.message_log import LogEntry, id_key
from accord.wire.transcript import RECEIVED, SENT

BATCH_SCENARIO = Scenario("batch", "responses in batches", since="2025-03-26", until="2025-06-18")


@BATCH_SCENARIO.on(FIRST_REQUEST)
async def answer_batch(request: IncomingRequest) -> ScriptedAnswer:
    notification = build_notification("notifications/message", {"level": "info", "data": "a batch"})
    return RawMessage([notification, request.build_response(await request.default_result())])


@BATCH_SCENARIO.rule(
    "client-envelope/batch",
    "must",
    case="a notification and a response in one batch",
    at="basic#batching",
    since="2025-03-26",
    until="2025-06-18",
    cause="A message is assumed to be an object.",
)
def client_envelope_batch(run: ClientRun) -> None:
    """A client accepts batches."""
    run.require_ordinary_behavior()


@client_rule(
    "client-envelope/valid",
    "must",
    case="all messages",
    at="basic#messages",
    cause="Other output is written to the transport: a log line, a prompt, an indented or partial message.",
)
def client_envelope_valid(runs: Sequence[ClientRun]) -> JudgedItems:
    """Each output of a client is a JSON-RPC 2.0 message in UTF-8."""
    for run in runs:
        for entry in _received_entries(run):
            yield
            items = entry.message if isinstance(entry.message, list) else [entry.message]
            if not all(isinstance(item, dict) and item.get("jsonrpc") == "2.0" for item in items):
                raise Violation(
                    "the client sent something that is not a JSON-RPC 2.0 message", evidence=run.evidence(entry)
                )


@client_rule(
    "client-envelope/id",
    "must",
    case="all requests",
    at="basic#requests",
    cause="The id is null, a fraction, or not a scalar.",
)
def client_envelope_id(runs: Sequence[ClientRun]) -> JudgedItems:
    """The id of a request is a string or an integer, never null."""
    for run in runs:
        for request in run.requests():
            yield
            id = request.body["id"]
            if not isinstance(id, str | int) or isinstance(id, bool):
                raise Violation(f"{request.method} has the id {id!r}", evidence=[request.entry.line()])


@client_rule(
    "client-envelope/id-once",
    "must",
    variants=[CaseVariant("all requests of a session", until="2026-07-28")],
    at="basic#requests",
    cause="The counter restarts within a connection, or all requests have the same id.",
)
def client_envelope_id_once(runs: Sequence[ClientRun]) -> JudgedItems:
    """The id of a request is unique: in a session, or among the requests in flight (2026-07-28)."""
    for run in runs:
        yield from _require_unique_ids(run)


@client_envelope_id_once.case("all requests in flight", since="2026-07-28")
def client_envelope_id_once_in_flight(runs: Sequence[ClientRun]) -> JudgedItems:
    for run in runs:
        yield from _require_unique_ids_in_flight(run)


@client_rule(
    "client-envelope/response",
    "must",
    case="all responses",
    at=("basic#responses", "basic#result-responses"),
    until="2026-07-28",
    cause="The id is converted to a string or a number, or both result and error are set.",
)
def client_envelope_response(runs: Sequence[ClientRun]) -> JudgedItems:
    """A response of a client has the id of a request, with the same type, and either a result or an error."""
    for run in runs:
        for answer in run.responses():
            yield
            if ("result" in answer.body) == ("error" in answer.body):
                raise Violation("a response has both result and error, or neither", evidence=run.evidence(answer.entry))
            if answer.body.get("id") is not None and id_key(answer.body["id"]) not in _server_request_ids(answer):
                text = f"a response has the id {answer.body['id']!r}, but no request had it"
                raise Violation(text, evidence=run.evidence(answer.entry))


@client_rule(
    "client-envelope/error",
    "must",
    case="all errors",
    at=("basic#responses", "basic#error-responses"),
    until="2026-07-28",
    cause="The code is a name, or the message is missing.",
)
def client_envelope_error(runs: Sequence[ClientRun]) -> JudgedItems:
    """An error has an integer code and a message."""
    for run in runs:
        for answer in run.responses():
            if "error" in answer.body:
                yield
                error = answer.body["error"]
                is_one = (
                    isinstance(error, dict) and type(error.get("code")) is int and isinstance(error.get("message"), str)
                )
                if not is_one:
                    raise Violation("an error has no integer code, or no message", evidence=[answer.entry.line()])


@client_rule(
    "client-envelope/no-answer-to-notifications",
    "must",
    case="all notifications from the server",
    at="basic#notifications",
    cause="Unknown notifications are treated as requests, and answered with an error.",
)
def client_envelope_no_answer_to_notifications(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client does not answer notifications."""
    for run in runs:
        yield from _server_notifications(run)
        for answer in run.responses():
            if (
                answer.body.get("id") is None
                and _is_invalid_request(answer.body)
                and not _follows_invalid_message(answer)
            ):
                raise Violation("the client answered a notification", evidence=run.evidence(answer.entry))


@client_rule(
    "client-envelope/single",
    "must",
    case="all messages",
    at=("basic/transports#sending-messages-to-the-server", "basic/transports/streamable-http#sending-messages"),
    since="2025-06-18",
    cause="Requests are combined in arrays, which only 2025-03-26 has.",
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
    """Yield for each request. Raises `Violation` if its id is not unique in its session."""
    seen: set[Any] = set()
    for request in run.requests():
        place = (request.conversation.number, id_key(request.body["id"]))
        if place in seen:
            raise Violation(
                f"the client used the id {request.body['id']!r} again", evidence=run.evidence(request.entry)
            )
        if seen:
            yield
        seen.add(place)


def _require_unique_ids_in_flight(run: ClientRun) -> JudgedItems:
    """Yield for each request. Raises `Violation` if a request in flight has the same id."""
    open_: dict[Any, ClientMessage] = {}
    for request in run.requests():
        place = (request.conversation.number, id_key(request.body["id"]))
        before = open_.get(place)
        if before is not None and not _is_finished(before, request):
            text = f"the client used the id {request.body['id']!r} again before the response"
            raise Violation(text, evidence=[before.entry.line(), request.entry.line()])
        if open_:
            yield
        open_[place] = request


def _is_finished(request: ClientMessage, later: ClientMessage) -> bool:
    """Return whether a request was answered or cancelled before a later one."""
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
    """Return whether we sent an invalid message before: then, an error without an id is valid."""
    return any(entry.misbehaved for entry in answer.conversation.log.entries if entry.at <= answer.entry.at)
