"""Streamable HTTP: the beginning, the end and the resumption of event streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from accord.check.engine.ordinary_traffic import call_tools
from accord.check.engine.rule import HTTP, JudgedItems, NotObserved, Violation, rule
from accord.check.probes.content import get_object, preview_json
from accord.check.probes.message_log import LoggedResponse, MessageLog, id_key
from accord.check.probes.probe import Probe
from accord.check.probes.raw_http import PostedMessage, http_evidence, is_event_stream, posted_messages
from accord.check.probes.slow_calls import start_slow_call
from accord.wire.sse import ServerSentEvent

_SENDING = "basic/transports#sending-messages-to-the-server"
_RECEIVING_2026 = "basic/transports/streamable-http#receiving-messages"
_RESUMING = "basic/transports#resumability-and-redelivery"


@rule(
    "http/primed",
    "should",
    case="the streams of all requests",
    at=_SENDING,
    since="2025-11-25",
    until="2026-07-28",
    over=HTTP,
    cause="The server stores no events: without ids, a broken stream loses the response.",
)
def http_primed(logs: Sequence[MessageLog]) -> JudgedItems:
    """A stream begins with an event that has an id and no data, so that a client can resume it."""
    for posted in posted_messages(logs):
        first = next(_events(posted.response), None)
        if posted.is_stream and first is not None and not _is_other_revision(posted):
            yield
            if first.id is None or first.data:
                raise posted.violation(f"a stream begins with {first.data[:80]!r} and the id {first.id!r}")


def _is_other_revision(posted: PostedMessage) -> bool:
    """Return whether it is an initialize in another revision, whose clients may not know events without data."""
    params = posted.request.get("params")
    asked = params.get("protocolVersion") if isinstance(params, dict) else None
    return posted.request.get("method") == "initialize" and asked != posted.log.revision


@rule(
    "http/stream-ends",
    "should",
    case="a request",
    at=(_SENDING, _RECEIVING_2026),
    since="2025-03-26",
    over=HTTP,
    cause="The response stays open after the JSON-RPC response: connections accumulate.",
)
async def http_stream_ends(probe: Probe) -> None:
    """A stream ends after the response to its request."""
    pending = probe.begin(probe.harmless_method)
    await pending.wait()
    response = probe.log.responses[pending.stream - 1]
    await probe.fence()
    await probe.wait_for_response_end(pending.stream)
    if not response.is_closed:
        raise Violation("the stream is open long after the response", evidence=http_evidence(response))


@rule(
    "http/event-ids",
    "must",
    case="the events of all streams",
    at=_RESUMING,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="Events are counted for each stream: put the stream into the id.",
)
def http_event_ids(logs: Sequence[MessageLog]) -> JudgedItems:
    """The ids of events are unique among all streams of a session."""
    for log in logs:
        fresh = [response for response in log.responses if "last-event-id" not in response.request_headers]
        ids = Counter(event.id for response in fresh for event in _events(response) if event.id)
        yield from ids
        twice = [id for id, count in ids.items() if count > 1]
        if twice:
            response = next(response for response in fresh for event in _events(response) if event.id == twice[0])
            raise Violation(f"two events have the id {twice[0]!r}", evidence=http_evidence(response))


@rule(
    "http/one-stream",
    "must",
    case="all requests and progress from the server",
    at="basic/transports#multiple-connections",
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="Messages are written to all open streams of the session.",
)
def http_one_stream(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server sends each message on one stream only."""
    for log in logs:
        seen: dict[str, int] = {}
        for response in log.responses:
            for key in _unique_messages(response) if "last-event-id" not in response.request_headers else ():
                yield
                if seen.setdefault(key, response.stream) != response.stream:
                    raise Violation(f"two streams have the message {key}", evidence=http_evidence(response))


def _unique_messages(response: LoggedResponse) -> Iterator[str]:
    """Yield the keys of messages that are never sent twice: requests, and progress, which increases."""
    for message in response.messages:
        method = message.get("method") if isinstance(message, dict) else None
        if method is not None and ("id" in message or method == "notifications/progress"):
            yield preview_json(message)


@rule(
    "http/replay",
    "must",
    case="an ended stream of a call, resumed from its first event",
    kind="own",
    needs="tools",
    calls=True,
    at=_RESUMING,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="Last-Event-ID is looked up among all events of the session: store events by stream.",
)
async def http_replay(probe: Probe) -> None:
    """A resumed stream continues with its own messages only."""
    await call_tools(probe)
    stream, id = _resumable_stream(probe)
    assert probe.http is not None, "the transport is HTTP"
    again = probe.http.open_stream({"Last-Event-ID": id, "MCP-Protocol-Version": probe.revision})
    await probe.fence()
    await probe.fence()
    own = [preview_json(message) for message in stream.messages]
    foreign = [message for message in again.messages if preview_json(message) not in own]
    if is_event_stream(again) and foreign:
        raise Violation(f"a message of another stream came: {preview_json(foreign[0])}", evidence=http_evidence(again))
    if not is_event_stream(again):
        raise NotObserved(f"the stream cannot be resumed (HTTP {again.status})")


