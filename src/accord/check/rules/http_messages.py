"""Streamable HTTP: what comes for a POST, and for a GET."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.engine.rule import HTTP, JudgedItems, NotObserved, Violation, rule
from accord.check.probes.message_log import MessageLog
from accord.check.probes.probe import Probe
from accord.check.probes.raw_http import (
    FIRST_ERROR_STATUS,
    describe_response,
    error_of,
    harmless_request,
    http_evidence,
    is_event_stream,
    posted_messages,
    require_refusal,
)
from accord.errors import METHOD_NOT_FOUND
from accord.wire.transcript import SENT

SENDING = "basic/transports#sending-messages-to-the-server"
SENDING_2026 = "basic/transports/streamable-http#sending-messages"


@rule(
    "http/content-type",
    "must",
    case="the responses to all requests",
    at=(SENDING, SENDING_2026),
    since="2025-03-26",
    over=HTTP,
    cause="The handler writes its own response, without a content type, or with text/plain or text/html.",
)
def http_content_type(records: Sequence[MessageLog]) -> JudgedItems:
    """A request is answered with JSON or with a stream of events, and the response says which."""
    for posted in posted_messages(records):
        if posted.response.status == 200 and "id" in posted.request and "method" in posted.request:
            yield
            kind = posted.response.headers.get("content-type", "").lower()
            if not kind.startswith(("application/json", "text/event-stream")):
                raise posted.violation(f"the content type of an answer is {kind or 'missing'}")


@rule(
    "http/accepted",
    "must",
    case="a notification about a request that is over",
    at=(SENDING, SENDING_2026),
    since="2025-03-26",
    over=HTTP,
    cause="Notifications go the way of requests: answer them with 202 before anything is dispatched.",
)
async def http_accepted(talk: Probe) -> None:
    """A notification that is accepted gets status 202 and no body; one that is not gets an error status."""
    done = await talk.request(talk.harmless_method)
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": done.id}}
    reply = await talk.post(message, misbehaved=False)
    if not reply.status:
        raise NotObserved(f"no response came: {reply.error}")
    if reply.status >= FIRST_ERROR_STATUS:
        return
    if reply.status != 202 or reply.body.strip():
        body = f" and a body of {len(reply.body)} bytes" if reply.body else ""
        raise Violation(f"a notification is answered with HTTP {reply.status}{body}", evidence=http_evidence(reply))


@rule(
    "http/bad-body",
    "should",
    case="a body that is no JSON",
    at=(SENDING, SENDING_2026),
    since="2025-03-26",
    over=HTTP,
    cause="The error of the parser is sent as a JSON-RPC error with status 200: clients and proxies take it for good.",
)
async def http_bad_body(talk: Probe) -> None:
    """A body that is no message gets an error status."""
    require_refusal(talk, await talk.post(b"{no json"), "a body that is no JSON")


@http_bad_body.case("an empty body")
async def http_bad_body_empty_body(talk: Probe) -> None:
    require_refusal(talk, await talk.post(b""), "an empty body")


@rule(
    "http/get",
    "must",
    case="the stream that is opened after the handshake",
    at="basic/transports#listening-for-messages-from-the-server",
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="No route for GET at this path, or one that answers with a page: send 405 where there is no stream.",
)
def http_get(records: Sequence[MessageLog]) -> JudgedItems:
    """A GET that takes events gets a stream of events, or status 405."""
    for record in records:
        if record.kind != "shared":
            continue  # it may have ended before its GET came through
        replies = [
            reply
            for reply in record.responses
            if reply.method == "GET" and "last-event-id" not in reply.request_headers
        ]
        for reply in replies[:1]:  # a second stream of one session may be refused
            if reply.status in (401, 403, 404, 0) or "mcp-protocol-version" not in reply.request_headers:
                continue
            yield
            if not is_event_stream(reply) and reply.status != 405:
                raise Violation(f"GET is answered with {describe_response(reply)}", evidence=http_evidence(reply))


@rule(
    "http/get-no-answers",
    "must",
    case="the streams that were opened by GET",
    at="basic/transports#listening-for-messages-from-the-server",
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="All that a session has to say is written to its newest stream.",
)
def http_get_no_answers(records: Sequence[MessageLog]) -> JudgedItems:
    """An answer is sent on the stream of its request; a GET carries it only if it resumes that stream."""
    for record in records:
        for reply in record.responses:
            if reply.method != "GET" or not is_event_stream(reply) or "last-event-id" in reply.request_headers:
                continue
            yield
            for message in reply.messages:
                if isinstance(message, dict) and "method" not in message and message.get("id") is not None:
                    raise Violation("an answer came on the stream of a GET", evidence=http_evidence(reply))


@rule(
    "http/unknown-method",
    "must",
    case="a method that nobody has",
    at="basic/transports/streamable-http#protocol-version-header",
    since="2026-07-28",
    over=HTTP,
    cause="The JSON-RPC error is sent with status 200 or 400.",
)
async def http_unknown_method(talk: Probe) -> None:
    """A method that the server does not have gets status 404 and error -32601."""
    reply = await talk.post(talk.build_request(talk.unknown_name), misbehaved=False)
    require_refusal(talk, reply, "an unknown method", status=404, code=METHOD_NOT_FOUND)


@rule(
    "http/no-posted-answers",
    "should",
    case="an answer to nothing",
    at=SENDING_2026,
    since="2026-07-28",
    over=HTTP,
)
async def http_no_posted_answers(talk: Probe) -> None:
    """A posted answer is refused: the server has asked nothing."""
    reply = await talk.post({"jsonrpc": "2.0", "id": 1, "result": {}})
    if reply.status and reply.status < FIRST_ERROR_STATUS and reply.status != 202:
        raise Violation(f"a posted answer is answered with {describe_response(reply)}", evidence=http_evidence(reply))


@rule(
    "http/get-gone",
    "should",
    case="a GET",
    at="basic/transports/streamable-http#earlier-streamable-http-revisions",
    since="2026-07-28",
    over=HTTP,
    cause="Routes of earlier revisions answer without a look at MCP-Protocol-Version.",
)
async def http_get_gone(talk: Probe) -> None:
    """A GET or a DELETE of this revision gets status 405: there are no sessions, and no streams but those
    of requests.
    """
    await _require_not_allowed(talk, "GET")


@http_get_gone.case("a DELETE")
async def http_get_gone_delete(talk: Probe) -> None:
    await _require_not_allowed(talk, "DELETE")


async def _require_not_allowed(talk: Probe, method: str) -> None:
    assert talk.http is not None, "it is over HTTP"
    headers = {"Accept": "text/event-stream", "Content-Type": None, "MCP-Protocol-Version": talk.revision}
    reply = talk.http.open_stream(headers) if method == "GET" else await talk.http.fetch(method, None, headers)
    await talk.fence()
    if reply.status != 405:
        raise Violation(f"{method} is answered with {describe_response(reply)}", evidence=http_evidence(reply))


@rule(
    "http/error-status",
    "must",
    case="a request without Mcp-Method",
    at=("basic/transports/streamable-http#server-validation", "basic/index#error-codes"),
    since="2026-07-28",
    over=HTTP,
)
async def http_error_status(talk: Probe) -> None:
    """The errors that are about the request itself (-32020, -32021, -32022, and a missing `_meta`) have status 400."""
    await talk.post(harmless_request(talk), {"Mcp-Method": None})  # there is an error to read then


@http_error_status.case("all errors that were sent")
def http_error_status_reading(records: Sequence[MessageLog]) -> JudgedItems:
    for record in records:
        for said in record.entries:
            if said.direction == SENT and 0 < said.stream <= len(record.responses):
                reply = record.responses[said.stream - 1]
                if error_of(reply).get("code") in (-32020, -32021, -32022):
                    yield
                    if reply.status != 400 and not is_event_stream(reply):
                        raise Violation(f"it came with {describe_response(reply)}", evidence=http_evidence(reply, said))
