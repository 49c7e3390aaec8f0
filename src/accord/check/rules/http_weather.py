"""Streamable HTTP in rough weather: requests that break off, come slowly, are long, or are none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from accord.check.posting import harmless
from accord.check.rule import HTTP, NotObserved, Rule
from accord.check.speech import http_headers
from accord.check.talk import Talk
from accord.check.values import shown
from accord.check.wires.socket import Socket, head
from accord.messages.base import JSONObject

_PLACES = ("basic/transports#sending-messages-to-the-server", "basic/transports/streamable-http#sending-messages")
_PAUSE = 0.02
_BODY = 5 << 20
_HEADER = 100_000
_HALF_OPEN = 50
_NO_REQUESTS = (
    b"\r\n\r\n",
    b"POST\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"POST /mcp HTTP/9.9\r\n\r\n",
)

CUT = Rule(
    "http/cut-requests",
    "must",
    "A client that is gone in the middle of something harms nobody: others are served.",
    at=_PLACES,
    since="2025-03-26",
    over=HTTP,
    cause="The error of a broken connection ends more than that connection: catch it where the request is read and "
    "where the answer is written.",
)


@CUT.case("a head that breaks off", kind="own")
async def _(talk: Talk) -> None:
    whole, _ = _post(talk, _request(talk))
    await _cut(talk, whole[: len(whole) // 2])


@CUT.case("a body that breaks off", kind="own")
async def _(talk: Talk) -> None:
    whole, body = _post(talk, _request(talk))
    await _cut(talk, whole + body[: len(body) // 2])


@CUT.case("ten clients that do not wait for the answer", kind="own")
async def _(talk: Talk) -> None:
    for _ in range(10):
        whole, body = _post(talk, _request(talk))
        await _cut(talk, whole + body)


@CUT.case("a stream whose client is gone", kind="own")
async def _(talk: Talk) -> None:
    wire = _url(talk)
    if talk.rules.handshake:
        sent = {"accept": "text/event-stream", "mcp-protocol-version": talk.revision}
        await _cut(talk, head("GET", wire, _known(talk) | sent), wait=True)
    else:
        whole, body = _post(talk, talk.message("subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
        await _cut(talk, whole + body, wait=True)


async def _cut(talk: Talk, data: bytes, *, wait: bool = False) -> None:
    """Say this on a connection of its own, and be gone; then others must be served."""
    socket = await Socket.open(_url(talk))
    socket.write(data)
    await socket.flushed(talk.settings.timeout)
    if wait:
        await socket.read(talk.settings.timeout, until=b"\r\n\r\n")
    socket.leave()
    await talk.tide()


SLOW = Rule(
    "http/slow-body",
    "must",
    "A body is read whole, however slowly its bytes come.",
    at=_PLACES,
    since="2025-03-26",
    over=HTTP,
    cause="What is there at the first read is taken for the body: read as much as Content-Length says.",
)


@SLOW.case("a body in five pieces, with pauses")
async def _(talk: Talk) -> None:
    message = _request(talk)
    whole, body = _post(talk, message)
    size = len(body) // 5 + 1
    pieces = [whole, *(body[start : start + size] for start in range(0, len(body), size))]
    _answered(talk, message, await _said(talk, *pieces, wanted=[_mark(message)]))


CHUNKED = Rule(
    "http/chunked",
    "should",
    "A body without a length, in chunks, is read, or refused with an error status.",
    at=_PLACES,
    since="2025-03-26",
    over=HTTP,
    cause="Without Content-Length the body is taken to be empty, or the server waits for it.",
)


@CHUNKED.case("a body in two chunks")
async def _(talk: Talk) -> None:
    message = _request(talk)
    body = msgspec.json.encode(message)
    parts = (body[: len(body) // 2], body[len(body) // 2 :], b"")
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    sent = head("POST", _url(talk), _headers(talk, message) | {"transfer-encoding": "chunked"})
    reply = await _said(talk, sent + chunks, wanted=[_mark(message)])
    if _status(reply) < 400:
        _answered(talk, message, reply)


BIG = Rule(
    "http/big-body",
    "should",
    "A body of 5 MB is read, or refused with an error status, and what follows is served.",
    at=_PLACES,
    since="2025-03-26",
    over=HTTP,
    cause="The error of a limit is not caught, or the connection hangs: answer 413.",
)


@BIG.case("a message of 5 MB", kind="own")
async def _(talk: Talk) -> None:
    message = _request(talk)
    message.setdefault("params", {}).setdefault("_meta", {})["com.example/filler"] = "x" * _BODY
    reply = await talk.post(message)
    await talk.tide()
    if not reply.status and not reply.error:
        raise talk.broken("nothing comes for a body of 5 MB")


LONG = Rule(
    "http/long-header",
    "should",
    "A header of 100 KB is read, or refused, and what follows is served.",
    at=_PLACES,
    since="2025-03-26",
    over=HTTP,
)


@LONG.case("a header of 100 KB", kind="own")
async def _(talk: Talk) -> None:
    message = _request(talk)
    whole, body = _post(talk, message, {"x-filler": "x" * _HEADER})
    await _cut_after(talk, whole + body, "a header of 100 KB")


NONSENSE = Rule(
    "http/nonsense",
    "should",
    "What is no HTTP request is refused, or the connection is closed, and what follows is served.",
    at=_PLACES,
    since="2025-03-26",
    over=HTTP,
)


@NONSENSE.case("four beginnings that are no request", kind="own")
async def _(talk: Talk) -> None:
    for nonsense in _NO_REQUESTS:
        socket = await Socket.open(_url(talk))
        socket.write(nonsense)
        await socket.flushed(talk.settings.timeout)
        reply = await socket.read(_PAUSE * 10, until=b"\r\n\r\n")
        socket.leave()
        if 0 < _status(reply) < 300:
            raise talk.broken(f"{nonsense!r} is answered with status {_status(reply)}")
        await talk.tide()


async def _cut_after(talk: Talk, data: bytes, what: str) -> None:
    """Say this on a connection of its own: it must not be waited for in vain, and others must be served."""
    socket = await Socket.open(_url(talk))
    socket.write(data)
    await socket.flushed(talk.settings.timeout)
    reply = await socket.read(talk.settings.timeout, until=b"\r\n\r\n")
    socket.leave()
    await talk.tide()
    if not reply:
        raise NotObserved(f"nothing was answered to {what}")


PIPELINED = Rule(
    "http/pipelined",
    "should",
    "Two requests that come at once on one connection are both answered, in their order.",
    at=_PLACES,
    since="2025-03-26",
    over=HTTP,
    cause="What was read beyond the end of the first request is thrown away.",
)


@PIPELINED.case("two requests in one piece")
async def _(talk: Talk) -> None:
    messages = [_request(talk), _request(talk)]
    sent = b"".join(part for message in messages for part in _post(talk, message))
    reply = await _said(talk, sent, wanted=[_mark(message) for message in messages], times=2)
    if b"\r\nconnection: close" in reply.lower() and reply.count(b'"jsonrpc"') < 2:
        raise NotObserved("it closes the connection after each answer")
    for message in messages:
        _answered(talk, message, reply)
    first, second = [reply.find(_mark(message)) for message in messages]
    if first > second:
        raise talk.broken("the second request is answered first")


HALF = Rule(
    "http/half-open",
    "should",
    "Fifty connections on which a request never comes to its end do not keep another client from being served.",
    at=_PLACES,
    since="2025-03-26",
    over=HTTP,
    cause="Each connection has a thread or a worker until its request is whole.",
)


@HALF.case("fifty requests that stop in the middle of their bodies", kind="own")
async def _(talk: Talk) -> None:
    whole, body = _post(talk, _request(talk))
    sockets = await asyncio.gather(*(Socket.open(_url(talk)) for _ in range(_HALF_OPEN)))
    for socket in sockets:
        socket.write(whole + body[:-1])
    try:
        await talk.tide()
    finally:
        for socket in sockets:
            socket.leave()
    await talk.tide()


async def _said(talk: Talk, *pieces: bytes, wanted: Sequence[bytes] = (), times: int = 1) -> bytes:
    """What comes for these bytes, piece by piece, on a connection of its own, until all that is wanted is there."""
    socket = await Socket.open(_url(talk))
    for piece in pieces:
        socket.write(piece)
        await socket.flushed(talk.settings.timeout)
        await asyncio.sleep(_PAUSE if len(pieces) > 1 else 0)
    reply = await socket.read(talk.settings.timeout, until=b'"jsonrpc"', times=times)
    for each in wanted:
        if each not in reply and _status(reply) < 400:
            reply += await socket.read(talk.settings.timeout, until=each)
    socket.leave()
    return reply


def _request(talk: Talk) -> JSONObject:
    """A harmless request, whose answer is known by its id wherever it stands."""
    return harmless(talk) | {"id": f"weather-{talk.next_id()}"}


def _post(talk: Talk, message: JSONObject, more: dict[str, str] | None = None) -> tuple[bytes, bytes]:
    """Head and body of a POST with this message."""
    body = msgspec.json.encode(message)
    sent = _headers(talk, message) | {"content-length": str(len(body))} | (more or {})
    return head("POST", _url(talk), sent), body


def _headers(talk: Talk, message: JSONObject) -> dict[str, str]:
    return _known(talk) | {name: value for name, value in http_headers(talk, message).items() if value is not None}


def _known(talk: Talk) -> dict[str, str]:
    """What every request of this conversation has."""
    assert talk.http is not None, "it is over HTTP"
    return talk.http.headers({})


def _url(talk: Talk) -> str:
    assert talk.http is not None, "it is over HTTP"
    return talk.http.url


def _status(reply: bytes) -> int:
    """The status of a response; 0 for what is none."""
    words = reply.split(b"\r\n", 1)[0].split(b" ")
    return int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/") and words[1].isdigit() else 0


def _mark(message: JSONObject) -> bytes:
    """How the answer bears its id, blanks apart."""
    return b'"id":%b' % msgspec.json.encode(message["id"])


def _answered(talk: Talk, message: JSONObject, reply: bytes) -> None:
    if _mark(message) not in reply.replace(b": ", b":") or b'"result"' not in reply:
        raise talk.broken(f"it is answered with {shown(reply[:300].decode(errors='replace'))}")
