"""HTTP+SSE (2024-11-05): one stream for messages from the server, one endpoint for messages from the client."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from urllib.parse import urljoin, urlsplit

from accord.check.engine.rule import SSE, JudgedItems, NotObserved, Violation, rule
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import MessageLog, is_json
from accord.check.probes.probe import Probe
from accord.check.probes.raw_http import FIRST_ERROR_STATUS, describe_response, http_evidence
from accord.check.wires.http import SSEWire
from accord.wire.sse import ServerSentEvent

_PLACE = "basic/transports#http-with-sse"


_rule = partial(rule, until="2025-03-26", over=SSE)


@_rule(
    "sse/endpoint",
    "must",
    case="the first event of each stream",
    at=_PLACE,
    cause="The first event is a message, or a comment is sent as an event.",
)
def sse_endpoint(logs: Sequence[MessageLog]) -> JudgedItems:
    """The stream begins with an event `endpoint`, whose data is the URI for POST requests."""
    for log in logs:
        for response in log.responses:
            events = [event for event in response.events if isinstance(event, ServerSentEvent)]
            if response.method == "GET" and events:
                yield
                if events[0].event != "endpoint" or not events[0].data.strip():
                    raise Violation(
                        f"a stream begins with the event {events[0].event!r}", evidence=http_evidence(response)
                    )


@_rule(
    "sse/events",
    "must",
    case="the events of all streams",
    at=_PLACE,
    cause="Events have other names, or their data is not JSON.",
)
def sse_events(logs: Sequence[MessageLog]) -> JudgedItems:
    """Messages are events with the name `message`, and JSON in their data."""
    for log in logs:
        for response in log.responses:
            for event in response.events:
                if isinstance(event, ServerSentEvent) and event.event != "endpoint" and event.data:
                    yield
                    if event.event != "message":
                        raise Violation(f"an event has the name {event.event!r}", evidence=http_evidence(response))
                    if event.event == "message" and not is_json(event.data):
                        raise Violation("the data of an event is not JSON", evidence=http_evidence(response))


@_rule(
    "sse/same-origin",
    "should",
    case="the endpoint",
    at=_PLACE,
    cause="The URI is built from an address inside the server's network: send only the path.",
)
async def sse_same_origin(probe: Probe) -> None:
    """The URI for POST requests has the origin of the stream."""
    wire = _wire(probe)
    there, here = urlsplit(urljoin(wire.stream_url, wire.endpoint)), urlsplit(wire.stream_url)
    if (there.scheme, there.netloc) != (here.scheme, here.netloc):
        raise probe.violation(f"the endpoint is {preview_json(wire.endpoint)}, but the stream is on {here.netloc}")


@_rule(
    "sse/posted",
    "must",
    case="a request",
    at=_PLACE,
    cause="The response is written to the POST response only.",
)
async def sse_posted(probe: Probe) -> None:
    """The server accepts a posted message, and answers on the stream."""
    pending = probe.begin("ping")
    answer = await pending.wait()
    response = probe.log.responses[pending.stream - 1]
    await probe.wait_for_response_end(pending.stream)
    if response.status >= FIRST_ERROR_STATUS:
        raise Violation(f"a POST returned {describe_response(response)}", evidence=http_evidence(response))
    if not any(message == answer.message for message in _stream(probe)):
        raise Violation("no response on the stream", evidence=http_evidence(response))


@_rule(
    "sse/apart",
    "must",
    case="two concurrent sessions with the same ids",
    kind="own",
    at=_PLACE,
    cause="All connections share one transport: create one for each.",
)
async def sse_apart(probe: Probe) -> None:
    """Each connection has its own endpoint, and receives only its own responses."""
    other = await probe.open_another()
    try:
        if _wire(other).url == _wire(probe).url:
            raise probe.violation("two connections have the same endpoint")
        pending = [each.begin("ping", id=f"same-{number}") for number in range(8) for each in (probe, other)]
        for each in pending:
            await each.wait()
    finally:
        await other.close()


@_rule(
    "sse/bad-body",
    "should",
    case="a body that is not JSON",
    kind="own",
    at=_PLACE,
)
async def sse_bad_body(probe: Probe) -> None:
    """An invalid body gets an error status, or an error on the stream, and the session continues."""
    response = await probe.post(b"{no json")
    errors = [each for each in await probe.fence() if "error" in each] or [
        each for each in probe.log.received_messages() if "error" in each
    ]
    if response.status < FIRST_ERROR_STATUS and not errors:
        raise Violation(
            f"a body that is not JSON returned {describe_response(response)}", evidence=http_evidence(response)
        )
    await probe.request(probe.harmless_method)


def _stream(probe: Probe) -> Sequence[object]:
    stream = _wire(probe).stream
    return stream.messages if stream is not None else []


def _wire(probe: Probe) -> SSEWire:
    if not isinstance(probe.wire, SSEWire):
        raise NotObserved("the transport is not HTTP+SSE")
    return probe.wire
