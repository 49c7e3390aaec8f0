"""Batches: several messages in one array, which 2025-03-26 has, and no revision before or after it."""

from __future__ import annotations

from typing import Any

from accord.check.engine.rule import LINE_TRANSPORTS, CaseVariant, Violation, rule
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import LogEntry, message_objects
from accord.check.probes.message_reader import ObservedMessage, is_response, was_refused_by_http
from accord.check.probes.probe import Probe
from accord.messages.base import JSONObject
from accord.wire.transcript import RECEIVED

BATCHING = "basic/index#batching"
SINCE, UNTIL = "2025-03-26", "2025-06-18"


@rule(
    "batch/served",
    "must",
    case="one request alone, and two with a notification between them",
    at=BATCHING,
    since=SINCE,
    until=UNTIL,
    cause="Only single messages are understood. Whoever speaks 2025-03-26 must understand batches: refuse the "
    "revision, or take each item as a message of its own.",
)
async def batch_served(probe: Probe) -> None:
    """A batch is received, and each request in it is answered."""
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
    case="two notifications",
    at=(BATCHING, "basic/index#notifications"),
    since=SINCE,
    until=UNTIL,
    cause="An empty array is sent for the answers that are none.",
)
async def batch_notifications(probe: Probe) -> None:
    """A batch of nothing but notifications is not answered."""
    since = len(probe.log.entries)
    probe.send([_notification(), _notification()], misbehaved=False)
    await probe.fence()
    for entry in probe.log.entries[since:]:
        if entry.direction == RECEIVED and (entry.message == [] or _is_answered(probe, entry)):
            raise probe.violation(f"it is answered with {preview_json(entry.message)}", since=since)


def _is_answered(probe: Probe, entry: LogEntry) -> bool:
    """Whether the server sent a response without an id, which is not the body of an HTTP refusal."""
    return any(
        is_response(each)
        and each.get("id") is None
        and not was_refused_by_http(ObservedMessage(probe.log, entry, each))
        for each in message_objects(entry.message)
    )


@rule(
    "batch/invalid-items",
    "should",
    variants=[CaseVariant("a number beside a request", over=LINE_TRANSPORTS)],
    kind="own",
    at=BATCHING,
    since=SINCE,
    until=UNTIL,
    cause="The whole array is held against the type of a batch.",
)
async def batch_invalid_items(probe: Probe) -> None:
    """What is wrong with one item of a batch does not keep the others from being answered."""
    await _require_results(probe, [7, _request("accord-check-good")], misbehaved=True)


@rule(
    "batch/empty",
    "should",
    case="an array without items",
    kind="own",
    at=BATCHING,
    since=SINCE,
    until=UNTIL,
    cause="An array without items passes for a batch of notifications.",
)
async def batch_empty(probe: Probe) -> None:
    """An empty array is refused with an error."""
    since = len(probe.log.entries)
    entry = await probe.send_and_fence([])
    refused = probe.http is not None and any(response.status >= 400 for response in probe.log.responses)
    if not refused and not any("error" in each for each in entry):
        raise probe.violation("nothing says that it is wrong", since=since)


def _request(id: str) -> JSONObject:
    return {"jsonrpc": "2.0", "id": id, "method": "ping"}


def _notification() -> JSONObject:
    return {"jsonrpc": "2.0", "method": "notifications/accord-check-nobody"}
