"""Requests that are written byte by byte, on connections of their own, for rules about rough weather over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec

from accord.check.client_messages import http_headers
from accord.check.http_responses import FIRST_ERROR_STATUS, harmless_request
from accord.check.probe import Probe
from accord.check.rule import NotObserved, Violation
from accord.check.values import preview_json
from accord.check.wires.socket import Socket, head
from accord.messages.base import JSONObject

PAUSE = 0.02
"""Seconds between the pieces of what is sent slowly."""


@asynccontextmanager
async def raw_connection(talk: Probe) -> AsyncIterator[Socket]:
    """A connection to the server. What is found broken meanwhile has as evidence what passed on it, too.

    Raises `ConnectError`.
    """
    if talk.settings.passive:
        raise NotObserved("no connection was opened beside those of messages (--passive)")
    socket = await open_socket(talk)
    try:
        yield socket
    except Violation as exc:
        exc.evidence = (*socket.evidence(), *exc.evidence)
        raise
    finally:
        socket.abort()


async def open_socket(talk: Probe) -> Socket:
    """One that whoever opens it has to leave. Raises `ConnectError`."""
    return await Socket.open(_url(talk))


async def send_pieces(talk: Probe, socket: Socket, *pieces: bytes) -> None:
    """Send these, with pauses between them."""
    for number, piece in enumerate(pieces):
        await asyncio.sleep(PAUSE if number else 0)
        await socket.write(piece, talk.settings.timeout)


async def read_responses(talk: Probe, socket: Socket, requests: Sequence[JSONObject]) -> bytes:
    """What comes, until it has the answers to these requests, or an error status."""
    seconds = talk.settings.timeout
    reply = await socket.read(seconds, until=b'"jsonrpc"', times=len(requests))
    for request in requests:
        begun = reply.count(b'"jsonrpc"') == len(requests) and parse_status(reply) < FIRST_ERROR_STATUS
        if begun and not socket.closed and _id_bytes(request) not in _without_blanks(reply):
            reply += await socket.read(seconds, until=msgspec.json.encode(request["id"]))
    return reply


def require_ordered_results(requests: Sequence[JSONObject], reply: bytes) -> None:
    """Raises `Violation` unless each request has a result there, the first one first."""
    found = [_without_blanks(reply).find(_id_bytes(request)) for request in requests]
    if min(found) < 0 or reply.count(b'"result"') < len(requests):
        missing = "" if max(found) < 0 else f"one of {len(requests)} requests is not answered, "
        raise Violation(f"{missing}what comes is {preview_json(reply[:300].decode(errors='replace'))}")
    if found != sorted(found):
        raise Violation("the second request is answered first")


def parse_status(reply: bytes) -> int:
    """The status of a response; 0 for what is none."""
    words = reply.split(b"\r\n", 1)[0].split(b" ")
    return int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/") and words[1].isdigit() else 0


def traceable_request(talk: Probe) -> JSONObject:
    """A harmless request, whose answer is known by its id wherever it stands."""
    return harmless_request(talk) | {"id": f"weather-{talk.next_id()}"}


def encode_post(talk: Probe, message: JSONObject, more: dict[str, str] | None = None) -> tuple[bytes, bytes]:
    """Head and body of a POST with this message, and with these headers beside the usual ones."""
    body = msgspec.json.encode(message)
    sent = _message_headers(talk, message) | {"content-length": str(len(body))} | (more or {})
    return head("POST", _url(talk), sent), body


def encode_chunked_post(talk: Probe, message: JSONObject) -> bytes:
    """A POST whose body has no length, and comes in two chunks."""
    body = msgspec.json.encode(message)
    parts = (body[: len(body) // 2], body[len(body) // 2 :], b"")
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return head("POST", _url(talk), _message_headers(talk, message) | {"transfer-encoding": "chunked"}) + chunks


def encode_get(talk: Probe) -> bytes:
    """A GET that opens a stream."""
    sent = {"accept": "text/event-stream", "mcp-protocol-version": talk.revision}
    return head("GET", _url(talk), _session_headers(talk) | sent)


def _message_headers(talk: Probe, message: JSONObject) -> dict[str, str]:
    return _session_headers(talk) | {
        name: value for name, value in http_headers(talk, message).items() if value is not None
    }


def _session_headers(talk: Probe) -> dict[str, str]:
    """What every request of this conversation has."""
    assert talk.http is not None, "it is over HTTP"
    return talk.http.build_headers({})


def _url(talk: Probe) -> str:
    assert talk.http is not None, "it is over HTTP"
    return talk.http.url


def _id_bytes(message: JSONObject) -> bytes:
    """How the answer bears its id, blanks apart."""
    return b'"id":%b' % msgspec.json.encode(message["id"])


def _without_blanks(reply: bytes) -> bytes:
    return reply.replace(b'": ', b'":')
