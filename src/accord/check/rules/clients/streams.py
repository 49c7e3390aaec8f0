"""Answers over HTTP in all the ways they may come: as JSON, as events, in pieces, broken off, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.clients.ask import Ask, encoded
from accord.check.clients.endpoint import Endpoint, Post
from accord.check.clients.run import Run
from accord.check.clients.scene import FIRST, Answer, Scene
from accord.check.clients.web import Exchange, Reply
from accord.check.rule import HTTP, Broken, NotObserved, Rule
from accord.messages.revision import RULES

_SINCE = "2026-07-28"
_RETRY_MS = 600
_PRIME = "check/1:prime"
"""The id of an event that has nothing else."""

FORMS = Rule(
    "client-http/both-forms",
    "must",
    "An answer is understood as JSON and as a stream of events.",
    at=("basic/transports#sending-messages-to-the-server", "basic/transports/streamable-http#sending-messages"),
    role="client",
    over=HTTP,
    cause="Only one of them is read.",
)

EVENTS = Rule(
    "client-http/events",
    "must",
    "Streams of events are read as the standard says: comments, every kind of line end, data in several lines, and "
    "events without data.",
    at=(
        "basic/transports#listening-for-messages-from-the-server",
        "basic/transports/streamable-http#receiving-messages",
    ),
    role="client",
    over=HTTP,
    cause="The stream is split at blank lines, and every part is taken for one line of JSON.",
)

RESUMED = Rule(
    "client-http/resume",
    "should",
    "A stream that ends before its answer is taken up again by GET with the id of the last event.",
    at="basic/transports#resumability-and-redelivery",
    role="client",
    since="2025-03-26",
    until=_SINCE,
    over=HTTP,
    cause="The end of the stream is taken for the end of the request.",
)

PATIENT = Rule(
    "client-http/retry",
    "must",
    "A client comes back to a stream no sooner than its `retry` says.",
    at="basic/transports#sending-messages-to-the-server",
    role="client",
    since="2025-11-25",
    until=_SINCE,
    over=HTTP,
    cause="`retry` is not read, or taken for seconds.",
)

NOT_RESUMED = Rule(
    "client-http/no-resumption",
    "must",
    "Streams are not taken up again: no Last-Event-ID, and no GET.",
    at="basic/transports/streamable-http#earlier-streamable-http-revisions",
    role="client",
    since=_SINCE,
    over=HTTP,
    cause="What older revisions have is used with a server of this one.",
)

ERRORS = Rule(
    "client-http/server-errors",
    "should",
    "An HTTP error in place of an answer is an error for whoever asked.",
    at="basic/lifecycle#error-handling",
    role="client",
    over=HTTP,
    cause="Only the body is looked at, or an error in the task that reads ends all others.",
)

ODD = Rule(
    "client-http/odd-answers",
    "may",
    "A response that is no answer is an error for whoever asked, at once.",
    at="basic/lifecycle#timeouts",
    role="client",
    over=HTTP,
    cause="What cannot be read is logged, and the one who waits for it is told nothing.",
)

CUT = Rule(
    "client-http/cut",
    "may",
    "A connection that breaks before the answer is an error for whoever asked, at once.",
    at="basic/lifecycle#timeouts",
    role="client",
    over=HTTP,
    cause="The end of the stream leaves the call without an end.",
)

STREAMED = Scene("streams", "every answer is a stream of events", over=HTTP, stream=True)


@STREAMED.on("initialize", "server/discover", FIRST)
async def _(ask: Ask) -> Answer:
    return await ask.usual()


@STREAMED.judges(FORMS, "answers that are streams of events")
def _(run: Run) -> None:
    run.as_usual()


SHAPED = Scene("events", "streams with everything that an event stream may have", over=HTTP)


@SHAPED.on(FIRST, "tools/list", "tools/call")
async def _(ask: Ask) -> Answer:
    answer = encoded(ask.answer(await ask.usual()))
    post = _post(ask)
    await post.begin()
    for piece in _pieces(answer):
        await post.reply.piece(piece)
    await post.reply.end()
    return None


def _pieces(answer: bytes) -> list[bytes]:
    """One answer as an event stream, cut where it is awkward."""
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


@SHAPED.judges(EVENTS, "comments, CRLF, data in two lines, an event of another name")
def _(run: Run) -> None:
    run.as_usual()


# --- streams that break ------------------------------------------------------------------------------------------

BROKEN = Scene(
    "dropped-stream",
    "a stream ends before its answer, and says when to come back",
    since="2025-03-26",
    until=_SINCE,
    over=HTTP,
)


@BROKEN.on(FIRST)
async def _(ask: Ask) -> Answer:
    ask.conversation.stand.kept["answer"] = encoded(ask.answer(await ask.usual()))
    post = _post(ask)
    await post.begin()
    await post.event(b"", id=_PRIME, retry=_RETRY_MS)
    await post.reply.end()
    return None


@BROKEN.over_http
async def _(endpoint: Endpoint, exchange: Exchange, reply: Reply) -> bool:
    if exchange.verb != "GET" or exchange.headers.get("last-event-id") != _PRIME:
        return False
    post = Post(endpoint, exchange, reply)
    await post.begin()
    await post.event(endpoint.stand.kept["answer"], id="check/1:answer")
    await reply.end()
    return True


@BROKEN.judges(RESUMED, "a stream that ends after an event without data")
def _(run: Run) -> None:
    if not _returns(run) and not RULES[run.revision].primes_streams:
        raise NotObserved("the client does not resume, which it may leave")
    if not _returns(run):
        raise Broken(
            "the client did not come back to the stream", evidence=[each.line() for each in run.exchanges[-4:]]
        )
    run.as_usual()


@BROKEN.judges(PATIENT, f"a stream that asks to come back in {_RETRY_MS} ms")
def _(run: Run) -> None:
    run.reached()
    returns = _returns(run)
    if not returns:
        raise NotObserved("the client did not come back to the stream")
    primed = [each.ended for each in run.exchanges if each.ended is not None and each.ended < returns[0].at]
    waited = returns[0].at - max(primed, default=0.0)
    if waited < _RETRY_MS / 1000 * 0.9:
        raise Broken(f"the client came back after {waited * 1000:.0f} ms", evidence=[returns[0].line()])


def _returns(run: Run) -> list[Exchange]:
    run.survived()
    return [each for each in run.exchanges if each.headers.get("last-event-id") == _PRIME]


@NOT_RESUMED.reading("every request")
def _(runs: Sequence[Run]) -> int:
    for run in runs:
        for each in run.exchanges:
            if "last-event-id" in each.headers:
                raise Broken("Last-Event-ID was sent", evidence=[each.line()])
    return sum(len(run.posts()) for run in runs)


def _failing(rule: Rule, name: str, says: str, status: int, body: bytes, kind: str) -> Scene:
    """The first request is answered by a web server, not by MCP."""
    scene = Scene(name, says, over=HTTP)

    @scene.on(FIRST)
    async def _(ask: Ask) -> Answer:
        await _post(ask).reply.whole(status, body, content_type=kind)
        return None

    @scene.judges(rule, says)
    def _(run: Run) -> None:
        run.got_away()

    return scene


_PAGE = b"<!doctype html><title>502 Bad Gateway</title><h1>Bad Gateway</h1>"

GATEWAY = _failing(ERRORS, "bad-gateway", "502 and a page of HTML", 502, _PAGE, "text/html")
INTERNAL = _failing(ERRORS, "server-error", "500 without a body", 500, b"", "text/plain")
FOREIGN = _failing(ODD, "web-page", "200 and a page of HTML", 200, _PAGE, "text/html")
NO_JSON = _failing(
    ODD, "no-json", "200 and JSON that is cut off", 200, b'{"jsonrpc":"2.0","id":1,"resu', "application/json"
)
EMPTY = _failing(ODD, "accepted", "202 without an answer", 202, b"", "text/plain")


def _breaking(name: str, says: str, beginning: bytes | None) -> Scene:
    """The connection breaks after these bytes of a stream; before any where there are none."""
    scene = Scene(name, says, over=HTTP)

    @scene.on(FIRST)
    async def _(ask: Ask) -> Answer:
        post = _post(ask)
        if beginning is not None:
            await post.begin()
            await post.reply.piece(beginning)
        await post.drop()
        return None

    @scene.judges(CUT, says)
    def _(run: Run) -> None:
        run.got_away()

    return scene


CUT_EARLY = _breaking("cut-early", "the connection breaks before the response", None)
CUT_MIDDLE = _breaking("cut-middle", "the connection breaks in the middle of an event", b'data: {"jsonrpc":"2.0",')


def _post(ask: Ask) -> Post:
    """The response to it. Scenes that use it are played over HTTP alone."""
    way: Any = ask.way
    assert isinstance(way, Post)
    return way
