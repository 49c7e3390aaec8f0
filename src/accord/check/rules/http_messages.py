"""Streamable HTTP: responses to POST and GET."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.engine.rule import HTTP, CaseVariant, JudgedItems, NotObserved, Violation, rule
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
def http_content_type(logs: Sequence[MessageLog]) -> JudgedItems:
    """The response to a request is JSON or an event stream, with its content type."""
    for posted in posted_messages(logs):
        if posted.response.status == 200 and "id" in posted.request and "method" in posted.request:
            yield
            kind = posted.response.headers.get("content-type", "").lower()
            if not kind.startswith(("application/json", "text/event-stream")):
                raise posted.violation(f"the content type of a response is {kind or 'missing'}")


@rule(
    "http/accepted",
    "must",
    case="a notification about a finished request",
    at=(SENDING, SENDING_2026),
    since="2025-03-26",
    over=HTTP,
    cause="Notifications are dispatched like requests: respond with 202 first.",
)
async def http_accepted(probe: Probe) -> None:
    """An accepted notification gets status 202 and no body, a refused one an error status."""
    done = await probe.request(probe.harmless_method)
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": done.id}}
    response = await probe.post(message, misbehaved=False)
    if not response.status:
        raise NotObserved(f"no response: {response.error}")
    if response.status >= FIRST_ERROR_STATUS:
        return
    if response.status != 202 or response.body.strip():
        body = f" and a body of {len(response.body)} bytes" if response.body else ""
        raise Violation(f"a notification returned HTTP {response.status}{body}", evidence=http_evidence(response))


@rule(
    "http/bad-body",
    "should",
    variants=[CaseVariant("a body that is not JSON", body=b"{no json"), CaseVariant("an empty body", body=b"")],
    at=(SENDING, SENDING_2026),
    since="2025-03-26",
    over=HTTP,
    cause="The parse error is sent with status 200: clients and proxies take it for success.",
)
async def http_bad_body(probe: Probe, body: bytes) -> None:
    """A body that is not a message gets an error status."""
    require_refusal(probe, await probe.post(body), "a body that is not JSON" if body else "an empty body")


@rule(
    "http/get",
    "must",
    case="the stream that is opened after the handshake",
    at="basic/transports#listening-for-messages-from-the-server",
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="There is no route for GET at this path, or it returns a page: respond with 405 if there is no stream.",
)
def http_get(logs: Sequence[MessageLog]) -> JudgedItems:
    """A GET for an event stream gets an event stream, or status 405."""
    for log in logs:
        if log.kind != "shared":
            continue  # it may have ended before its GET came through
        replies = [
            response
            for response in log.responses
            if response.method == "GET" and "last-event-id" not in response.request_headers
        ]
        for response in replies[:1]:  # a second stream of one session may be refused
            if response.status in (401, 403, 404, 0) or "mcp-protocol-version" not in response.request_headers:
                continue
            yield
            if not is_event_stream(response) and response.status != 405:
                raise Violation(f"GET returned {describe_response(response)}", evidence=http_evidence(response))


@rule(
    "http/get-no-answers",
    "must",
    case="all streams that a GET opened",
    at="basic/transports#listening-for-messages-from-the-server",
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="All messages of a session are sent on its newest stream.",
)
def http_get_no_answers(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server sends a response on the stream of its request; a GET carries it only if it resumes that stream."""
    for log in logs:
        for response in log.responses:
            if response.method != "GET" or not is_event_stream(response) or "last-event-id" in response.request_headers:
                continue
            yield
            for message in response.messages:
                if isinstance(message, dict) and "method" not in message and message.get("id") is not None:
                    raise Violation("a response was sent on the stream of a GET", evidence=http_evidence(response))


@rule(
    "http/unknown-method",
    "must",
    case="an unknown method",
    at="basic/transports/streamable-http#protocol-version-header",
    since="2026-07-28",
    over=HTTP,
    cause="The JSON-RPC error is sent with status 200 or 400.",
)
async def http_unknown_method(probe: Probe) -> None:
    """An unknown method gets status 404 and error -32601."""
    response = await probe.post(probe.build_request(probe.unknown_name), misbehaved=False)
    require_refusal(probe, response, "an unknown method", status=404, code=METHOD_NOT_FOUND)


@rule(
    "http/no-posted-answers",
    "should",
    case="a response without a request",
    at=SENDING_2026,
    since="2026-07-28",
    over=HTTP,
)
async def http_no_posted_answers(probe: Probe) -> None:
    """The server refuses a posted response, since it sends no requests."""
    response = await probe.post({"jsonrpc": "2.0", "id": 1, "result": {}})
    if response.status and response.status < FIRST_ERROR_STATUS and response.status != 202:
        raise Violation(f"a posted response returned {describe_response(response)}", evidence=http_evidence(response))


@rule(
    "http/get-gone",
    "should",
    variants=[CaseVariant("a GET", method="GET"), CaseVariant("a DELETE", method="DELETE")],
    at="basic/transports/streamable-http#earlier-streamable-http-revisions",
    since="2026-07-28",
    over=HTTP,
    cause="Routes of earlier revisions do not read MCP-Protocol-Version.",
)
async def http_get_gone(probe: Probe, method: str) -> None:
    """A GET or DELETE of this revision gets status 405: it has no sessions and no separate streams."""
    assert probe.http is not None, "the transport is HTTP"
    headers = {"Accept": "text/event-stream", "Content-Type": None, "MCP-Protocol-Version": probe.revision}
    response = probe.http.open_stream(headers) if method == "GET" else await probe.http.fetch(method, None, headers)
    await probe.fence()
    if response.status != 405:
        raise Violation(f"{method} returned {describe_response(response)}", evidence=http_evidence(response))


@rule(
    "http/error-status",
    "must",
    case="a request without Mcp-Method",
    at=("basic/transports/streamable-http#server-validation", "basic/index#error-codes"),
    since="2026-07-28",
    over=HTTP,
)
async def http_error_status(probe: Probe) -> None:
    """Errors of the request itself (-32020, -32021, -32022, and missing `_meta`) have status 400."""
    await probe.post(harmless_request(probe), {"Mcp-Method": None})  # there is an error to read then


@http_error_status.case("all errors from the server")
def http_error_status_reading(logs: Sequence[MessageLog]) -> JudgedItems:
    for log in logs:
        for entry in log.entries:
            if entry.direction == SENT and 0 < entry.stream <= len(log.responses):
                response = log.responses[entry.stream - 1]
                if error_of(response).get("code") in (-32020, -32021, -32022):
                    yield
                    if response.status != 400 and not is_event_stream(response):
                        raise Violation(
                            f"the error came with {describe_response(response)}",
                            evidence=http_evidence(response, entry),
                        )
