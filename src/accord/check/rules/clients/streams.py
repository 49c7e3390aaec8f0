"""HTTP responses: as JSON, as event streams, resumed, broken, or invalid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.clients.conversation import encode_message
from accord.check.clients.http_listener import ClientExchange, ScriptedResponse
from accord.check.clients.http_server import PostReplyChannel, ScriptedHTTPServer
from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer
from accord.check.engine.rule import HTTP, JudgedItems, NotObserved, Rule, Violation, client_rule
from accord.messages.revision import RULES

_SINCE = "2026-07-28"
_RETRY_MS = 600
_PRIME = "check/1:prime"
"""The id of an event without data."""


@client_rule(
    "client-http/server-errors",
    "should",
    at="basic/lifecycle#error-handling",
    over=HTTP,
    cause="Only the body is checked, or an exception ends the reader of all responses.",
)
def client_http_server_errors(run: ClientRun) -> None:
    """An HTTP error instead of a response is an error for the caller."""
    run.require_progress()


@client_rule(
    "client-http/odd-answers",
    "may",
    at="basic/lifecycle#timeouts",
    over=HTTP,
    cause="An invalid response is logged, but the caller gets no error.",
)
def client_http_odd_answers(run: ClientRun) -> None:
    """An invalid HTTP response is an immediate error for the caller."""
    run.require_progress()


@client_rule(
    "client-http/cut",
    "may",
    at="basic/lifecycle#timeouts",
    over=HTTP,
    cause="After the end of the stream, the call never ends.",
)
def client_http_cut(run: ClientRun) -> None:
    """A connection that breaks before the response is an immediate error for the caller."""
    run.require_progress()


STREAMS_SCENARIO = Scenario("streams", "all responses are event streams", over=HTTP, stream=True)


@STREAMS_SCENARIO.on("initialize", "server/discover", FIRST_REQUEST)
async def answer_streams(request: IncomingRequest) -> ScriptedAnswer:
    return await request.default_result()


@STREAMS_SCENARIO.rule(
    "client-http/both-forms",
    "must",
    case="responses as event streams",
    at=("basic/transports#sending-messages-to-the-server", "basic/transports/streamable-http#sending-messages"),
    over=HTTP,
    cause="Only one of the two is supported.",
)
def client_http_both_forms(run: ClientRun) -> None:
    """A client accepts a response as JSON and as an event stream."""
    run.require_ordinary_behavior()


EVENTS_SCENARIO = Scenario("events", "streams with all features of event streams", over=HTTP)


@EVENTS_SCENARIO.on(FIRST_REQUEST, "tools/list", "tools/call")
async def answer_events(request: IncomingRequest) -> ScriptedAnswer:
    answer = encode_message(request.build_response(await request.default_result()))
    post = _post_channel(request)
    await post.start()
    for piece in _event_chunks(answer):
        await post.response.send_chunk(piece)
    await post.response.end()
    return None


def _event_chunks(answer: bytes) -> list[bytes]:
    """Return a response as an event stream, split at unusual places."""
    middle = answer.index(b",") + 1  # data in two lines is joined by a newline, which is a space in JSON
    head, tail = answer[:middle], answer[middle:]
    return [
        b":\r\n\r\n: keep-alive\n\n",
        b"id: check/0\n\n",
        b"event: com.example/unheard-of\nda",
        b"ta: not for you\n\n",
        b"retry: 1000\nx-unknown: 1\n\n",
        b"event: message\r\nid:check/1\r\nda",
        b"ta: " + head + b"\r\n",
        b"data:" + tail[:10],
        tail[10:] + b"\r\n\r\n",
    ]


@EVENTS_SCENARIO.rule(
    "client-http/events",
    "must",
    case="comments, CRLF, data in two lines, an event with another name",
    at=(
        "basic/transports#listening-for-messages-from-the-server",
        "basic/transports/streamable-http#receiving-messages",
    ),
    over=HTTP,
    cause="The stream is split at blank lines, and each part is parsed as one line of JSON.",
)
def client_http_events(run: ClientRun) -> None:
    """A client parses event streams according to the standard: comments, all line ends, data in several lines, and
    events without data.
    """
    run.require_ordinary_behavior()


# --- streams that break ------------------------------------------------------------------------------------------

DROPPED_STREAM_SCENARIO = Scenario(
    "dropped-stream",
    "a stream ends before its response, with a time to reconnect",
    since="2025-03-26",
    until=_SINCE,
    over=HTTP,
)


@DROPPED_STREAM_SCENARIO.on(FIRST_REQUEST)
async def answer_dropped_stream(request: IncomingRequest) -> ScriptedAnswer:
    request.conversation.server.state["answer"] = encode_message(request.build_response(await request.default_result()))
    post = _post_channel(request)
    await post.start()
    await post.send_event(b"", id=_PRIME, retry=_RETRY_MS)
    await post.response.end()
    return None


@DROPPED_STREAM_SCENARIO.on_http
async def serve_dropped_stream(
    endpoint: ScriptedHTTPServer, exchange: ClientExchange, response: ScriptedResponse
) -> bool:
    if exchange.verb != "GET" or exchange.headers.get("last-event-id") != _PRIME:
        return False
    post = PostReplyChannel(endpoint, exchange, response)
    await post.start()
    await post.send_event(endpoint.server.state["answer"], id="check/1:answer")
    await response.end()
    return True


@DROPPED_STREAM_SCENARIO.rule(
    "client-http/resume",
    "should",
    case="a stream that ends after an event without data",
    at="basic/transports#resumability-and-redelivery",
    since="2025-03-26",
    until=_SINCE,
    over=HTTP,
    cause="The end of the stream is taken for the end of the request.",
)
def client_http_resume(run: ClientRun) -> None:
    """If a stream ends before its response, a client resumes it by GET with the id of the last event."""
    if not _resumptions(run) and not RULES[run.revision].primes_streams:
        raise NotObserved("the client does not resume streams, which is optional")
    if not _resumptions(run):
        raise Violation("the client did not resume the stream", evidence=[each.line() for each in run.exchanges[-4:]])
    run.require_ordinary_behavior()


@DROPPED_STREAM_SCENARIO.rule(
    "client-http/retry",
    "must",
    case=f"a stream that asks to reconnect in {_RETRY_MS} ms",
    at="basic/transports#sending-messages-to-the-server",
    since="2025-11-25",
    until=_SINCE,
    over=HTTP,
    cause="`retry` is not read, or taken for seconds.",
)
def client_http_retry(run: ClientRun) -> None:
    """A client waits at least the `retry` time of a stream before it reconnects."""
    run.require_intervention()
    returns = _resumptions(run)
    if not returns:
        raise NotObserved("the client did not resume the stream")
    primed = [each.ended_at for each in run.exchanges if each.ended_at is not None and each.ended_at < returns[0].at]
    waited = returns[0].at - max(primed, default=0.0)
    if waited < _RETRY_MS / 1000 * 0.9:
        raise Violation(f"the client reconnected after {waited * 1000:.0f} ms", evidence=[returns[0].line()])


def _resumptions(run: ClientRun) -> list[ClientExchange]:
    run.require_no_crash()
    return [each for each in run.exchanges if each.headers.get("last-event-id") == _PRIME]


@client_rule(
    "client-http/no-resumption",
    "must",
    case="all requests",
    at="basic/transports/streamable-http#earlier-streamable-http-revisions",
    since=_SINCE,
    over=HTTP,
    cause="Features of earlier revisions are used with a server of this one.",
)
def client_http_no_resumption(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client does not resume streams: it sends no Last-Event-ID and no GET."""
    for run in runs:
        for each in run.exchanges:
            if "last-event-id" in each.headers:
                raise Violation("the client sent Last-Event-ID", evidence=[each.line()])
        yield from run.posts()