def _resumable_stream(probe: Probe) -> tuple[LoggedResponse, str]:
    """Return an ended stream and the id of its first event. Raises `NotObserved` if there is none."""
    for response in probe.log.responses:
        ids = [event.id for event in _events(response) if event.id]
        if ids and response.is_closed and response.method == "POST":
            return response, ids[0]
    raise NotObserved("no ended stream of a call has events with ids")


@rule(
    "http/disconnect-is-no-cancel",
    "should",
    case="a running call whose stream is disconnected and resumed",
    kind="own",
    needs="tools",
    calls=True,
    at=_SENDING,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="The handler is cancelled when the client disconnects, the default of web frameworks.",
)
async def http_disconnect_is_no_cancel(probe: Probe) -> None:
    """A broken stream does not cancel its request: the client can resume it and get the response."""
    call = await start_slow_call(probe)
    assert probe.http is not None, "the transport is HTTP"
    stream = probe.log.responses[call.stream - 1]
    last = next((event.id for event in reversed(list(_events(stream))) if event.id), None)
    if last is None:
        raise NotObserved("the events of its streams have no ids")
    probe.http.close_stream(call.stream)
    await probe.fence()
    answer = None
    for _ in range(2):  # the second time for what was kept and not sent on
        again = probe.http.open_stream({"Last-Event-ID": last, "MCP-Protocol-Version": probe.revision})
        answer = answer or await probe.wait_for_message(
            lambda message: "method" not in message and message.get("id") == call.id
        )
    if not is_event_stream(again):
        raise NotObserved(f"the stream cannot be resumed (HTTP {again.status})")
    if answer is None or "error" in answer:
        text = (
            f"the server answered with {preview_json(answer['error'])}"
            if answer
            else "no response on the resumed stream"
        )
        raise Violation(text, evidence=http_evidence(again))


@rule(
    "http/no-requests",
    "must",
    case="all streams",
    at=_RECEIVING_2026,
    since="2026-07-28",
    over=HTTP,
    cause="Sampling, elicitation or roots are requested as in earlier revisions.",
)
def http_no_requests(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server sends no requests on a stream: it returns `input_required`."""
    for posted in posted_messages(logs):
        if posted.is_stream:
            yield
        for message in posted.response.messages:
            if isinstance(message, dict) and "method" in message and "id" in message:
                raise posted.violation(
                    f"the server sent the request {preview_json(message.get('method'))}", "asks-by-request"
                )


@rule(
    "http/no-buffering",
    "should",
    case="all streams",
    at=_RECEIVING_2026,
    since="2026-07-28",
    over=HTTP,
)
def http_no_buffering(logs: Sequence[MessageLog]) -> JudgedItems:
    """A stream has the header `X-Accel-Buffering: no`, so that proxies forward its events immediately."""
    for posted in posted_messages(logs):
        if posted.is_stream:
            yield
            if posted.response.headers.get("x-accel-buffering", "").lower() != "no":
                raise posted.violation("a stream has no X-Accel-Buffering: no")


@rule(
    "http/last-event-id",
    "should",
    case="a request with Last-Event-ID",
    at="basic/transports/streamable-http#earlier-streamable-http-revisions",
    since="2026-07-28",
    over=HTTP,
)
async def http_last_event_id(probe: Probe) -> None:
    """The server ignores Last-Event-ID: streams are not resumed."""
    answer = await probe.request("server/discover", headers={"Last-Event-ID": "1"})
    if answer.error is not None:
        raise probe.violation(f"a request with Last-Event-ID fails: {preview_json(answer.error)}")


def _events(response: LoggedResponse) -> Iterator[ServerSentEvent]:
    return (event for event in response.events if isinstance(event, ServerSentEvent))


@rule(
    "http/answered",
    "should",
    case="the streams of all requests",
    at=(_SENDING, _RECEIVING_2026),
    since="2025-03-26",
    over=HTTP,
    depends_on_timing=True,
    cause="The stream is closed when the handler fails, or by a timeout of the web server.",
)
def http_answered(logs: Sequence[MessageLog]) -> JudgedItems:
    """A stream does not end before its response, unless the client can resume it."""
    for posted in posted_messages(logs):
        asked = "id" in posted.request and "method" in posted.request
        if not (asked and posted.is_stream and posted.response.is_closed) or posted.response.error:
            continue
        answered = any(isinstance(each, dict) and "method" not in each for each in posted.response.messages)
        if not answered and _may_stay_unanswered(posted):
            continue
        yield
        if not answered and not any(event.id for event in _events(posted.response)):
            raise posted.violation("a stream ended without a response and without an id for resumption")


def _may_stay_unanswered(posted: PostedMessage) -> bool:
    """Return whether the checker cancelled the request or ended its session, or its case passed when it ran alone."""
    if posted.response.session_ended or posted.entry.case in posted.log.unconfirmed:
        return True
    id = id_key(posted.request["id"])
    return any(
        message.get("method") == "notifications/cancelled"
        and id_key(get_object(message, "params").get("requestId")) == id
        for message in posted.log.sent_messages()
    )
