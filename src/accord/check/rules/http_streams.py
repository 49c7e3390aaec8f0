"""Streamable HTTP: streams of events, how they begin and end, and how they are taken up again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from accord.check.engine.ordinary_traffic import call_tools
from accord.check.engine.rule import HTTP, JudgedItems, NotObserved, Violation, rule
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import LoggedResponse, MessageLog
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
    cause="The server keeps no events: without ids a broken stream loses the answer.",
)
def http_primed(logs: Sequence[MessageLog]) -> JudgedItems:
    """A stream begins with an event that has an id and no data, so that a client can come back."""
    for posted in posted_messages(logs):
        first = next(_events(posted.response), None)
        if posted.is_stream and first is not None and not _is_other_revision(posted):
            yield
            if first.id is None or first.data:
                raise posted.violation(f"a stream begins with {first.data[:80]!r} and the id {first.id!r}")


def _is_other_revision(posted: PostedMessage) -> bool:
    """Whether it is an initialize of a client that speaks another revision, which may not know events without data."""
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
    cause="The response is kept open after the answer: connections pile up at the client.",
)
async def http_stream_ends(probe: Probe) -> None:
    """A stream ends when the answer has been sent."""
    pending = probe.begin(probe.harmless_method)
    await pending.wait()
    response = probe.log.responses[pending.stream - 1]
    await probe.fence()
    await probe.wait_for_response_end(pending.stream)
    if not response.is_closed:
        raise Violation("the stream is still open long after the answer", evidence=http_evidence(response))


@rule(
    "http/event-ids",
    "must",
    case="the events of all streams",
    at=_RESUMING,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="Events are counted for each stream from 1: put the stream into the id.",
)
def http_event_ids(logs: Sequence[MessageLog]) -> JudgedItems:
    """The ids of events are unique over all streams of a session."""
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
    case="requests and progress of the server",
    at="basic/transports#multiple-connections",
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="Messages are written to every open stream of the session.",
)
def http_one_stream(logs: Sequence[MessageLog]) -> JudgedItems:
    """Each message comes on one stream only."""
    for log in logs:
        seen: dict[str, int] = {}
        for response in log.responses:
            for key in _unique_messages(response) if "last-event-id" not in response.request_headers else ():
                yield
                if seen.setdefault(key, response.stream) != response.stream:
                    raise Violation(f"two streams have the message {key}", evidence=http_evidence(response))


def _unique_messages(response: LoggedResponse) -> Iterator[str]:
    """Yield the keys of messages that are never sent twice: requests, and progress, which grows."""
    for message in response.messages:
        method = message.get("method") if isinstance(message, dict) else None
        if method is not None and ("id" in message or method == "notifications/progress"):
            yield preview_json(message)


@rule(
    "http/replay",
    "must",
    case="the stream of a call, once it has ended, from its first event on",
    kind="own",
    needs="tools",
    calls=True,
    at=_RESUMING,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="Last-Event-ID is looked up among the events of the whole session: keep events by stream.",
)
async def http_replay(probe: Probe) -> None:
    """A resumed stream continues with its own messages, and no others."""
    await call_tools(probe)
    stream, id = _resumable_stream(probe)
    assert probe.http is not None, "it is over HTTP"
    again = probe.http.open_stream({"Last-Event-ID": id, "MCP-Protocol-Version": probe.revision})
    await probe.fence()
    await probe.fence()
    own = [preview_json(message) for message in stream.messages]
    foreign = [message for message in again.messages if preview_json(message) not in own]
    if is_event_stream(again) and foreign:
        raise Violation(f"it was not said on that stream: {preview_json(foreign[0])}", evidence=http_evidence(again))
    if not is_event_stream(again):
        raise NotObserved(f"it cannot be taken up (HTTP {again.status})")


def _resumable_stream(probe: Probe) -> tuple[LoggedResponse, str]:
    """A stream that has ended, and the id of its first event. Raises `NotObserved` where there is none."""
    for response in probe.log.responses:
        ids = [event.id for event in _events(response) if event.id]
        if ids and response.is_closed and response.method == "POST":
            return response, ids[0]
    raise NotObserved("no stream of a call that ended has events with ids")


@rule(
    "http/disconnect-is-no-cancel",
    "should",
    case="a call at work whose stream is left, and taken up again",
    kind="own",
    needs="tools",
    calls=True,
    at=_SENDING,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="The handler is cancelled when the connection is gone, as web frameworks do by themselves.",
)
async def http_disconnect_is_no_cancel(probe: Probe) -> None:
    """A broken stream does not cancel its request: the client can resume it to get the answer."""
    call = await start_slow_call(probe)
    assert probe.http is not None, "it is over HTTP"
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
        raise NotObserved(f"it cannot be taken up (HTTP {again.status})")
    if answer is None or "error" in answer:
        text = (
            f"it is answered with {preview_json(answer['error'])}" if answer else "no answer comes when it is taken up"
        )
        raise Violation(text, evidence=http_evidence(again))


@rule(
    "http/no-requests",
    "must",
    case="all streams",
    at=_RECEIVING_2026,
    since="2026-07-28",
    over=HTTP,
    cause="Sampling, elicitation or roots are asked as in earlier revisions.",
)
def http_no_requests(logs: Sequence[MessageLog]) -> JudgedItems:
    """No requests of the server come on a stream: it asks with `input_required`."""
    for posted in posted_messages(logs):
        if posted.is_stream:
            yield
        for message in posted.response.messages:
            if isinstance(message, dict) and "method" in message and "id" in message:
                raise posted.violation(
                    f"it asks with a request: {preview_json(message.get('method'))}", "asks-by-request"
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
    """A stream says `X-Accel-Buffering: no`, so that proxies pass its events on at once."""
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
    """Last-Event-ID is ignored: streams are not resumed."""
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
    cause="The stream is closed when the handler fails, or by a timeout of the web server.",
)
def http_answered(logs: Sequence[MessageLog]) -> JudgedItems:
    """A stream does not end before the answer has come on it, unless a client can come back for it."""
    for posted in posted_messages(logs):
        asked = "id" in posted.request and "method" in posted.request
        if not (asked and posted.is_stream and posted.response.is_closed) or posted.response.error:
            continue
        yield
        answered = any(isinstance(each, dict) and "method" not in each for each in posted.response.messages)
        if not answered and not any(event.id for event in _events(posted.response)):
            raise posted.violation("a stream has ended without an answer, and without an id to come back with")
