"""Pings: an empty result, promptly, at any time of a session."""

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
    case="a ping without params, with empty params, and with _meta",
    at=BEHAVIOUR,
    until=UNTIL,
    cause="There is no handler for ping, or its result is not empty: the result is an empty object.",
)
async def ping_answered(probe: Probe) -> None:
    """A ping returns an empty result."""
    forms: tuple[Any, ...] = (UNSET, {}, {"_meta": {}}, {"_meta": {"progressToken": "accord-check"}})
    for params in forms:
        message = {"jsonrpc": "2.0", "id": probe.next_id(), "method": "ping"}
        if params is not UNSET:
            message["params"] = params
        _require_empty_result(probe, await probe.send(message, misbehaved=False).wait())


def _require_empty_result(probe: Probe, answer: Answer) -> None:
    if not isinstance(answer.result, dict) or answer.result.keys() - {"_meta"}:
        raise probe.violation(f"a ping returned {preview_json(answer.error or answer.result)}")


_SOON = 2.0
"""Seconds that are more than an idle server needs."""


@rule(
    "ping/prompt",
    "must",
    case="three pings in sequence to an idle server",
    at=BEHAVIOUR,
    until=UNTIL,
    cause="Pings wait behind long requests, or the thread that reads also runs the handlers.",
)
async def ping_prompt(probe: Probe) -> None:
    """The server answers a ping promptly."""
    for _ in range(3):
        answer = await probe.request("ping")
        if answer.seconds > _SOON:
            raise probe.violation(f"the response took {answer.seconds:.1f} s")


@rule(
    "ping/while-busy",
    "should",
    case="a ping during a long call",
    kind="own",
    needs="tools",
    calls=True,
    applies=require_slow_tool,
    at=BEHAVIOUR,
    until=UNTIL,
    cause="Requests are processed in sequence: the call blocks the connection.",
)
async def ping_while_busy(probe: Probe) -> None:
    """The server answers a ping while a call runs."""
    call = await start_slow_call(probe)
    answer = await probe.request("ping")
    if call.is_done and answer.error is None:
        raise probe.violation("the server answered the ping after the end of the call", since=call.since)


@rule(
    "ping/before-initialized",
    "should",
    case="a ping between the result of initialize and notifications/initialized",
    kind="raw",
    at=("basic/lifecycle#initialization", BEHAVIOUR),
    until=UNTIL,
    cause="The server refuses all requests until notifications/initialized: allow pings.",
)
async def ping_before_initialized(probe: Probe) -> None:
    """The server answers a ping before notifications/initialized."""
    await probe.request(
        "initialize", initialize_params(probe.revision, probe.client_capabilities), seconds=probe.settings.opening
    )
    answer = await probe.request("ping")
    if answer.error is not None:
        raise probe.violation(f"the server answered with {preview_json(answer.error)}", since=0)
