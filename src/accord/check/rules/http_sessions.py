"""Streamable HTTP: sessions, from their ids to their end."""

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
"""Characters of an id that could hold 96 random bits."""
_OPENED = 4
_CALLED = 5
"""Tools that are called."""


@rule(
    "http/session-id",
    "must",
    case="the ids that were given",
    at=PLACE,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="The id is made of text with spaces or other characters: use a UUID, or random bytes in hex.",
)
def http_session_id(logs: Sequence[MessageLog]) -> JudgedItems:
    """The id of a session has visible ASCII characters only."""
    for log in logs:
        for response in log.responses:
            id = response.headers.get(SESSION)
            if id is not None:
                yield
                if not id or not all("!" <= character <= "~" for character in id):
                    raise Violation(f"the id of a session is {id!r}", evidence=http_evidence(response))


@rule(
    "http/session-unguessable",
    "should",
    case="several sessions, one after the other",
    kind="own",
    at=PLACE,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="Ids are counted, or made from the time or an address: use secrets.token_hex or a random UUID.",
)
async def http_session_unguessable(probe: Probe) -> None:
    """The ids of sessions are unique and cannot be guessed."""
    ids = [_session(probe)]
    for _ in range(_OPENED - 1):
        other = await probe.open_another()
        ids.append(_session(other))
        await other.close()
    if len(set(ids)) < len(ids):
        raise Violation(f"{len(ids)} sessions have only {len(set(ids))} ids")
    if min(map(len, ids)) < _SHORTEST:
        raise Violation(f"an id has {min(map(len, ids))} characters: it can be guessed")
    if _is_counter(ids):
        raise Violation("the ids of sessions that are opened one after the other differ in their last digits only")


@rule(
    "http/session-required",
    "should",
    case="a request without an id",
    at=PLACE,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="A request without a session opens a new one unasked, or is served without any.",
)
async def http_session_required(probe: Probe) -> None:
    """A server that gives ids refuses, with status 400, a request without one."""
    _session(probe)
    response = await probe.post(harmless_request(probe), {SESSION: None})
    require_refusal(probe, response, "a request without the id of its session", status=400)


@rule(
    "http/session-ended",
    "must",
    case="a session that was ended by DELETE",
    kind="own",
    at=PLACE,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="An unknown id is answered with 400 or 500, or a new session is made for it: then clients cannot know that "
    "they have to begin anew.",
)
async def http_session_ended(probe: Probe) -> None:
    """Once a session has ended, requests with its id get status 404."""
    _session(probe)
    wire = _wire(probe)
    response = await wire.fetch("DELETE", None, {"Content-Type": None, **_version(probe)})
    if response.status in (404, 405, 501):
        raise NotApplicable(f"clients cannot end a session (DELETE: {describe_response(response)})")
    if response.status >= FIRST_ERROR_STATUS:
        raise Violation(f"DELETE is answered with {describe_response(response)}", evidence=http_evidence(response))
    require_refusal(
        probe, await probe.post(harmless_request(probe)), "a request in a session that has ended", status=404
    )
    wire.session_id = None


@rule(
    "http/session-ends-alone",
    "must",
    case="DELETE while tools are at work",
    kind="own",
    needs="tools",
    calls=True,
    at=PLACE,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="The answer to a call is written to a session that is gone, and the exception ends more than that session.",
)
async def http_session_ends_alone(probe: Probe) -> None:
    """The end of one session leaves others as they are, also while its calls are under way."""
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
    case="an id that was not given to anybody",
    at=PLACE,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="A server that was restarted, or that drops idle sessions, has forgotten ids that clients still use. Only by "
    "404 they learn that they have to begin anew.",
)
async def http_session_unknown(probe: Probe) -> None:
    """The id of a session that the server does not know is refused with status 404."""
    _session(probe)
    response = await probe.post(harmless_request(probe), {SESSION: "accord-check-never-given-0123456789"})
    require_refusal(
        probe, response, "a request with an id that was never given", status=404, symptom=http_session_ended.id
    )


@rule(
    "http/sessions-apart",
    "must",
    case="two conversations with the same ids at once",
    kind="own",
    at=("basic#requests", PLACE),
    since="2025-03-26",
    over=HTTP,
    cause="Answers are matched by the JSON-RPC id alone: two clients with the same ids get each other's.",
)
async def http_sessions_apart(probe: Probe) -> None:
    """What one session asks is answered there, though another uses the same request ids."""
    other = await probe.open_another()
    try:
        method = probe.harmless_method
        pairs = [(each, each.begin(method, id=f"same-{number}")) for number in range(8) for each in (probe, other)]
        for each, pending in pairs:
            answer = await pending.wait()
            if answer.error is not None:
                raise each.violation(f"{method} fails when two conversations use the same ids: {answer.error}")
    finally:
        await other.close()


@http_sessions_apart.case(
    "tools called in two conversations with the same ids at once", kind="own", needs="tools", calls=True
)
async def http_sessions_apart_tools_called_conversations_same(probe: Probe) -> None:
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
    case="a request with an id that was not given to anybody",
    at="basic/transports/streamable-http#earlier-streamable-http-revisions",
    since="2026-07-28",
    over=HTTP,
    cause="Sessions of earlier revisions are looked up before the revision of the request is.",
)
async def http_session_ignored(probe: Probe) -> None:
    """Session ids are ignored, and none is issued."""
    response = await probe.post(harmless_request(probe), {SESSION: "accord-check-never-given-0123456789"})
    if not has_result(response):
        raise Violation(
            f"a request with the id of a session is answered with {describe_response(response)}",
            evidence=http_evidence(response),
        )
    if SESSION in response.headers:
        raise Violation("the id of a session is given", evidence=http_evidence(response))


async def _calls(probe: Probe) -> list[JSONObject]:
    """Return the params of calls of tools."""
    return [{"name": tool.get("name"), "arguments": {}} for tool in (await probe.callable_tools())[:_CALLED]]


def _session(probe: Probe) -> str:
    wire = _wire(probe)
    if wire.session_id is None:
        raise NotApplicable("the server has no sessions")
    return wire.session_id


def _wire(probe: Probe) -> HTTPWire:
    if probe.http is None:
        raise NotObserved("it is not over HTTP")
    return probe.http


def _version(probe: Probe) -> dict[str, str | None]:
    return {"MCP-Protocol-Version": probe.revision}


def _is_counter(ids: Sequence[str]) -> bool:
    """Whether ids differ in at most two characters at their end: they are counted."""
    return len({(len(id), id[:-2]) for id in ids}) == 1
