"""HTTP+SSE (2024-11-05) of a client: the endpoint, the stream, and the fallback to this transport."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from accord.check.clients.conversation import encode_message
from accord.check.clients.http_listener import ClientExchange, ScriptedResponse
from accord.check.clients.http_requests import describe_exchange, is_first_use, messages_in
from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import PATH, ClientRun
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer
from accord.check.clients.sse_server import ScriptedSSEServer, SSEReplyChannel
from accord.check.engine.rule import SSE, JudgedItems, NotObserved, Violation, client_rule
from accord.wire.sse import encode
from accord.wire.transcript import SENT

_PLACE = "basic/transports#http-with-sse"
_UNTIL = "2025-03-26"
_SILENCE_LIMIT = 10.0
"""Seconds without a message, while a client cancels one call after the other."""


@client_rule(
    "client-sse/fallback",
    "should",
    at="https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#backwards-compatibility",
    until=_UNTIL,
    over=SSE,
    cause="Only one status is taken for an older server.",
)
def client_sse_fallback(run: ClientRun) -> None:
    """A client that supports older servers falls back after status 400, 404 and 405 for its first POST."""
    looks = any(each.verb == "GET" for each in run.exchanges)
    if not looks and not _tried_newer_transport(run.ordinary_run):
        raise NotObserved("the client does not fall back to older servers")
    if not looks:
        raise Violation(
            "the client did not send GET after the error for its POST", evidence=[each.line() for each in run.exchanges]
        )
    run.require_ordinary_behavior()


@client_rule(
    "client-sse/endpoint",
    "must",
    case="all messages",
    at=_PLACE,
    until=_UNTIL,
    over=SSE,
    cause="The endpoint is a constant, loses its query, or is resolved incorrectly.",
)
def client_sse_endpoint(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client sends all messages by POST to the URI of the event `endpoint`, after that event."""
    for run in runs:
        for each in _after_stream(run):
            yield
            if each.verb != "POST" or each.target not in run.endpoint_paths:
                came = f"{describe_exchange(each)} was sent by {each.verb} {each.target}"
                raise Violation(f"{came}; the endpoint was {_named_endpoints(run)}", evidence=[each.line()])


def _after_stream(run: ClientRun) -> Iterator[ClientExchange]:
    """Return the HTTP requests with messages, except an attempt at the newer transport on the stream's own URL."""
    streams = [each for each in run.exchanges if each.verb == "GET" and each.status == 200]
    for each in run.exchanges:
        tries = not streams or (each.at < streams[0].at and each.path == streams[0].path)
        if not tries and any("jsonrpc" in one for one in messages_in(each)):
            yield each


def _named_endpoints(run: ClientRun) -> str:
    return ", ".join(sorted(run.endpoint_paths)) or "not sent yet"


ENDPOINT_ABSOLUTE_SCENARIO = Scenario("endpoint-absolute", "the endpoint is an absolute URL", until=_UNTIL, over=SSE)


@ENDPOINT_ABSOLUTE_SCENARIO.on_http
async def serve_endpoint_absolute(
    streams: ScriptedSSEServer, exchange: ClientExchange, response: ScriptedResponse
) -> bool:
    if not _is_stream_request(streams, exchange):
        return False
    place = streams.new_endpoint_path()
    await streams.open_stream(
        exchange, response, place, encode((streams.listener.url + place).encode(), event="endpoint")
    )
    return True


@ENDPOINT_ABSOLUTE_SCENARIO.case(client_sse_endpoint, "an absolute URL as the endpoint")
def client_sse_endpoint_absolute(run: ClientRun) -> None:
    run.require_ordinary_behavior()


# --- the stream --------------------------------------------------------------------------------------------------

STREAM_EVENTS_SCENARIO = Scenario(
    "stream-events", "a stream with all features of event streams", until=_UNTIL, over=SSE
)


@STREAM_EVENTS_SCENARIO.on_http
async def serve_stream_events(streams: ScriptedSSEServer, exchange: ClientExchange, response: ScriptedResponse) -> bool:
    if not _is_stream_request(streams, exchange):
        return False
    place = streams.new_endpoint_path()
    beginning = (b": welcome\n\nretry: 1000\n\n", b"event: endpo", b"int\r\ndata:" + place.encode() + b"\r\n\r\n")
    await streams.open_stream(exchange, response, place, *beginning)
    return True


@STREAM_EVENTS_SCENARIO.on(FIRST_REQUEST, "tools/list", "tools/call")
async def answer_stream_events(request: IncomingRequest) -> ScriptedAnswer:
    answer = encode_message(request.build_response(await request.default_result()))
    request.conversation.log.add(SENT, answer)
    for piece in _event_chunks(answer):
        await _sse_channel(request).response.send_chunk(piece)
    return None


def _event_chunks(answer: bytes) -> list[bytes]:
    """Return a response as events, split at unusual places."""
    middle = answer.index(b",") + 1  # data in two lines is joined by a newline, which is a space in JSON
    return [
        b":\r\n\r\nevent: com.example/unheard-of\nda",
        b"ta: not for you\n\nid: check/1\r\nda",
        b"ta: " + answer[:middle] + b"\r\ndata:" + answer[middle:] + b"\r\n\r\n",
    ]


