"""HTTP+SSE (2024-11-05) as a client speaks it: where it posts, how it reads the stream, and when it comes to that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from accord.check.clients.ask import Ask, encoded
from accord.check.clients.carried import bodies, is_first_use, what
from accord.check.clients.run import PATH, Run
from accord.check.clients.scene import FIRST, Answer, Scene
from accord.check.clients.streams import Stream, Streams
from accord.check.clients.web import Exchange, Reply
from accord.check.rule import SSE, Broken, NotObserved, Rule
from accord.wire.sse import encode
from accord.wire.transcript import SENT

_PLACE = "basic/transports#http-with-sse"
_UNTIL = "2025-03-26"
_PATIENCE = 10.0
"""Seconds: what cannot be posted any more is not heard, while a client gives up one call after the other."""

ENDPOINT = Rule(
    "client-sse/endpoint",
    "must",
    "Every message is a POST to the URI that the event `endpoint` names, and none goes before it has come.",
    at=_PLACE,
    role="client",
    until=_UNTIL,
    over=SSE,
    cause="The place to post to is made up, loses its query, or is put together with the URL of the stream.",
)

EVENTS = Rule(
    "client-sse/events",
    "must",
    "The stream is read as the standard says: comments, every kind of line end, data in several lines, and events "
    "without a name, which are messages.",
    at=_PLACE,
    role="client",
    until=_UNTIL,
    over=SSE,
    cause="The stream is split at blank lines, and every part is taken for one line of JSON.",
)

SAME_ORIGIN = Rule(
    "client-sse/same-origin",
    "should",
    "Nothing is posted to a place that has another origin than the stream.",
    at=_PLACE,
    role="client",
    until=_UNTIL,
    over=SSE,
    cause="The URI in the event is used as it is, and what the client has of secrets goes wherever a server wants.",
)

REFUSED = Rule(
    "client-sse/refused",
    "should",
    "A POST that is refused is an error for whoever asked.",
    at="basic/lifecycle#error-handling",
    role="client",
    until=_UNTIL,
    over=SSE,
    cause="The status of the POST is not looked at, and the answer is waited for on the stream.",
)

CUT = Rule(
    "client-sse/cut",
    "may",
    "The end of the stream is an error for whoever waits for an answer on it.",
    at=_PLACE,
    role="client",
    until=_UNTIL,
    over=SSE,
    cause="The task that reads the stream ends, and nobody is told.",
)

FALLBACK = Rule(
    "client-sse/fallback",
    "should",
    "A client that looks for older servers does so after each of the statuses 400, 404 and 405 for its first POST.",
    at="https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#backwards-compatibility",
    role="client",
    until=_UNTIL,
    over=SSE,
    cause="Only one status is taken as the sign of an older server.",
)


@ENDPOINT.reading("every message")
def _(runs: Sequence[Run]) -> int:
    judged = 0
    for run in runs:
        for each in _after_stream(run):
            judged += 1
            if each.verb != "POST" or each.target not in run.places:
                told = f"{what(each)} came by {each.verb} {each.target}; to be posted to was {_named(run)}"
                raise Broken(told, evidence=[each.line()])
    return judged


def _after_stream(run: Run) -> Iterator[Exchange]:
    """What carries messages, but for what is posted to the stream's own URL before: the try of a newer transport."""
    streams = [each for each in run.exchanges if each.verb == "GET" and each.status == 200]
    for each in run.exchanges:
        tries = not streams or (each.at < streams[0].at and each.path == streams[0].path)
        if not tries and any("jsonrpc" in one for one in bodies(each)):
            yield each


def _named(run: Run) -> str:
    return ", ".join(sorted(run.places)) or "nowhere, as the stream had not said it"


ABSOLUTE = Scene("endpoint-absolute", "the place to post to is a whole URL", until=_UNTIL, over=SSE)


@ABSOLUTE.over_http
async def _(streams: Streams, exchange: Exchange, reply: Reply) -> bool:
    if not _opens(streams, exchange):
        return False
    place = streams.place()
    await streams.stream(exchange, reply, place, encode((streams.site.url + place).encode(), event="endpoint"))
    return True


@ABSOLUTE.judges(ENDPOINT, "a place that is a whole URL")
def _(run: Run) -> None:
    run.as_usual()


# --- the stream --------------------------------------------------------------------------------------------------

SHAPED = Scene("stream-events", "a stream with everything that an event stream may have", until=_UNTIL, over=SSE)