def _http_answer_scenario(rule: Rule, name: str, says: str, status: int, body: bytes, kind: str) -> Scenario:
    """Return a scenario in which a web server answers the first request without MCP."""
    scenario = Scenario(name, says, over=HTTP)

    @scenario.on(FIRST_REQUEST)
    async def answer(request: IncomingRequest) -> ScriptedAnswer:
        await _post_channel(request).response.send(status, body, content_type=kind)
        return None

    scenario.case(rule, says)(rule.check)
    return scenario


_PAGE = b"<!doctype html><title>502 Bad Gateway</title><h1>Bad Gateway</h1>"

BAD_GATEWAY_SCENARIO = _http_answer_scenario(
    client_http_server_errors, "bad-gateway", "502 and an HTML page", 502, _PAGE, "text/html"
)
SERVER_ERROR_SCENARIO = _http_answer_scenario(
    client_http_server_errors, "server-error", "500 without a body", 500, b"", "text/plain"
)
WEB_PAGE_SCENARIO = _http_answer_scenario(
    client_http_odd_answers, "web-page", "200 and an HTML page", 200, _PAGE, "text/html"
)
NO_JSON_SCENARIO = _http_answer_scenario(
    client_http_odd_answers,
    "no-json",
    "200 and incomplete JSON",
    200,
    b'{"jsonrpc":"2.0","id":1,"resu',
    "application/json",
)
ACCEPTED_SCENARIO = _http_answer_scenario(
    client_http_odd_answers, "accepted", "202 without a response", 202, b"", "text/plain"
)


def _aborted_stream_scenario(name: str, says: str, beginning: bytes | None) -> Scenario:
    """Return a scenario in which the connection breaks after these bytes of a stream, or before the response."""
    scenario = Scenario(name, says, over=HTTP)

    @scenario.on(FIRST_REQUEST)
    async def answer(request: IncomingRequest) -> ScriptedAnswer:
        post = _post_channel(request)
        if beginning is not None:
            await post.start()
            await post.response.send_chunk(beginning)
        await post.abort()
        return None

    scenario.case(client_http_cut, says)(client_http_cut.check)
    return scenario


CUT_EARLY_SCENARIO = _aborted_stream_scenario("cut-early", "the connection breaks before the response", None)
CUT_MIDDLE_SCENARIO = _aborted_stream_scenario(
    "cut-middle", "the connection breaks in the middle of an event", b'data: {"jsonrpc":"2.0",'
)


def _post_channel(request: IncomingRequest) -> PostReplyChannel:
    """Return its response. Only scenarios over HTTP use it."""
    way: Any = request.channel
    assert isinstance(way, PostReplyChannel)
    return way
