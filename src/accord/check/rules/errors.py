"""Errors: the server refuses an invalid request, and never answers a notification."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from accord.check.engine.rule import JudgedItems, NotObserved, Violation, rule
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import LogEntry, MessageLog, id_key, is_response
from accord.check.probes.message_reader import ObservedMessage, received_messages, was_refused_by_http
from accord.check.probes.pending_answer import Answer
from accord.check.probes.probe import Probe
from accord.errors import METHOD_NOT_FOUND, PARSE_ERROR
from accord.messages.base import JSONObject
from accord.wire.transcript import SENT

PATIENCE = 1.0
"""Seconds to wait for a response that need not come."""


STRANGE = ("tools/nobody", "nobody", "rpc.nobody", "", "__class__", "toString", "constructor")
"""Unknown methods; some are attributes of all objects in some languages."""


@rule(
    "errors/unknown-method",
    "must",
    case="an unknown name, and names that objects have in some languages",
    at=("basic/index#messages", "basic/messages"),
    cause="A request without a handler returns an empty result, or gets no response.",
)
async def errors_unknown_method(probe: Probe) -> None:
    """A request with an unknown method returns an error."""
    for name in (probe.unknown_name, *STRANGE):
        answer = await probe.request(name)
        if answer.error is None:
            raise probe.violation(f"{name!r} returned {preview_json(answer.result)}")


@rule(
    "errors/method-not-found",
    "should",
    case="an unknown method",
    at=("basic/index#messages", "basic/messages"),
    cause="The message is validated as one of the known requests first, so that an unknown method "
    "looks like invalid params.",
)
async def errors_method_not_found(probe: Probe) -> None:
    """An unknown method returns error -32601."""
    _require_method_not_found(probe, await probe.request(f"{probe.unknown_name}/list"))


@errors_method_not_found.case("the methods of the handshake", since="2026-07-28")
async def errors_method_not_found_handshake(probe: Probe) -> None:
    for gone, params in (("ping", {}), ("logging/setLevel", {"level": "info"})):
        _require_method_not_found(probe, await probe.request(gone, params))


def _require_method_not_found(probe: Probe, answer: Answer) -> None:
    if answer.code == 0:
        raise NotObserved(f"HTTP refused the request without a JSON-RPC error: {preview_json(answer.error)}")
    probe.require_error(answer, METHOD_NOT_FOUND)


def _invalid(probe: Probe) -> dict[str, JSONObject]:
    """Requests with one field of a wrong type each, by their description."""
    method = probe.harmless_method
    return {
        "without jsonrpc": {"method": method, "id": "accord-check-1"},
        "of JSON-RPC 1.0": {"jsonrpc": "1.0", "method": method, "id": "accord-check-2"},
        "whose method is a number": {"jsonrpc": "2.0", "method": 7, "id": "accord-check-3"},
        "whose method is null": {"jsonrpc": "2.0", "method": None, "id": "accord-check-4"},
        "whose params are a string": {"jsonrpc": "2.0", "method": method, "params": "nobody", "id": "accord-check-5"},
        "whose params are a number": {"jsonrpc": "2.0", "method": method, "params": 7, "id": "accord-check-6"},
    }


@rule(
    "errors/invalid-request",
    "should",
    case="jsonrpc, method and params of wrong types",
    kind="own",
    shares=True,
    at=("basic/index#messages", "basic/messages"),
    cause="An invalid message is logged and dropped: its sender waits forever.",
)
async def errors_invalid_request(probe: Probe) -> None:
    """An invalid request with an id returns an error."""
    invalid = _invalid(probe)
    probe.send(b'{"jsonrpc":"2.0","id":')  # what comes of it is read by other rules
    waiting = {what: probe.send(message) for what, message in invalid.items()}
    entry = await probe.fence()
    await asyncio.wait([pending.future for pending in waiting.values()], timeout=PATIENCE)
    nameless = sum(1 for each in entry if is_response(each) and each.get("id") is None)
    silent = [what for what, pending in waiting.items() if not pending.is_done]
    if len(silent) > nameless:
        raise probe.violation(f"no response to a request {', nor to one '.join(silent)}", since=0)
    served = [what for what, pending in waiting.items() if pending.is_done and _has_result(pending.future)]
    if served:
        raise probe.violation(f"a result for a request {', and for one '.join(served)}", since=0)


def _has_result(future: asyncio.Future[Answer]) -> bool:
    return future.exception() is None and future.result().error is None


@rule(
    "errors/parse-error",
    "may",
    case="sessions in which invalid JSON was sent",
    at=("basic/index#error-codes", "basic/index#messages", "basic/messages"),
    cause="Bytes that cannot be decoded are dropped without an error.",
)
def errors_parse_error(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server answers invalid JSON with error -32700."""
    for log in logs:
        bad = [entry for entry in log.entries if entry.direction == SENT and entry.message is None]
        errors = [each.message.get("error") for each in received_messages([log])]
        if bad:
            yield
        if bad and not any(isinstance(error, dict) and error.get("code") == PARSE_ERROR for error in errors):
            entry = log.evidence(about=bad)
            raise Violation(
                "the server did not report the invalid JSON", evidence=entry, during=[each.case for each in bad]
            )


