"""JSON-RPC around every message of the server: read from all that it said.

Every message is of the type that its revision says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.engine.rule import JudgedItems, Violation, rule
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import LogEntry, MessageLog
from accord.check.probes.message_reader import ObservedMessage, is_response, is_web_server_error, received_messages
from accord.check.probes.message_validation import TypeMismatch, type_mismatches
from accord.check.probes.probe import Probe
from accord.messages.revision import RULES
from accord.wire.transcript import RECEIVED

PLACES = ("basic/index#messages", "basic/messages")


@rule(
    "envelope/json-rpc",
    "must",
    case="all that it said",
    at=PLACES,
    cause="Messages are written by hand: each needs jsonrpc with the text 2.0, and the form of a request, a "
    "notification or an answer.",
)
def envelope_json_rpc(logs: Sequence[MessageLog]) -> JudgedItems:
    """Every message of the server is a JSON-RPC 2.0 object that says so."""
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
        raise ObservedMessage(log, entry, {}).violation("an array came where this revision knows only single messages")
    for each in entry.message if many else [entry.message]:
        if not isinstance(each, dict):
            raise ObservedMessage(log, entry, {}).violation(f"it is no object: {preview_json(each)}")
        if each.get("jsonrpc") != "2.0":
            raise ObservedMessage(log, entry, each).violation(f"jsonrpc is {preview_json(each.get('jsonrpc'))}")
        if not isinstance(each.get("method", ""), str):
            raise ObservedMessage(log, entry, each).violation(f"the method is no text: {preview_json(each['method'])}")
        if "method" not in each and not is_response(each):
            raise ObservedMessage(log, entry, each).violation("it has neither a method nor a result nor an error")


@rule(
    "envelope/params",
    "must",
    case="all requests and notifications of the server",
    at=PLACES,
    cause="Arguments are passed by position, or null is written where params should be left out.",
)
def envelope_params(logs: Sequence[MessageLog]) -> JudgedItems:
    """The params of a request or a notification, where there are any, are an object."""
    for each in received_messages(logs):
        if "method" in each.message:
            yield
            if not isinstance(each.message.get("params", {}), dict):
                raise each.violation(f"params are {preview_json(each.message['params'])}")


@rule(
    "envelope/result-or-error",
    "must",
    case="all answers",
    at=("basic/index#responses", "basic/messages#responses"),
    cause="The serialiser writes both fields, one of them as null: leave out the one that is not set.",
)
def envelope_result_or_error(logs: Sequence[MessageLog]) -> JudgedItems:
    """An answer has a result or an error, and never both."""
    for each in received_messages(logs):
        if "method" not in each.message and "id" in each.message:
            yield
            found = [field for field in ("result", "error") if field in each.message]
            if len(found) != 1:
                raise each.violation(f"it has {' and '.join(found) or 'neither of them'}")


@rule(
    "envelope/result-object",
    "must",
    case="all results",
    at=("basic/index#result-responses", "basic/messages#responses"),
    cause="The handler's value is sent as it is: where there is nothing to say, the result is an empty object.",
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
    case="a method that nobody has",
    at=("basic/index#error-responses", "basic/messages#responses"),
    cause="An exception is written as a bare text, or its message is not one.",
)
async def envelope_error_form(probe: Probe) -> None:
    """An error is an object with a code and a message that is a text."""
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
    case="a method that nobody has",
    at=("basic/index#error-responses", "basic/messages#responses"),
    cause="A name or an HTTP status as text stands where JSON-RPC wants a number.",
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
    case="all notifications",
    at=("basic/index#notifications", "basic/messages#notifications"),
    cause="Notifications are sent by the function for requests: nobody will ever answer them.",
)
def envelope_notification_without_id(logs: Sequence[MessageLog]) -> JudgedItems:
    """A notification of the server has no id."""
    for each in received_messages(logs):
        if str(each.message.get("method", "")).startswith("notifications/"):
            yield
            if "id" in each.message:
                raise each.violation(f"{each.message['method']} has the id {preview_json(each.message['id'])}")


@rule(
    "envelope/no-server-requests",
    "must",
    case="all that it said",
    at="basic/patterns/index",
    since="2026-07-28",
    cause="Code for earlier revisions asks the client directly: answer input_required instead.",
)
def envelope_no_server_requests(logs: Sequence[MessageLog]) -> JudgedItems:
    """A server sends no requests: it asks by its answers."""
    for each in received_messages(logs):
        yield
        name = str(each.message.get("method", ""))
        if "id" in each.message and name and not name.startswith("notifications/"):
            raise each.violation(f"it sent the request {name}")


def _has_error(message: dict[str, Any]) -> bool:
    return "method" not in message and "error" in message and not _is_null_beside(message, "result")


def _is_null_beside(message: dict[str, Any], other: str) -> bool:
    """Whether one field is null and the other one is present: another rule judges that."""
    mine = "result" if other == "error" else "error"
    return other in message and message.get(mine) is None


def _is_whole(code: Any) -> bool:
    return (isinstance(code, int) and not isinstance(code, bool)) or (isinstance(code, float) and code.is_integer())


_MOST = 10
"""At most so many kinds of mistakes are reported."""


@rule(
    "shapes/messages",
    "must",
    case="every message that was heard",
    at="basic#messages",
    cause="A field is left out, is null instead of absent, or has the shape of another revision.",
)
def shapes_messages(logs: Sequence[MessageLog]) -> JudgedItems:
    """Every message of the server has the fields that its type requires, each of the type that the revision says."""
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