@SHAPED.over_http
async def _(streams: Streams, exchange: Exchange, reply: Reply) -> bool:
    if not _opens(streams, exchange):
        return False
    place = streams.place()
    beginning = (b": welcome\n\nretry: 1000\n\n", b"event: endpo", b"int\r\ndata:" + place.encode() + b"\r\n\r\n")
    await streams.stream(exchange, reply, place, *beginning)
    return True


@SHAPED.on(FIRST, "tools/list", "tools/call")
async def _(ask: Ask) -> Answer:
    answer = encoded(ask.answer(await ask.usual()))
    ask.conversation.record.add(SENT, answer)
    for piece in _pieces(answer):
        await _stream(ask).reply.piece(piece)
    return None


def _pieces(answer: bytes) -> list[bytes]:
    """One answer as events, cut where it is awkward."""
    middle = answer.index(b",") + 1  # data in two lines is joined by a newline, which is a space in JSON
    return [
        b":\r\n\r\nevent: com.example/unheard-of\nda",
        b"ta: not for you\n\nid: check/1\r\nda",
        b"ta: " + answer[:middle] + b"\r\ndata:" + answer[middle:] + b"\r\n\r\n",
    ]


@SHAPED.judges(EVENTS, "comments, CRLF, data in two lines, an event without a name")
def _(run: Run) -> None:
    run.as_usual()


ENDING = Scene("stream-cut", "the stream breaks before an answer", until=_UNTIL, over=SSE, patience=_PATIENCE)


@ENDING.on(FIRST)
async def _(ask: Ask) -> Answer:
    await ask.way.drop()
    return None


@ENDING.judges(CUT, "a stream that breaks before the answer")
def _(run: Run) -> None:
    run.got_away()


# --- where it posts ----------------------------------------------------------------------------------------------

ELSEWHERE = Scene("endpoint-elsewhere", "the place to post to has another origin", until=_UNTIL, over=SSE)


@ELSEWHERE.over_http
async def _(streams: Streams, exchange: Exchange, reply: Reply) -> bool:
    if not _opens(streams, exchange):
        return False
    await streams.stream(exchange, reply, "", encode(streams.stand.trap.encode(), event="endpoint"))
    return True


@ELSEWHERE.judges(SAME_ORIGIN, "a place of another origin")
def _(run: Run) -> None:
    run.reached()
    for each in run.strays:
        raise Broken(f"{what(each)} was sent to the other origin", evidence=[each.line()])


FAILING = Scene("post-refused", "a POST is answered with 500", until=_UNTIL, over=SSE, patience=_PATIENCE)


@FAILING.over_http
async def _(streams: Streams, exchange: Exchange, reply: Reply) -> bool:
    if not is_first_use(streams.stand, exchange):
        return False
    await reply.whole(500, b"it went wrong", content_type="text/plain")
    return True


@FAILING.judges(REFUSED, "500 for a POST")
def _(run: Run) -> None:
    run.got_away()


def _opens(streams: Streams, exchange: Exchange) -> bool:
    """Whether it asks for the stream, from where on the scene is under way."""
    if exchange.verb != "GET" or exchange.path != streams.path:
        return False
    streams.stand.turned()
    return True


def _stream(ask: Ask) -> Stream:
    """The stream of it. Scenes that use it are played over HTTP+SSE alone."""
    way: Any = ask.way
    assert isinstance(way, Stream)
    return way


# --- how it comes to that ----------------------------------------------------------------------------------------


def _older(status: int) -> Scene:
    """A server of this transport where the client may expect the newer one."""
    says = f"an older server, which answers {status} to a POST"
    scene = Scene(f"older-server-{status}", says, until=_UNTIL, over=SSE, path=PATH)

    @scene.over_http
    async def _(streams: Streams, exchange: Exchange, reply: Reply) -> bool:
        if exchange.verb != "POST" or exchange.path != PATH:
            return False
        await reply.whole(status)
        return True

    @scene.judges(FALLBACK, says)
    def _(run: Run) -> None:
        looks = any(each.verb == "GET" for each in run.exchanges)
        if not looks and not _tries_first(run.usual):
            raise NotObserved("the client does not look for an older server by itself")
        if not looks:
            raise Broken(f"after {status} the client did not try GET", evidence=[each.line() for each in run.exchanges])
        run.as_usual()

    return scene


BAD_REQUEST, NOT_FOUND, NOT_ALLOWED = _older(400), _older(404), _older(405)


def _tries_first(run: Run) -> bool:
    """Whether the client tried the newer transport before this one."""
    return bool(run.exchanges) and run.exchanges[0].verb == "POST"
