"""Streamable HTTP in rough weather: requests of unusual forms, requests that are very long, and what is no request."""

from __future__ import annotations

from accord.check.http_responses import FIRST_ERROR_STATUS
from accord.check.probe import Probe
from accord.check.raw_http import (
    PAUSE,
    encode_chunked_post,
    encode_post,
    parse_status,
    raw_connection,
    read_responses,
    require_ordered_results,
    send_pieces,
    traceable_request,
)
from accord.check.rule import HTTP, NotObserved, Rule, Violation

_PLACES = ("basic/transports#sending-messages-to-the-server", "basic/transports/streamable-http#sending-messages")
_BODY = 5 << 20
_HEADER = 100_000
_NO_REQUESTS = (
    b"\r\n\r\n",
    b"POST\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"POST /mcp HTTP/9.9\r\n\r\n",
)
_END = b"\r\n\r\n"

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
async def check_chunked(talk: Probe) -> None:
    message = traceable_request(talk)
    async with raw_connection(talk) as socket:
        await send_pieces(talk, socket, encode_chunked_post(talk, message))
        reply = await read_responses(talk, socket, [message])
        if parse_status(reply) < FIRST_ERROR_STATUS:
            require_ordered_results([message], reply)


BIG_BODY = Rule(
    "http/big-body",
    "should",
    "A body of 5 MB is read, or refused with an error status, and what follows is served.",
    at=_PLACES,
    since="2025-03-26",
    over=HTTP,
    cause="The error of a limit is not caught, or the connection hangs: answer 413.",
)


@BIG_BODY.case("a message of 5 MB", kind="own")
async def check_big_body(talk: Probe) -> None:
    message = traceable_request(talk)
    message.setdefault("params", {}).setdefault("_meta", {})["com.example/filler"] = "x" * _BODY
    reply = await talk.post(message)
    await talk.fence()
    if not reply.status and not reply.is_closed:
        raise talk.violation("nothing comes for a body of 5 MB")


LONG_HEADER = Rule(
    "http/long-header",
    "should",
    "A header of 100 KB is read, or refused, and what follows is served.",
    at=_PLACES,
    since="2025-03-26",
    over=HTTP,
    cause="The error of a limit is not caught, and the connection hangs: answer 431.",
)


@LONG_HEADER.case("a header of 100 KB", kind="own")
async def check_long_header(talk: Probe) -> None:
    whole, body = encode_post(talk, traceable_request(talk), {"x-filler": "x" * _HEADER})
    async with raw_connection(talk) as socket:
        await send_pieces(talk, socket, whole + body)
        reply = await socket.read(talk.settings.timeout, until=_END)
        await talk.fence()
        if not reply and not socket.closed:
            raise Violation("nothing comes for a header of 100 KB, and the connection stays open")


NONSENSE = Rule(
    "http/nonsense",
    "should",
    "What is no HTTP request is refused, or the connection is closed, and what follows is served.",
    at=_PLACES,
    since="2025-03-26",
    over=HTTP,
    cause="A web server written by hand takes whatever comes for a request: read its first line before all else.",
)


@NONSENSE.case("four beginnings that are no request", kind="own")
async def check_nonsense(talk: Probe) -> None:
    for nonsense in _NO_REQUESTS:
        async with raw_connection(talk) as socket:
            await send_pieces(talk, socket, nonsense)
            await talk.fence()
            reply = await socket.read(10 * PAUSE, until=_END)
            if 0 < parse_status(reply) < 300:
                raise Violation(f"{nonsense!r} is answered with status {parse_status(reply)}")


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
async def check_pipelined(talk: Probe) -> None:
    messages = [traceable_request(talk), traceable_request(talk)]
    async with raw_connection(talk) as socket:
        await send_pieces(talk, socket, b"".join(part for message in messages for part in encode_post(talk, message)))
        reply = await read_responses(talk, socket, messages)
        if b"\r\nconnection: close" in reply.lower() and reply.count(b'"jsonrpc"') < len(messages):
            raise NotObserved("it closes the connection after each answer")
        require_ordered_results(messages, reply)
