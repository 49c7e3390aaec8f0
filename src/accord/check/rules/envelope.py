"""JSON-RPC: the form of each message from the server, which also matches the type of its revision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.engine.rule import JudgedItems, Violation, rule
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import LogEntry, MessageLog, is_response
from accord.check.probes.message_reader import ObservedMessage, is_web_server_error, received_messages
from accord.check.probes.message_validation import TypeMismatch, type_mismatches
from accord.check.probes.probe import Probe
from accord.messages.revision import RULES
from accord.wire.transcript import RECEIVED

PLACES = ("basic/index#messages", "basic/messages")


@rule(
    "envelope/json-rpc",
    "must",
    case="all messages from the server",
    at=PLACES,
    cause='Messages are built by hand: each needs "jsonrpc": "2.0", and the form of a request, a '
    "notification or a response.",
)
def envelope_json_rpc(logs: Sequence[MessageLog]) -> JudgedItems:
    """Each message from the server is a JSON-RPC 2.0 object."""
    for log in logs:
        for entry in log.entries:
            if (
                entry.direction == RECEIVED
                and entry.message is not None
                and not is_web_server_error(log, entry, entry.message)
            ):
                yield
                _check_entry(log, entry)


def _check_entry(log: MessageLog, entry: LogEntry) -> None:
    many = isinstance(entry.message, list)
    if many and not (RULES[log.revision].batches and entry.message):
        raise ObservedMessage(log, entry, {}).violation(
            "the server sent an array, but this revision has only single messages"
        )
    for each in entry.message if many else [entry.message]:
        if not isinstance(each, dict):
            raise ObservedMessage(log, entry, {}).violation(f"the message is not an object: {preview_json(each)}")
        if each.get("jsonrpc") != "2.0":
            raise ObservedMessage(log, entry, each).violation(f"jsonrpc is {preview_json(each.get('jsonrpc'))}")
        if not isinstance(each.get("method", ""), str):
            raise ObservedMessage(log, entry, each).violation(
                f"the method is not a string: {preview_json(each['method'])}"
            )
        if "method" not in each and not is_response(each):
            raise ObservedMessage(log, entry, each).violation("the message has no method, result or error")


@rule(
    "envelope/params",
    "must",
    case="all requests and notifications from the server",
    at=PLACES,
    cause="Arguments are passed by position, or `params` is null instead of absent.",
)
def envelope_params(logs: Sequence[MessageLog]) -> JudgedItems:
    """The params of a request or a notification are an object, or absent."""
    for each in received_messages(logs):
        if "method" in each.message:
            yield
            if not isinstance(each.message.get("params", {}), dict):
                raise each.violation(f"params are {preview_json(each.message['params'])}")


@rule(
    "envelope/result-or-error",
    "must",
    case="all responses",
    at=("basic/index#responses", "basic/messages#responses"),
    cause="The serializer writes both fields, one of them as null: omit the one that is not set.",
)
def envelope_result_or_error(logs: Sequence[MessageLog]) -> JudgedItems:
    """A response has either a result or an error."""
    for each in received_messages(logs):
        if "method" not in each.message and "id" in each.message:
            yield
            found = [field for field in ("result", "error") if field in each.message]
            if len(found) != 1:
                raise each.violation(f"the response has {' and '.join(found) or 'neither of them'}")


@rule(
    "envelope/result-object",
    "must",
    case="all results",
    at=("basic/index#result-responses", "basic/messages#responses"),
    cause="The return value of the handler is sent as the result: an empty result is an empty object.",
)
def envelope_result_object(logs: Sequence[MessageLog]) -> JudgedItems:
    """A result is an object."""
    for each in received_messages(logs):
        if "result" in each.message and not _is_null_beside(each.message, "error"):
            yield
            if not isinstance(each.message["result"], dict):
                raise each.violation(f"the result is {preview_json(each.message['result'])}")


@rule(
    "envelope/error-form",
    "must",
    case="an unknown method",
    at=("basic/index#error-responses", "basic/messages#responses"),
    cause="An exception is written as a string, or its message is not a string.",
)
async def envelope_error_form(probe: Probe) -> None:
    """An error is an object with a code and a message, which is a string."""
    await probe.request(probe.unknown_name)  # there is an error to read then


@envelope_error_form.case("all errors")
def envelope_error_form_reading(logs: Sequence[MessageLog]) -> JudgedItems:
    for each in received_messages(logs):
        if _has_error(each.message):
            yield
            error = each.message["error"]
            if not isinstance(error, dict) or "code" not in error or not isinstance(error.get("message"), str):
                raise each.violation(f"the error is {preview_json(error)}")


@rule(
    "envelope/error-code",
    "must",
    case="an unknown method",
    at=("basic/index#error-responses", "basic/messages#responses"),
    cause="A name or an HTTP status is used as the code: JSON-RPC requires an integer.",
)
async def envelope_error_code(probe: Probe) -> None:
    """The code of an error is an integer."""
    await probe.request(probe.unknown_name)  # there is an error to read then


@envelope_error_code.case("all errors")
def envelope_error_code_reading(logs: Sequence[MessageLog]) -> JudgedItems:
    for each in received_messages(logs):
        error = each.message.get("error")
        if isinstance(error, dict) and "code" in error:
            yield
            if not _is_whole(error["code"]):
                raise each.violation(f"the code is {preview_json(error['code'])}")


@rule(
    "envelope/notification-without-id",
    "must",
    case="all notifications from the server",
    at=("basic/index#notifications", "basic/messages#notifications"),
    cause="Notifications are sent by the function for requests: a client does not answer them.",
)
def envelope_notification_without_id(logs: Sequence[MessageLog]) -> JudgedItems:
    """A notification from the server has no id."""
    for each in received_messages(logs):
        if str(each.message.get("method", "")).startswith("notifications/"):
            yield
            if "id" in each.message:
                raise each.violation(f"{each.message['method']} has the id {preview_json(each.message['id'])}")


@rule(
    "envelope/no-server-requests",
    "must",
    case="all messages from the server",
    at="basic/patterns/index",
    since="2026-07-28",
    cause="Code for earlier revisions sends a request to the client: return `input_required` instead.",
)
def envelope_no_server_requests(logs: Sequence[MessageLog]) -> JudgedItems:
    """A server sends no requests: it returns `input_required`."""
    for each in received_messages(logs):
        yield
        name = str(each.message.get("method", ""))
        if "id" in each.message and name and not name.startswith("notifications/"):
            raise each.violation(f"the server sent the request {name}")


def _has_error(message: dict[str, Any]) -> bool:
    return "method" not in message and "error" in message and not _is_null_beside(message, "result")


def _is_null_beside(message: dict[str, Any], other: str) -> bool:
    """Return whether one field is null and the other one is present, which another rule judges."""
    mine = "result" if other == "error" else "error"
    return other in message and message.get(mine) is None


def _is_whole(code: Any) -> bool:
    return (isinstance(code, int) and not isinstance(code, bool)) or (isinstance(code, float) and code.is_integer())


_MOST = 10
"""Maximum number of reported kinds of mistakes."""


@rule(
    "shapes/messages",
    "must",
    case="all messages from the server",
    at="basic#messages",
    cause="A field is missing, is null instead of absent, or has the form of another revision.",
)
def shapes_messages(logs: Sequence[MessageLog]) -> JudgedItems:
    """Each message from the server has the required fields of its type, with the types of the revision."""
    kinds: dict[str, Violation] = {}
    for log in logs:
        for wrong in type_mismatches(log):
            if wrong.symptom not in kinds and len(kinds) < _MOST:
                kinds[wrong.symptom] = _violation(log, wrong)
    if kinds:
        first, *more = kinds.values()
        first.more = tuple(more)
        raise first
    yield from (entry for log in logs for entry in log.entries if entry.direction == RECEIVED)


def _violation(log: MessageLog, wrong: TypeMismatch) -> Violation:
    request = wrong.request
    about = [entry for entry in log.entries if entry is wrong.entry or (request and entry.message is request)]
    return Violation(
        f"{wrong.what}: at {wrong.where}: {wrong.why}",
        symptom=wrong.symptom,
        evidence=log.evidence(about=about),
        during=[about[0].case],
    )