@STREAM_EVENTS_SCENARIO.rule(
    "client-sse/events",
    "must",
    case="comments, CRLF, data in two lines, an event without a name",
    at=_PLACE,
    until=_UNTIL,
    over=SSE,
    cause="The stream is split at blank lines, and each part is parsed as one line of JSON.",
)
def client_sse_events(run: ClientRun) -> None:
    """A client parses event streams according to the standard: comments, all line ends, data in several lines, and
    events without a name.
    """
    run.require_ordinary_behavior()


STREAM_CUT_SCENARIO = Scenario(
    "stream-cut", "the stream breaks before a response", until=_UNTIL, over=SSE, patience=_SILENCE_LIMIT
)


@STREAM_CUT_SCENARIO.on(FIRST_REQUEST)
async def answer_stream_cut(request: IncomingRequest) -> ScriptedAnswer:
    await request.channel.abort()
    return None


@STREAM_CUT_SCENARIO.rule(
    "client-sse/cut",
    "may",
    case="a stream that breaks before the response",
    at=_PLACE,
    until=_UNTIL,
    over=SSE,
    cause="The task that reads the stream ends, and pending calls hang.",
)
def client_sse_cut(run: ClientRun) -> None:
    """The end of the stream is an error for all pending calls."""
    run.require_progress()


# --- where it posts ----------------------------------------------------------------------------------------------

ENDPOINT_ELSEWHERE_SCENARIO = Scenario("endpoint-elsewhere", "an endpoint with another origin", until=_UNTIL, over=SSE)


@ENDPOINT_ELSEWHERE_SCENARIO.on_http
async def serve_endpoint_elsewhere(
    streams: ScriptedSSEServer, exchange: ClientExchange, response: ScriptedResponse
) -> bool:
    if not _is_stream_request(streams, exchange):
        return False
    await streams.open_stream(exchange, response, "", encode(streams.server.trap_url.encode(), event="endpoint"))
    return True


@ENDPOINT_ELSEWHERE_SCENARIO.rule(
    "client-sse/same-origin",
    "should",
    case="an endpoint with another origin",
    at=_PLACE,
    until=_UNTIL,
    over=SSE,
    cause="The URI of the event is not checked, so that a server can send credentials anywhere.",
)
def client_sse_same_origin(run: ClientRun) -> None:
    """A client does not post to an endpoint with another origin than the stream."""
    run.require_intervention()
    for each in run.stray_requests:
        raise Violation(f"the client sent {describe_exchange(each)} to the other origin", evidence=[each.line()])


POST_REFUSED_SCENARIO = Scenario(
    "post-refused", "a POST returns status 500", until=_UNTIL, over=SSE, patience=_SILENCE_LIMIT
)


@POST_REFUSED_SCENARIO.on_http
async def serve_post_refused(streams: ScriptedSSEServer, exchange: ClientExchange, response: ScriptedResponse) -> bool:
    if not is_first_use(streams.server, exchange):
        return False
    await response.send(500, b"it went wrong", content_type="text/plain")
    return True


@POST_REFUSED_SCENARIO.rule(
    "client-sse/refused",
    "should",
    case="500 for a POST",
    at="basic/lifecycle#error-handling",
    until=_UNTIL,
    over=SSE,
    cause="The status of the POST is not checked, and the client waits for a response on the stream.",
)
def client_sse_refused(run: ClientRun) -> None:
    """An error status for a POST is an error for the caller."""
    run.require_progress()


def _is_stream_request(streams: ScriptedSSEServer, exchange: ClientExchange) -> bool:
    """Return whether it is a request for the stream, which starts the intervention of the scenario."""
    if exchange.verb != "GET" or exchange.path != streams.path:
        return False
    streams.server.mark_intervention()
    return True


def _sse_channel(request: IncomingRequest) -> SSEReplyChannel:
    """Return its stream. Only scenarios over HTTP+SSE use it."""
    way: Any = request.channel
    assert isinstance(way, SSEReplyChannel)
    return way


# --- how it comes to that ----------------------------------------------------------------------------------------


def _older_server_scenario(status: int) -> Scenario:
    """Return a scenario with a server of this transport at the path of the newer one."""
    says = f"an older server that answers a POST with {status}"
    scenario = Scenario(f"older-server-{status}", says, until=_UNTIL, over=SSE, path=PATH)

    @scenario.on_http
    async def answer(streams: ScriptedSSEServer, exchange: ClientExchange, response: ScriptedResponse) -> bool:
        if exchange.verb != "POST" or exchange.path != PATH:
            return False
        await response.send(status)
        return True

    scenario.case(client_sse_fallback, says)(client_sse_fallback.check)
    return scenario


BAD_REQUEST, NOT_FOUND, NOT_ALLOWED = (
    _older_server_scenario(400),
    _older_server_scenario(404),
    _older_server_scenario(405),
)


def _tried_newer_transport(run: ClientRun) -> bool:
    """Return whether the client tried the newer transport first."""
    return bool(run.exchanges) and run.exchanges[0].verb == "POST"
