"""Streamable HTTP: what comes for a POST, and for a GET."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.engine.rule import HTTP, NotObserved, Rule, Violation
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

CONTENT_TYPE = Rule(
    "http/content-type",
    "must",
    "A request is answered with JSON or with a stream of events, and the response says which.",
    at=(SENDING, SENDING_2026),
    since="2025-03-26",
    over=HTTP,
    cause="The handler writes its own response, without a content type, or with text/plain or text/html.",
)


@CONTENT_TYPE.reading("the responses to all requests")
def read_content_type(records: Sequence[MessageLog]) -> int:
    judged = 0
    for posted in posted_messages(records):
        if posted.response.status == 200 and "id" in posted.request and "method" in posted.request:
            judged += 1
            kind = posted.response.headers.get("content-type", "").lower()
            if not kind.startswith(("application/json", "text/event-stream")):
                raise posted.violation(f"the content type of an answer is {kind or 'missing'}")
    return judged


ACCEPTED = Rule(
    "http/accepted",
    "must",
    "A notification that is accepted gets status 202 and no body; one that is not gets an error status.",
    at=(SENDING, SENDING_2026),
    since="2025-03-26",
    over=HTTP,
    cause="Notifications go the way of requests: answer them with 202 before anything is dispatched.",
)


@ACCEPTED.case("a notification about a request that is over")
async def check_accepted(talk: Probe) -> None:
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


BAD_BODY = Rule(
    "http/bad-body",
    "should",
    "A body that is no message gets an error status.",
    at=(SENDING, SENDING_2026),
    since="2025-03-26",
    over=HTTP,
    cause="The error of the parser is sent as a JSON-RPC error with status 200: clients and proxies take it for good.",
)


@BAD_BODY.case("a body that is no JSON")
async def check_bad_body_body_json(talk: Probe) -> None:
    require_refusal(talk, await talk.post(b"{no json"), "a body that is no JSON")


@BAD_BODY.case("an empty body")
async def check_bad_body_empty_body(talk: Probe) -> None:
    require_refusal(talk, await talk.post(b""), "an empty body")


GET = Rule(
    "http/get",
    "must",
    "A GET that takes events gets a stream of events, or status 405.",
    at="basic/transports#listening-for-messages-from-the-server",
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="No route for GET at this path, or one that answers with a page: send 405 where there is no stream.",
)


@GET.reading("the stream that is opened after the handshake")
def read_get(records: Sequence[MessageLog]) -> int:
    judged = 0
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
            judged += 1
            if not is_event_stream(reply) and reply.status != 405:
                raise Violation(f"GET is answered with {describe_response(reply)}", evidence=http_evidence(reply))
    return judged


GET_NO_ANSWERS = Rule(
    "http/get-no-answers",
    "must",
    "An answer is sent on the stream of its request; a GET carries it only if it resumes that stream.",
    at="basic/transports#listening-for-messages-from-the-server",
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="All that a session has to say is written to its newest stream.",
)


@GET_NO_ANSWERS.reading("the streams that were opened by GET")
def read_get_no_answers(records: Sequence[MessageLog]) -> int:
    judged = 0
    for record in records:
        for reply in record.responses:
            if reply.method != "GET" or not is_event_stream(reply) or "last-event-id" in reply.request_headers:
                continue
            judged += 1
            for message in reply.messages:
                if isinstance(message, dict) and "method" not in message and message.get("id") is not None:
                    raise Violation("an answer came on the stream of a GET", evidence=http_evidence(reply))
    return judged


UNKNOWN_METHOD = Rule(
    "http/unknown-method",
    "must",
    "A method that the server does not have gets status 404 and error -32601.",
    at="basic/transports/streamable-http#protocol-version-header",
    since="2026-07-28",
    over=HTTP,
    cause="The JSON-RPC error is sent with status 200 or 400.",
)


@UNKNOWN_METHOD.case("a method that nobody has")
async def check_unknown_method(talk: Probe) -> None:
    reply = await talk.post(talk.build_request(talk.unknown_name), misbehaved=False)
    require_refusal(talk, reply, "an unknown method", status=404, code=METHOD_NOT_FOUND)


NO_POSTED_ANSWERS = Rule(
    "http/no-posted-answers",
    "should",
    "A posted answer is refused: the server has asked nothing.",
    at=SENDING_2026,
    since="2026-07-28",
    over=HTTP,
)


@NO_POSTED_ANSWERS.case("an answer to nothing")
async def check_no_posted_answers(talk: Probe) -> None:
    reply = await talk.post({"jsonrpc": "2.0", "id": 1, "result": {}})
    if reply.status and reply.status < FIRST_ERROR_STATUS and reply.status != 202:
        raise Violation(f"a posted answer is answered with {describe_response(reply)}", evidence=http_evidence(reply))


GET_GONE = Rule(
    "http/get-gone",
    "should",
    "A GET or a DELETE of this revision gets status 405: there are no sessions, and no streams but those of requests.",
    at="basic/transports/streamable-http#earlier-streamable-http-revisions",
    since="2026-07-28",
    over=HTTP,
    cause="Routes of earlier revisions answer without a look at MCP-Protocol-Version.",
)


@GET_GONE.case("a GET")
async def check_get_gone_get(talk: Probe) -> None:
    await _require_not_allowed(talk, "GET")


@GET_GONE.case("a DELETE")
async def check_get_gone_delete(talk: Probe) -> None:
    await _require_not_allowed(talk, "DELETE")


async def _require_not_allowed(talk: Probe, method: str) -> None:
    assert talk.http is not None, "it is over HTTP"
    headers = {"Accept": "text/event-stream", "Content-Type": None, "MCP-Protocol-Version": talk.revision}
    reply = talk.http.open_stream(headers) if method == "GET" else await talk.http.fetch(method, None, headers)
    await talk.fence()
    if reply.status != 405:
        raise Violation(f"{method} is answered with {describe_response(reply)}", evidence=http_evidence(reply))


ERROR_STATUS = Rule(
    "http/error-status",
    "must",
    "The errors that are about the request itself (-32020, -32021, -32022, and a missing `_meta`) have status 400.",
    at=("basic/transports/streamable-http#server-validation", "basic/index#error-codes"),
    since="2026-07-28",
    over=HTTP,
)


@ERROR_STATUS.case("a request without Mcp-Method")
async def check_error_status(talk: Probe) -> None:
    await talk.post(harmless_request(talk), {"Mcp-Method": None})  # there is an error to read then


@ERROR_STATUS.reading("all errors that were sent")
def read_error_status(records: Sequence[MessageLog]) -> int:
    judged = 0
    for record in records:
        for said in record.entries:
            if said.direction == SENT and 0 < said.stream <= len(record.responses):
                reply = record.responses[said.stream - 1]
                if error_of(reply).get("code") in (-32020, -32021, -32022):
                    judged += 1
                    if reply.status != 400 and not is_event_stream(reply):
                        raise Violation(f"it came with {describe_response(reply)}", evidence=http_evidence(reply, said))
    return judged
