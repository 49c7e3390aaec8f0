"""HTTP+SSE (2024-11-05) as a client speaks it: where it posts, how it reads the stream, and when it comes to that."""

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
from accord.check.engine.rule import SSE, JudgedItems, NotObserved, Violation, rule
from accord.wire.sse import encode
from accord.wire.transcript import SENT

_PLACE = "basic/transports#http-with-sse"
_UNTIL = "2025-03-26"
_SILENCE_LIMIT = 10.0
"""Seconds: what cannot be posted any more is not heard, while a client gives up one call after the other."""


@rule(
    "client-sse/fallback",
    "should",
    role="client",
    at="https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#backwards-compatibility",
    until=_UNTIL,
    over=SSE,
    cause="Only one status is taken as the sign of an older server.",
)
def client_sse_fallback(run: ClientRun) -> None:
    """A client that looks for older servers does so after each of the statuses 400, 404 and 405 for its first POST."""
    looks = any(each.verb == "GET" for each in run.exchanges)
    if not looks and not _tried_newer_transport(run.ordinary_run):
        raise NotObserved("the client does not look for an older server by itself")
    if not looks:
        raise Violation(
            "the client did not try GET after its POST was refused", evidence=[each.line() for each in run.exchanges]
        )
    run.require_ordinary_behavior()


@rule(
    "client-sse/endpoint",
    "must",
    case="every message",
    role="client",
    at=_PLACE,
    until=_UNTIL,
    over=SSE,
    cause="The place to post to is made up, loses its query, or is put together with the URL of the stream.",
)
def client_sse_endpoint(runs: Sequence[ClientRun]) -> JudgedItems:
    """Every message is a POST to the URI that the event `endpoint` names, and none goes before it has come."""
    for run in runs:
        for each in _after_stream(run):
            yield
            if each.verb != "POST" or each.target not in run.endpoint_paths:
                came = f"{describe_exchange(each)} came by {each.verb} {each.target}"
                raise Violation(f"{came}; to be posted to was {_named_endpoints(run)}", evidence=[each.line()])


def _after_stream(run: ClientRun) -> Iterator[ClientExchange]:
    """What carries messages, but for what is posted to the stream's own URL before: the try of a newer transport."""
    streams = [each for each in run.exchanges if each.verb == "GET" and each.status == 200]
    for each in run.exchanges:
        tries = not streams or (each.at < streams[0].at and each.path == streams[0].path)
        if not tries and any("jsonrpc" in one for one in messages_in(each)):
            yield each


def _named_endpoints(run: ClientRun) -> str:
    return ", ".join(sorted(run.endpoint_paths)) or "nowhere, as the stream had not said it"


ENDPOINT_ABSOLUTE_SCENARIO = Scenario(
    "endpoint-absolute", "the place to post to is a whole URL", until=_UNTIL, over=SSE
)


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


@ENDPOINT_ABSOLUTE_SCENARIO.case(client_sse_endpoint, "a place that is a whole URL")
def client_sse_endpoint_again(run: ClientRun) -> None:
    run.require_ordinary_behavior()


# --- the stream --------------------------------------------------------------------------------------------------

STREAM_EVENTS_SCENARIO = Scenario(
    "stream-events", "a stream with everything that an event stream may have", until=_UNTIL, over=SSE
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
    """One answer as events, cut where it is awkward."""
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
    cause="The stream is split at blank lines, and every part is taken for one line of JSON.",
)
def client_sse_events(run: ClientRun) -> None:
    """The stream is read as the standard says: comments, every kind of line end, data in several lines, and events
    without a name, which are messages.
    """
    run.require_ordinary_behavior()


STREAM_CUT_SCENARIO = Scenario(
    "stream-cut", "the stream breaks before an answer", until=_UNTIL, over=SSE, patience=_SILENCE_LIMIT
)


@STREAM_CUT_SCENARIO.on(FIRST_REQUEST)
async def answer_stream_cut(request: IncomingRequest) -> ScriptedAnswer:
    await request.channel.abort()
    return None


@STREAM_CUT_SCENARIO.rule(
    "client-sse/cut",
    "may",
    case="a stream that breaks before the answer",
    at=_PLACE,
    until=_UNTIL,
    over=SSE,
    cause="The task that reads the stream ends, and nobody is told.",
)
def client_sse_cut(run: ClientRun) -> None:
    """The end of the stream is an error for whoever waits for an answer on it."""
    run.require_progress()


# --- where it posts ----------------------------------------------------------------------------------------------

ENDPOINT_ELSEWHERE_SCENARIO = Scenario(
    "endpoint-elsewhere", "the place to post to has another origin", until=_UNTIL, over=SSE
)


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
    case="a place of another origin",
    at=_PLACE,
    until=_UNTIL,
    over=SSE,
    cause="The URI in the event is used as it is, and what the client has of secrets goes wherever a server wants.",
)
def client_sse_same_origin(run: ClientRun) -> None:
    """Nothing is posted to a place that has another origin than the stream."""
    run.require_intervention()
    for each in run.stray_requests:
        raise Violation(f"{describe_exchange(each)} was sent to the other origin", evidence=[each.line()])


POST_REFUSED_SCENARIO = Scenario(
    "post-refused", "a POST is answered with 500", until=_UNTIL, over=SSE, patience=_SILENCE_LIMIT
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
    cause="The status of the POST is not looked at, and the answer is waited for on the stream.",
)
def client_sse_refused(run: ClientRun) -> None:
    """A POST that is refused is an error for whoever asked."""
    run.require_progress()


def _is_stream_request(streams: ScriptedSSEServer, exchange: ClientExchange) -> bool:
    """Whether it asks for the stream, from where on the scenario is under way."""
    if exchange.verb != "GET" or exchange.path != streams.path:
        return False
    streams.server.mark_intervention()
    return True


def _sse_channel(request: IncomingRequest) -> SSEReplyChannel:
    """The stream of it. Scenarios that use it are played over HTTP+SSE alone."""
    way: Any = request.channel
    assert isinstance(way, SSEReplyChannel)
    return way


# --- how it comes to that ----------------------------------------------------------------------------------------


def _older_server_scenario(status: int) -> Scenario:
    """A server of this transport where the client may expect the newer one."""
    says = f"an older server, which answers {status} to a POST"
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
    """Whether the client tried the newer transport before this one."""
    return bool(run.exchanges) and run.exchanges[0].verb == "POST"
