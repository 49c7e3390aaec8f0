"""Pings: an empty answer, at once, at any time of a session."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from accord.check.engine.rule import rule
from accord.check.probes.client_messages import initialize_params
from accord.check.probes.content import preview_json
from accord.check.probes.pending_answer import Answer
from accord.check.probes.probe import Probe
from accord.check.probes.slow_calls import require_slow_tool, start_slow_call

BEHAVIOUR = "basic/utilities/ping#behavior-requirements"
UNTIL = "2026-07-28"


@rule(
    "ping/answered",
    "must",
    case="without params, with empty ones, with _meta",
    at=BEHAVIOUR,
    until=UNTIL,
    cause="There is no handler for ping, or it answers with a word: the result is an empty object.",
)
async def ping_answered(probe: Probe) -> None:
    """A ping is answered with an empty result."""
    forms: tuple[Any, ...] = (UNSET, {}, {"_meta": {}}, {"_meta": {"progressToken": "accord-check"}})
    for params in forms:
        message = {"jsonrpc": "2.0", "id": probe.next_id(), "method": "ping"}
        if params is not UNSET:
            message["params"] = params
        _require_empty_result(probe, await probe.send(message, misbehaved=False).wait())


def _require_empty_result(probe: Probe, answer: Answer) -> None:
    if not isinstance(answer.result, dict) or answer.result.keys() - {"_meta"}:
        raise probe.violation(f"a ping is answered with {preview_json(answer.error or answer.result)}")


_SOON = 2.0
"""In seconds: longer than a server at rest needs."""


@rule(
    "ping/prompt",
    "must",
    case="three in a row, at rest",
    at=BEHAVIOUR,
    until=UNTIL,
    cause="Pings wait in the queue of the requests that take long, or the thread that reads is the one that works.",
)
async def ping_prompt(probe: Probe) -> None:
    """A ping is answered promptly."""
    for _ in range(3):
        answer = await probe.request("ping")
        if answer.seconds > _SOON:
            raise probe.violation(f"the answer took {answer.seconds:.1f} s")


@rule(
    "ping/while-busy",
    "should",
    case="a ping in the middle of a long call",
    kind="own",
    needs="tools",
    calls=True,
    applies=require_slow_tool,
    at=BEHAVIOUR,
    until=UNTIL,
    cause="One message is served after the other: the call keeps the connection busy.",
)
async def ping_while_busy(probe: Probe) -> None:
    """A ping is answered while a call is at work."""
    call = await start_slow_call(probe)
    answer = await probe.request("ping")
    if call.is_done and answer.error is None:
        raise probe.violation("the ping was answered after the call was done", since=call.since)


@rule(
    "ping/before-initialized",
    "should",
    case="a ping between the answer to initialize and the notification",
    kind="raw",
    at=("basic/lifecycle#initialization", BEHAVIOUR),
    until=UNTIL,
    cause="Everything is refused until notifications/initialized comes: let pings through.",
)
async def ping_before_initialized(probe: Probe) -> None:
    """A ping is answered before the client has said that it is ready."""
    await probe.request(
        "initialize", initialize_params(probe.revision, probe.client_capabilities), seconds=probe.settings.opening
    )
    answer = await probe.request("ping")
    if answer.error is not None:
        raise probe.violation(f"it is answered with {preview_json(answer.error)}", since=0)