@rule(
    "errors/unreadable-id",
    "must",
    case="all responses to invalid JSON, or with an HTTP error status",
    at="basic/index#error-responses",
    since="2025-11-25",
    cause="The id is a placeholder, since earlier revisions require an id.",
)
def errors_unreadable_id(logs: Sequence[MessageLog]) -> JudgedItems:
    """The error for a message without a readable id has no id, or null."""
    for log in logs:
        ours = {id_key(message["id"]) for message in log.sent_messages() if "id" in message}
        unreadable = [entry for entry in log.entries if entry.direction == SENT and entry.message is None]
        for each in received_messages([log]):
            if is_response(each.message) and (was_refused_by_http(each) or _may_answer(each, unreadable)):
                yield
                id = each.message.get("id")
                if id is not None and id_key(id) not in ours and not _is_rounded(id):
                    raise each.violation(f"the error has the id {preview_json(id)}")


def _is_rounded(id: Any) -> bool:
    """Return whether a number loses precision in many languages."""
    return isinstance(id, int | float) and abs(id) >= 2**53


def _may_answer(response: ObservedMessage, unreadable: Sequence[LogEntry]) -> bool:
    """Return whether one of the messages without a readable id was sent before, over HTTP on the same stream."""
    log = response.log
    fitting = [entry for entry in unreadable if log.transport != "http" or entry.stream == response.entry.stream]
    return bool(fitting) and log.entries.index(fitting[0]) < log.entries.index(response.entry)


NOTIFICATIONS: tuple[JSONObject, ...] = (
    {"jsonrpc": "2.0", "method": "notifications/accord-check-nobody"},
    {"jsonrpc": "2.0", "method": "notifications/accord-check-nobody", "params": {"any": [1, None]}},
    {"jsonrpc": "2.0", "method": "accord-check-nobody"},
    {"jsonrpc": "2.0", "method": "tools/list"},
    {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "nobody", "progress": 1}},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "accord-check-nobody"}},
)


@rule(
    "errors/notification-answered",
    "must",
    case="unknown notifications, and a request without its id",
    at=("basic/index#notifications", "basic/messages#notifications"),
    cause="A message without a handler is answered with an error: check first whether it has an id.",
)
async def errors_notification_answered(probe: Probe) -> None:
    """The server never answers a notification, whether it is known, unknown or invalid."""
    for message in NOTIFICATIONS:
        since = len(probe.log.entries)
        probe.send(message)
        for each in await probe.fence():
            if is_response(each) and _answers_notification(probe, each):
                raise probe.violation(f"the server answered {message['method']}, which had no id", since=since)


def _answers_notification(probe: Probe, answer: JSONObject) -> bool:
    """Return whether a response has no id and is not the body of an HTTP refusal."""
    return answer.get("id") is None and ("result" in answer or probe.http is None)
