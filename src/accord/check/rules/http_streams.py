"""Streamable HTTP: streams of events, how they begin and end, and how they are taken up again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from accord.check.exercise import call_all
from accord.check.posting import Posted, evidence, is_stream, posts
from accord.check.record import Record, Reply
from accord.check.rule import HTTP, Broken, NotObserved, Rule
from accord.check.slow import start_slow
from accord.check.talk import Talk
from accord.check.values import shown
from accord.wire.sse import Event

_SENDING = "basic/transports#sending-messages-to-the-server"
_RECEIVING_2026 = "basic/transports/streamable-http#receiving-messages"
_RESUMING = "basic/transports#resumability-and-redelivery"

PRIMED = Rule(
    "http/primed",
    "should",
    "A stream begins with an event that has an id and no data, so that a client can come back.",
    at=_SENDING,
    since="2025-11-25",
    until="2026-07-28",
    over=HTTP,
    cause="The server keeps no events: without ids a broken stream loses the answer.",
)


@PRIMED.reading("the streams of all requests")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for posted in posts(records):
        first = next(_events(posted.reply), None)
        if posted.streams and first is not None and not _asks_for_another(posted):
            judged += 1
            if first.id is None or first.data:
                raise posted.broken(f"a stream begins with {first.data[:80]!r} and the id {first.id!r}")
    return judged


def _asks_for_another(posted: Posted) -> bool:
    """Whether it is an initialize of a client that speaks another revision, which may not know events without data."""
    params = posted.request.get("params")
    asked = params.get("protocolVersion") if isinstance(params, dict) else None
    return posted.request.get("method") == "initialize" and asked != posted.record.revision


ENDS = Rule(
    "http/stream-ends",
    "should",
    "A stream ends when the answer has been sent.",
    at=(_SENDING, _RECEIVING_2026),
    since="2025-03-26",
    over=HTTP,
    cause="The response is kept open after the answer: connections pile up at the client.",
)


@ENDS.case("a request")
async def _(talk: Talk) -> None:
    pending = talk.begin(talk.harmless)
    await pending.answer()
    reply = talk.record.replies[pending.stream - 1]
    await talk.tide()
    await talk.settled(pending.stream)
    if not reply.ended:
        raise Broken("the stream is still open long after the answer", evidence=evidence(reply))


UNIQUE = Rule(
    "http/event-ids",
    "must",
    "The ids of events are unique over all streams of a session.",
    at=_RESUMING,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="Events are counted for each stream from 1: put the stream into the id.",
)


@UNIQUE.reading("the events of all streams")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        fresh = [reply for reply in record.replies if "last-event-id" not in reply.sent]
        ids = Counter(event.id for reply in fresh for event in _events(reply) if event.id)
        judged += len(ids)
        twice = [id for id, count in ids.items() if count > 1]
        if twice:
            reply = next(reply for reply in fresh for event in _events(reply) if event.id == twice[0])
            raise Broken(f"two events have the id {twice[0]!r}", evidence=evidence(reply))
    return judged


ONCE = Rule(
    "http/one-stream",
    "must",
    "Each message comes on one stream only.",
    at="basic/transports#multiple-connections",
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="Messages are written to every open stream of the session.",
)


@ONCE.reading("requests and progress of the server")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        seen: dict[str, int] = {}
        for reply in record.replies:
            for key in _marks(reply) if "last-event-id" not in reply.sent else ():
                judged += 1
                if seen.setdefault(key, reply.stream) != reply.stream:
                    raise Broken(f"two streams have the message {key}", evidence=evidence(reply))
    return judged


def _marks(reply: Reply) -> Iterator[str]:
    """Yield the keys of messages that are never sent twice: requests, and progress, which grows."""
    for message in reply.messages:
        method = message.get("method") if isinstance(message, dict) else None
        if method is not None and ("id" in message or method == "notifications/progress"):
            yield shown(message)


REPLAY = Rule(
    "http/replay",
    "must",
    "A resumed stream continues with its own messages, and no others.",
    at=_RESUMING,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="Last-Event-ID is looked up among the events of the whole session: keep events by stream.",
)


@REPLAY.case("the stream of a call, once it has ended, from its first event on", kind="own", needs="tools", calls=True)
async def _(talk: Talk) -> None:
    await call_all(talk)
    stream, id = _with_ids(talk)
    assert talk.http is not None, "it is over HTTP"
    again = talk.http.listen({"Last-Event-ID": id, "MCP-Protocol-Version": talk.revision})
    await talk.tide()
    await talk.tide()
    own = [shown(message) for message in stream.messages]
    foreign = [message for message in again.messages if shown(message) not in own]
    if is_stream(again) and foreign:
        raise Broken(f"it was not said on that stream: {shown(foreign[0])}", evidence=evidence(again))
    if not is_stream(again):
        raise NotObserved(f"it cannot be taken up (HTTP {again.status})")


def _with_ids(talk: Talk) -> tuple[Reply, str]:
    """A stream that has ended, and the id of its first event. Raises `NotObserved` where there is none."""
    for reply in talk.record.replies:
        ids = [event.id for event in _events(reply) if event.id]
        if ids and reply.ended and reply.method == "POST":
            return reply, ids[0]
    raise NotObserved("no stream of a call that ended has events with ids")


NO_CANCEL = Rule(
    "http/disconnect-is-no-cancel",
    "should",
    "A broken stream does not cancel its request: the client can resume it to get the answer.",
    at=_SENDING,
    since="2025-03-26",
    until="2026-07-28",
    over=HTTP,
    cause="The handler is cancelled when the connection is gone, as web frameworks do by themselves.",
)


@NO_CANCEL.case("a call at work whose stream is left, and taken up again", kind="own", needs="tools", calls=True)
async def _(talk: Talk) -> None:
    call = await start_slow(talk)
    assert talk.http is not None, "it is over HTTP"
    stream = talk.record.replies[call.stream - 1]
    last = next((event.id for event in reversed(list(_events(stream))) if event.id), None)
    if last is None:
        raise NotObserved("the events of its streams have no ids")
    talk.http.leave(call.stream)
    await talk.tide()
    answer = None
    for _ in range(2):  # the second time for what was kept and not sent on
        again = talk.http.listen({"Last-Event-ID": last, "MCP-Protocol-Version": talk.revision})
        answer = answer or await talk.hear(lambda message: "method" not in message and message.get("id") == call.id)
    if not is_stream(again):
        raise NotObserved(f"it cannot be taken up (HTTP {again.status})")
    if answer is None or "error" in answer:
        text = f"it is answered with {shown(answer['error'])}" if answer else "no answer comes when it is taken up"
        raise Broken(text, evidence=evidence(again))


NO_REQUESTS = Rule(
    "http/no-requests",
    "must",
    "No requests of the server come on a stream: it asks with `input_required`.",
    at=_RECEIVING_2026,
    since="2026-07-28",
    over=HTTP,
    cause="Sampling, elicitation or roots are asked as in earlier revisions.",
)


@NO_REQUESTS.reading("all streams")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for posted in posts(records):
        judged += posted.streams
        for message in posted.reply.messages:
            if isinstance(message, dict) and "method" in message and "id" in message:
                raise posted.broken(f"it asks with a request: {shown(message.get('method'))}", "asks-by-request")
    return judged


NO_BUFFERING = Rule(
    "http/no-buffering",
    "should",
    "A stream says `X-Accel-Buffering: no`, so that proxies pass its events on at once.",
    at=_RECEIVING_2026,
    since="2026-07-28",
    over=HTTP,
)


@NO_BUFFERING.reading("all streams")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for posted in posts(records):
        if posted.streams:
            judged += 1
            if posted.reply.headers.get("x-accel-buffering", "").lower() != "no":
                raise posted.broken("a stream has no X-Accel-Buffering: no")
    return judged


NOT_RESUMED = Rule(
    "http/last-event-id",
    "should",
    "Last-Event-ID is ignored: streams are not resumed.",
    at="basic/transports/streamable-http#earlier-streamable-http-revisions",
    since="2026-07-28",
    over=HTTP,
)


@NOT_RESUMED.case("a request with Last-Event-ID")
async def _(talk: Talk) -> None:
    answer = await talk.request("server/discover", headers={"Last-Event-ID": "1"})
    if answer.error is not None:
        raise talk.broken(f"a request with Last-Event-ID fails: {shown(answer.error)}")


def _events(reply: Reply) -> Iterator[Event]:
    return (event for event in reply.events if isinstance(event, Event))


ANSWERED = Rule(
    "http/answered",
    "should",
    "A stream does not end before the answer has come on it, unless a client can come back for it.",
    at=(_SENDING, _RECEIVING_2026),
    since="2025-03-26",
    over=HTTP,
    cause="The stream is closed when the handler fails, or by a timeout of the web server.",
)


@ANSWERED.reading("the streams of all requests")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for posted in posts(records):
        asked = "id" in posted.request and "method" in posted.request
        if not (asked and posted.streams and posted.reply.ended) or posted.reply.error:
            continue
        judged += 1
        answered = any(isinstance(each, dict) and "method" not in each for each in posted.reply.messages)
        if not answered and not any(event.id for event in _events(posted.reply)):
            raise posted.broken("a stream has ended without an answer, and without an id to come back with")
    return judged
