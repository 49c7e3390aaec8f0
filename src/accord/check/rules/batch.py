"""Batches: several messages in one array, which only revision 2025-03-26 has."""

from __future__ import annotations

from typing import Any

from accord.check.engine.rule import LINE_TRANSPORTS, CaseVariant, Violation, rule
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import LogEntry, is_response, message_objects
from accord.check.probes.message_reader import ObservedMessage, was_refused_by_http
from accord.check.probes.probe import Probe
from accord.messages.base import JSONObject
from accord.wire.transcript import RECEIVED

BATCHING = "basic/index#batching"
SINCE, UNTIL = "2025-03-26", "2025-06-18"


@rule(
    "batch/served",
    "must",
    case="a batch of one request, and a batch of two requests and a notification",
    at=BATCHING,
    since=SINCE,
    until=UNTIL,
    cause="Only single messages are decoded. A server of 2025-03-26 must accept batches: refuse the "
    "revision, or process each item as a message.",
)
async def batch_served(probe: Probe) -> None:
    """The server answers each request in a batch."""
    await _require_results(probe, [_request("accord-check-only")])
    await _require_results(probe, [_request("accord-check-first"), _notification(), _request("accord-check-second")])


async def _require_results(probe: Probe, items: list[Any], *, misbehaved: bool = False) -> None:
    for pending in probe.send_batch(items, misbehaved=misbehaved):
        try:
            answer = await pending.wait()
        except Violation as exc:
            exc.cause = ""  # no request got lost: the array was not read
            raise
        if answer.error is not None:
            raise probe.violation(
                f"{preview_json(pending.id)} is answered with {preview_json(answer.error)}", since=pending.since
            )


@rule(
    "batch/notifications",
    "must",
    case="a batch of two notifications",
    at=(BATCHING, "basic/index#notifications"),
    since=SINCE,
    until=UNTIL,
    cause="The server sends an empty array because there are no responses.",
)
async def batch_notifications(probe: Probe) -> None:
    """The server does not answer a batch of notifications."""
    since = len(probe.log.entries)
    probe.send([_notification(), _notification()], misbehaved=False)
    await probe.fence()
    for entry in probe.log.entries[since:]:
        if entry.direction == RECEIVED and (entry.message == [] or _is_answered(probe, entry)):
            raise probe.violation(f"the server answered with {preview_json(entry.message)}", since=since)


def _is_answered(probe: Probe, entry: LogEntry) -> bool:
    """Return whether the server sent a response without an id that is not the body of an HTTP refusal."""
    return any(
        is_response(each)
        and each.get("id") is None
        and not was_refused_by_http(ObservedMessage(probe.log, entry, each))
        for each in message_objects(entry.message)
    )


@rule(
    "batch/invalid-items",
    "should",
    variants=[CaseVariant("a number and a request in one batch", over=LINE_TRANSPORTS)],
    kind="own",
    at=BATCHING,
    since=SINCE,
    until=UNTIL,
    cause="The whole array is validated at once, so that one invalid item rejects all.",
)
async def batch_invalid_items(probe: Probe) -> None:
    """An invalid item of a batch does not keep the server from answering the other items."""
    await _require_results(probe, [7, _request("accord-check-good")], misbehaved=True)


@rule(
    "batch/empty",
    "should",
    case="an empty array",
    kind="own",
    at=BATCHING,
    since=SINCE,
    until=UNTIL,
    cause="An array without items is taken for a batch of notifications.",
)
async def batch_empty(probe: Probe) -> None:
    """The server answers an empty array with an error."""
    since = len(probe.log.entries)
    entry = await probe.send_and_fence([])
    refused = probe.http is not None and any(response.status >= 400 for response in probe.log.responses)
    if not refused and not any("error" in each for each in entry):
        raise probe.violation("the server did not answer with an error", since=since)


def _request(id: str) -> JSONObject:
    return {"jsonrpc": "2.0", "id": id, "method": "ping"}


def _notification() -> JSONObject:
    return {"jsonrpc": "2.0", "method": "notifications/accord-check-nobody"}
