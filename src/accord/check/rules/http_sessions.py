"""Streamable HTTP: session ids, and the end of a session."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.engine.rule import HTTP, JudgedItems, NotApplicable, NotObserved, Violation, rule
from accord.check.probes.message_log import MessageLog
from accord.check.probes.probe import Probe
from accord.check.probes.raw_http import (
    FIRST_ERROR_STATUS,
    describe_response,
    harmless_request,
    has_result,
    http_evidence,
    require_refusal,
)
from accord.check.wires.http import SESSION, HTTPWire
from accord.messages.base import JSONObject

PLACE = "basic/transports#session-management"
_SHORTEST = 16
"""Minimum number of characters of an id with 96 random bits."""
_OPENED = 4
_CALLED = 5
"""Number of tools that are called."""


@rule(
    "http/session-id",
    "must",
    case="all session ids",
    at=PLACE,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="The id contains spaces or other characters: use a UUID, or random bytes in hexadecimal.",
)
def http_session_id(logs: Sequence[MessageLog]) -> JudgedItems:
    """A session id has only visible ASCII characters."""
    for log in logs:
        for response in log.responses:
            id = response.headers.get(SESSION)
            if id is not None:
                yield
                if not id or not all("!" <= character <= "~" for character in id):
                    raise Violation(f"the session id is {id!r}", evidence=http_evidence(response))


@rule(
    "http/session-unguessable",
    "should",
    case="several sessions in sequence",
    kind="own",
    at=PLACE,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="The id is a counter, a timestamp or an address: use secrets.token_hex or a random UUID.",
)
async def http_session_unguessable(probe: Probe) -> None:
    """Session ids are unique and cannot be guessed."""
    ids = [_session(probe)]
    for _ in range(_OPENED - 1):
        other = await probe.open_another()
        ids.append(_session(other))
        await other.close()
    if len(set(ids)) < len(ids):
        raise Violation(f"{len(ids)} sessions have only {len(set(ids))} ids")
    if min(map(len, ids)) < _SHORTEST:
        raise Violation(f"a session id has {min(map(len, ids))} characters, and can be guessed")
    if _is_counter(ids):
        raise Violation("the ids of subsequent sessions differ only in their last digits")


@rule(
    "http/session-required",
    "should",
    case="a request without a session id",
    at=PLACE,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="A request without a session id creates a session, or is answered without one.",
)
async def http_session_required(probe: Probe) -> None:
    """A server that assigns session ids answers a request without one with status 400."""
    _session(probe)
    response = await probe.post(harmless_request(probe), {SESSION: None})
    require_refusal(probe, response, "a request without its session id", status=400)


@rule(
    "http/session-ended",
    "must",
    case="a session that was ended by DELETE",
    kind="own",
    at=PLACE,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="An unknown id returns 400 or 500, or creates a session: the client does not learn that it "
    "must initialize again.",
)
async def http_session_ended(probe: Probe) -> None:
    """After the end of a session, requests with its id get status 404."""
    _session(probe)
    wire = _wire(probe)
    response = await wire.fetch("DELETE", None, {"Content-Type": None, **_version(probe)})
    if response.status in (404, 405, 501):
        raise NotApplicable(f"clients cannot end a session (DELETE: {describe_response(response)})")
    if response.status >= FIRST_ERROR_STATUS:
        raise Violation(f"DELETE returned {describe_response(response)}", evidence=http_evidence(response))
    require_refusal(
        probe, await probe.post(harmless_request(probe)), "a request in a session that has ended", status=404
    )
    wire.session_id = None


@rule(
    "http/session-ends-alone",
    "must",
    case="DELETE while tools run",
    kind="own",
    needs="tools",
    calls=True,
    at=PLACE,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="The result of a call is written to an ended session, and the exception affects other sessions.",
)
async def http_session_ends_alone(probe: Probe) -> None:
    """The end of a session does not affect other sessions, also while its calls run."""
    _session(probe)
    other = await probe.open_another()
    calls = await _calls(probe)
    for call in calls:
        probe.begin("tools/call", call)
    await probe.fence()
    wire = _wire(probe)
    await wire.fetch("DELETE", None, {"Content-Type": None, **_version(probe)})
    wire.session_id = None
    for call in calls:  # which take as long as those that were left
        await other.request("tools/call", call)
    await other.result(other.harmless_method)
    await other.close()


@rule(
    "http/session-unknown",
    "should",
    case="an unknown session id",
    at=PLACE,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="After a restart or an idle timeout, the server no longer knows ids that clients use. Only "
    "404 tells them to initialize again.",
)
async def http_session_unknown(probe: Probe) -> None:
    """A request with an unknown session id gets status 404."""
    _session(probe)
    response = await probe.post(harmless_request(probe), {SESSION: "accord-check-never-given-0123456789"})
    require_refusal(probe, response, "a request with an unknown session id", status=404, symptom=http_session_ended.id)


@rule(
    "http/sessions-apart",
    "must",
    case="two concurrent sessions with the same request ids",
    kind="own",
    at=("basic#requests", PLACE),
    since="2025-03-26",
    over=HTTP,
    cause="Responses are matched by JSON-RPC id alone: two clients with the same ids get each other's.",
)
async def http_sessions_apart(probe: Probe) -> None:
    """Sessions may use the same request ids: each gets its own responses."""
    other = await probe.open_another()
    try:
        method = probe.harmless_method
        pairs = [(each, each.begin(method, id=f"same-{number}")) for number in range(8) for each in (probe, other)]
        for each, pending in pairs:
            answer = await pending.wait()
            if answer.error is not None:
                raise each.violation(f"{method} fails if two sessions use the same ids: {answer.error}")
    finally:
        await other.close()


@http_sessions_apart.case(
    "tool calls in two concurrent sessions with the same request ids", kind="own", needs="tools", calls=True
)
async def http_sessions_apart_tools(probe: Probe) -> None:
    other = await probe.open_another()
    calls = await _calls(probe)
    waiting = [
        each.begin("tools/call", call, id=f"same-call-{number}")
        for number, call in enumerate(calls)
        for each in (probe, other)
    ]
    for pending in waiting:
        await pending.wait()
    await other.close()


@rule(
    "http/session-ignored",
    "should",
    case="a request with an unknown session id",
    at="basic/transports/streamable-http#earlier-streamable-http-revisions",
    since="2026-07-28",
    over=HTTP,
    cause="Sessions of earlier revisions are looked up before the revision of the request is read.",
)
async def http_session_ignored(probe: Probe) -> None:
    """The server ignores session ids, and assigns none."""
    response = await probe.post(harmless_request(probe), {SESSION: "accord-check-never-given-0123456789"})
    if not has_result(response):
        raise Violation(
            f"a request with a session id returned {describe_response(response)}",
            evidence=http_evidence(response),
        )
    if SESSION in response.headers:
        raise Violation("the server assigned a session id", evidence=http_evidence(response))


async def _calls(probe: Probe) -> list[JSONObject]:
    """Return the params of tool calls."""
    return [{"name": tool.get("name"), "arguments": {}} for tool in (await probe.callable_tools())[:_CALLED]]


def _session(probe: Probe) -> str:
    wire = _wire(probe)
    if wire.session_id is None:
        raise NotApplicable("the server has no sessions")
    return wire.session_id


def _wire(probe: Probe) -> HTTPWire:
    if probe.http is None:
        raise NotObserved("the transport is not HTTP")
    return probe.http


def _version(probe: Probe) -> dict[str, str | None]:
    return {"MCP-Protocol-Version": probe.revision}


def _is_counter(ids: Sequence[str]) -> bool:
    """Return whether ids differ only in their last two characters, so that they are counters."""
    return len({(len(id), id[:-2]) for id in ids}) == 1
