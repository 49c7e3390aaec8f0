"""Requests that are written byte by byte, on connections of their own, for rules about rough weather over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec

from accord.check.posting import REFUSED, harmless
from accord.check.rule import Broken, NotObserved
from accord.check.speech import http_headers
from accord.check.talk import Talk
from accord.check.values import shown
from accord.check.wires.socket import Socket, head
from accord.messages.base import JSONObject

PAUSE = 0.02
"""Seconds between the pieces of what is sent slowly."""


@asynccontextmanager
async def connection(talk: Talk) -> AsyncIterator[Socket]:
    """A connection to the server. What is found broken meanwhile has as evidence what passed on it, too.

    Raises `ConnectError`.
    """
    if talk.settings.passive:
        raise NotObserved("no connection was opened beside those of messages (--passive)")
    socket = await open_socket(talk)
    try:
        yield socket
    except Broken as exc:
        exc.evidence = (*socket.evidence(), *exc.evidence)
        raise
    finally:
        socket.leave()


async def open_socket(talk: Talk) -> Socket:
    """One that whoever opens it has to leave. Raises `ConnectError`."""
    return await Socket.open(_url(talk))


async def say(talk: Talk, socket: Socket, *pieces: bytes) -> None:
    """Send these, with pauses between them."""
    for number, piece in enumerate(pieces):
        await asyncio.sleep(PAUSE if number else 0)
        await socket.write(piece, talk.settings.timeout)


async def answers(talk: Talk, socket: Socket, requests: Sequence[JSONObject]) -> bytes:
    """What comes, until it has the answers to these requests, or an error status."""
    seconds = talk.settings.timeout
    reply = await socket.read(seconds, until=b'"jsonrpc"', times=len(requests))
    for request in requests:
        begun = reply.count(b'"jsonrpc"') == len(requests) and status(reply) < REFUSED
        if begun and not socket.closed and _mark(request) not in _tight(reply):
            reply += await socket.read(seconds, until=msgspec.json.encode(request["id"]))
    return reply


def in_order(requests: Sequence[JSONObject], reply: bytes) -> None:
    """Raises `Broken` unless each request has a result there, the first one first."""
    found = [_tight(reply).find(_mark(request)) for request in requests]
    if min(found) < 0 or reply.count(b'"result"') < len(requests):
        missing = "" if max(found) < 0 else f"one of {len(requests)} requests is not answered, "
        raise Broken(f"{missing}what comes is {shown(reply[:300].decode(errors='replace'))}")
    if found != sorted(found):
        raise Broken("the second request is answered first")


def status(reply: bytes) -> int:
    """The status of a response; 0 for what is none."""
    words = reply.split(b"\r\n", 1)[0].split(b" ")
    return int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/") and words[1].isdigit() else 0


def request(talk: Talk) -> JSONObject:
    """A harmless request, whose answer is known by its id wherever it stands."""
    return harmless(talk) | {"id": f"weather-{talk.next_id()}"}


def post(talk: Talk, message: JSONObject, more: dict[str, str] | None = None) -> tuple[bytes, bytes]:
    """Head and body of a POST with this message, and with these headers beside the usual ones."""
    body = msgspec.json.encode(message)
    sent = _usual(talk, message) | {"content-length": str(len(body))} | (more or {})
    return head("POST", _url(talk), sent), body


def post_in_chunks(talk: Talk, message: JSONObject) -> bytes:
    """A POST whose body has no length, and comes in two chunks."""
    body = msgspec.json.encode(message)
    parts = (body[: len(body) // 2], body[len(body) // 2 :], b"")
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return head("POST", _url(talk), _usual(talk, message) | {"transfer-encoding": "chunked"}) + chunks


def get_stream(talk: Talk) -> bytes:
    """A GET that opens a stream."""
    sent = {"accept": "text/event-stream", "mcp-protocol-version": talk.revision}
    return head("GET", _url(talk), _known(talk) | sent)


def _usual(talk: Talk, message: JSONObject) -> dict[str, str]:
    return _known(talk) | {name: value for name, value in http_headers(talk, message).items() if value is not None}


def _known(talk: Talk) -> dict[str, str]:
    """What every request of this conversation has."""
    assert talk.http is not None, "it is over HTTP"
    return talk.http.headers({})


def _url(talk: Talk) -> str:
    assert talk.http is not None, "it is over HTTP"
    return talk.http.url


def _mark(message: JSONObject) -> bytes:
    """How the answer bears its id, blanks apart."""
    return b'"id":%b' % msgspec.json.encode(message["id"])


def _tight(reply: bytes) -> bytes:
    return reply.replace(b'": ', b'":')
