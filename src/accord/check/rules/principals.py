"""Two principals: what one has, the other neither sees, nor uses, nor ends (`--token A --token B`)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from accord.check.engine.ordinary_traffic import call_tools
from accord.check.engine.rule import HTTP, NotApplicable, NotObserved, rule
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import LoggedResponse
from accord.check.probes.probe import Probe
from accord.check.probes.raw_http import FIRST_ERROR_STATUS, describe_response, error_of, harmless_request
from accord.check.wires.http import SESSION, HTTPWire
from accord.wire.sse import ServerSentEvent

PLACES: tuple[str, ...] = (
    "basic/authorization#access-token-privilege-restriction",
    "basic/authorization/security-considerations#access-token-privilege-restriction",
)
"""The sections about what belongs to a principal."""
_SYMPTOM = "principals/session"
"""What rules about the use of a session share: a server that checks its principal nowhere has one fault."""
_TRIES = 4
"""A server may take a moment to see that a stream has ended."""
_CONFLICT = 409
_UNKNOWN = "accord-check-never-given-0123456789"
"""A session id that no server has assigned."""
_CAUSE = "The server looks a session up by its id alone: whoever learns it from a log or a proxy acts as its owner."

_rule = partial(rule, kind="own", at=PLACES, since="2025-03-26", until="2026-07-28", over=HTTP, principals=2)


@asynccontextmanager
async def other_principal(probe: Probe) -> AsyncIterator[Probe]:
    """Open a session of the second principal."""
    other = await probe.open_as_other()
    try:
        yield other
    finally:
        await other.close()


def _session(probe: Probe) -> str:
    """Return the session id of a probe. Raises `NotApplicable` without one."""
    wire = _wire(probe)
    if wire.session_id is None:
        raise NotApplicable("the server assigns no session ids")
    return wire.session_id


def _wire(probe: Probe) -> HTTPWire:
    assert probe.http is not None, "the rules are for HTTP"
    return probe.http


def _version(probe: Probe) -> dict[str, str | None]:
    return {"MCP-Protocol-Version": probe.revision}


@_rule(
    "principals/session",
    "must",
    case="a request of another principal in the session",
    cause=_CAUSE,
)
async def principals_session(probe: Probe) -> None:
    """Another principal cannot use a session."""
    session = _session(probe)
    async with other_principal(probe) as other:
        response = await other.post(harmless_request(other), {SESSION: session})
        _require_refusal(probe, response, "a request of another principal in the session")


def _require_refusal(probe: Probe, response: LoggedResponse, what: str) -> None:
    if not response.status:
        raise NotObserved(f"{what} got no response: {response.error}")
    if response.status < FIRST_ERROR_STATUS:
        raise probe.violation(f"{what} returned {describe_response(response)}", symptom=_SYMPTOM)


@_rule(
    "principals/session-hidden",
    "should",
    case="a request of another principal in the session, and one in an unknown session",
    cause="Status 403 confirms to a stranger that the session exists.",
)
async def principals_session_hidden(probe: Probe) -> None:
    """For another principal, a session is like one that does not exist: the same status and the same error."""
    session = _session(probe)
    async with other_principal(probe) as other:
        response = await other.post(harmless_request(other), {SESSION: session})
        unknown = await other.post(harmless_request(other), {SESSION: _UNKNOWN})
    if response.status >= FIRST_ERROR_STATUS and _refusal(response, session) != _refusal(unknown, _UNKNOWN):
        raise probe.violation(
            f"the session of another principal returned {describe_response(response)}, and an unknown one "
            f"{describe_response(unknown)}"
        )


def _refusal(response: LoggedResponse, session: str) -> str:
    """Return what a refusal says, without the session id that it names."""
    error = error_of(response)
    return f"{response.status} {error.get('code')} {error.get('message')}".replace(session, "")


@_rule(
    "principals/session-end",
    "must",
    case="DELETE by another principal",
    cause=_CAUSE,
)
async def principals_session_end(probe: Probe) -> None:
    """Another principal cannot end a session."""
    session = _session(probe)
    async with other_principal(probe) as other:
        headers = {"Content-Type": None, SESSION: session, **_version(probe)}
        response = await _wire(other).fetch("DELETE", None, headers)
        if response.status and response.status < FIRST_ERROR_STATUS:
            _wire(probe).session_id = session
            text = f"DELETE by another principal returned {describe_response(response)}"
            raise probe.violation(text, symptom=_SYMPTOM)
    answer = await probe.request(probe.harmless_method)
    if answer.error is not None:
        raise probe.violation(f"after a DELETE by another principal, the session is gone: {preview_json(answer.error)}")


@_rule(
    "principals/event-stream",
    "must",
    case="GET by another principal in the session",
    cause=_CAUSE,
)
async def principals_event_stream(probe: Probe) -> None:
    """Another principal cannot open an event stream of a session."""
    session = _session(probe)
    _close_own_streams(probe)
    async with other_principal(probe) as other:
        headers = {"Accept": "text/event-stream", "Content-Type": None, SESSION: session, **_version(probe)}
        for _ in range(_TRIES):
            response = await _wire(other).fetch_start("GET", None, headers)
            if response.status != _CONFLICT:
                break
            await probe.fence()
        if response.status and response.status < FIRST_ERROR_STATUS:
            raise probe.violation(f"GET by another principal returned {describe_response(response)}", symptom=_SYMPTOM)


def _close_own_streams(probe: Probe) -> None:
    """Close the streams of the session: a server may refuse a second one, whoever opens it."""
    for response in probe.log.responses:
        if response.method == "GET" and not response.is_closed:
            _wire(probe).close_stream(response.stream)


@_rule(
    "principals/replay",
    "must",
    case="Last-Event-ID of another principal, in both sessions",
    needs="tools",
    calls=True,
    cause="Events are stored by their ids alone: whoever names an id gets what came after it.",
)
async def principals_replay(probe: Probe) -> None:
    """Another principal cannot resume a stream."""
    session = _session(probe)
    last = await _event_id(probe)
    async with other_principal(probe) as other:
        own = _wire(other).session_id
        for named in (session, own):
            headers = {"Accept": "text/event-stream", "Content-Type": None, "Last-Event-ID": last, SESSION: named}
            stream = _wire(other).open_stream({**headers, **_version(probe)})
            await stream.answered.wait()
            await _events_of(other, stream)
            if _has_messages(stream):
                raise probe.violation("another principal got the events of the session with its Last-Event-ID")


async def _event_id(probe: Probe) -> str:
    """Return the id of the first event of a response with several. Raises `NotObserved` if events have none."""
    await call_tools(probe)
    for response in probe.log.responses:
        ids = [each.id for each in response.events if isinstance(each, ServerSentEvent) and each.id]
        if len(ids) > 1:
            return ids[0]
    raise NotObserved("no response has several events with ids")


async def _events_of(other: Probe, stream: LoggedResponse) -> None:
    """Wait for the stored events of a stream: what it has by the response to another request."""
    if stream.status == 200:
        await other.request(other.harmless_method)
    _wire(other).close_stream(stream.stream)


def _has_messages(stream: LoggedResponse) -> bool:
    return any(isinstance(each, ServerSentEvent) and each.data and each.event == "message" for each in stream.events)
