"""HTTP+SSE (2024-11-05): one stream for all that the server says, one endpoint for all that the client does."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urljoin, urlsplit

from accord.check.engine.rule import SSE, JudgedItems, NotObserved, Violation, rule
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import MessageLog, is_json
from accord.check.probes.probe import Probe
from accord.check.probes.raw_http import FIRST_ERROR_STATUS, describe_response, http_evidence
from accord.check.wires.http import SSEWire
from accord.wire.sse import ServerSentEvent

_PLACE = "basic/transports#http-with-sse"


@rule(
    "sse/endpoint",
    "must",
    case="the first event of each stream",
    at=_PLACE,
    until="2025-03-26",
    over=SSE,
    cause="The first event is a message, or a comment is sent as one.",
)
def sse_endpoint(logs: Sequence[MessageLog]) -> JudgedItems:
    """The stream begins with an event `endpoint`, whose data is the URI to post to."""
    for log in logs:
        for response in log.responses:
            events = [event for event in response.events if isinstance(event, ServerSentEvent)]
            if response.method == "GET" and events:
                yield
                if events[0].event != "endpoint" or not events[0].data.strip():
                    raise Violation(
                        f"a stream begins with the event {events[0].event!r}", evidence=http_evidence(response)
                    )


@rule(
    "sse/events",
    "must",
    case="the events of all streams",
    at=_PLACE,
    until="2025-03-26",
    over=SSE,
    cause="Events have names of their own, or none of the data is JSON.",
)
def sse_events(logs: Sequence[MessageLog]) -> JudgedItems:
    """Messages come as events called `message`, with JSON in their data."""
    for log in logs:
        for response in log.responses:
            for event in response.events:
                if isinstance(event, ServerSentEvent) and event.event != "endpoint" and event.data:
                    yield
                    if event.event != "message":
                        raise Violation(f"an event is called {event.event!r}", evidence=http_evidence(response))
                    if event.event == "message" and not is_json(event.data):
                        raise Violation("the data of an event is no JSON", evidence=http_evidence(response))


@rule(
    "sse/same-origin",
    "should",
    case="the endpoint",
    at=_PLACE,
    until="2025-03-26",
    over=SSE,
    cause="The URI is built from an address that only the server's own network knows: send the path alone.",
)
async def sse_same_origin(probe: Probe) -> None:
    """The URI to post to has the origin of the stream."""
    wire = _wire(probe)
    there, here = urlsplit(urljoin(wire.stream_url, wire.endpoint)), urlsplit(wire.stream_url)
    if (there.scheme, there.netloc) != (here.scheme, here.netloc):
        raise probe.violation(f"messages are to be posted to {preview_json(wire.endpoint)}; they went to {here.netloc}")


@rule(
    "sse/posted",
    "must",
    case="a request",
    at=_PLACE,
    until="2025-03-26",
    over=SSE,
    cause="The answer is written to the response of the POST only.",
)
async def sse_posted(probe: Probe) -> None:
    """A message that is posted is accepted, and answered on the stream."""
    pending = probe.begin("ping")
    answer = await pending.wait()
    response = probe.log.responses[pending.stream - 1]
    await probe.wait_for_response_end(pending.stream)
    if response.status >= FIRST_ERROR_STATUS:
        raise Violation(f"a POST is answered with {describe_response(response)}", evidence=http_evidence(response))
    if not any(message == answer.message for message in _stream(probe)):
        raise Violation("the answer did not come on the stream", evidence=http_evidence(response))


@rule(
    "sse/apart",
    "must",
    case="two connections with the same ids at once",
    kind="own",
    at=_PLACE,
    until="2025-03-26",
    over=SSE,
    cause="One transport is shared by all connections: make one for each.",
)
async def sse_apart(probe: Probe) -> None:
    """Each connection has its own endpoint, and hears its own answers only."""
    other = await probe.open_another()
    try:
        if _wire(other).url == _wire(probe).url:
            raise probe.violation("two connections are told to post to the same URI")
        pending = [each.begin("ping", id=f"same-{number}") for number in range(8) for each in (probe, other)]
        for each in pending:
            await each.wait()
    finally:
        await other.close()


@rule(
    "sse/bad-body",
    "should",
    case="a body that is no JSON",
    kind="own",
    at=_PLACE,
    until="2025-03-26",
    over=SSE,
)
async def sse_bad_body(probe: Probe) -> None:
    """A body that is no message gets an error status, or an error on the stream, and harms nothing."""
    response = await probe.post(b"{no json")
    errors = [each for each in await probe.fence() if "error" in each] or [
        each for each in probe.log.received_messages() if "error" in each
    ]
    if response.status < FIRST_ERROR_STATUS and not errors:
        raise Violation(
            f"a body that is no JSON is answered with {describe_response(response)}", evidence=http_evidence(response)
        )
    await probe.request(probe.harmless_method)


def _stream(probe: Probe) -> Sequence[object]:
    stream = _wire(probe).stream
    return stream.messages if stream is not None else []


def _wire(probe: Probe) -> SSEWire:
    if not isinstance(probe.wire, SSEWire):
        raise NotObserved("it is not over HTTP+SSE")
    return probe.wire
