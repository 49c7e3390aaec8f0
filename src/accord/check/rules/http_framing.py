"""Streamable HTTP: unusual, large, slow, incomplete and invalid requests."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial

from accord.check.engine.rule import HTTP, CaseVariant, NotObserved, Violation, rule
from accord.check.probes.probe import Probe
from accord.check.probes.raw_http import (
    FIRST_ERROR_STATUS,
    PAUSE,
    encode_chunked_post,
    encode_get,
    encode_post,
    open_socket,
    parse_status,
    raw_connection,
    read_responses,
    require_ordered_results,
    send_pieces,
    traceable_request,
)
from accord.messages.base import JSONObject

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


_rule = partial(rule, since="2025-03-26", over=HTTP)


@_rule(
    "http/chunked",
    "should",
    case="a body in two chunks",
    at=_PLACES,
    cause="Without Content-Length, the body is taken for empty, or the server waits for it.",
)
async def http_chunked(probe: Probe) -> None:
    """The server reads a chunked body, or refuses it with an error status."""
    message = traceable_request(probe)
    async with raw_connection(probe) as socket:
        await send_pieces(probe, socket, encode_chunked_post(probe, message))
        response = await read_responses(probe, socket, [message])
        if parse_status(response) < FIRST_ERROR_STATUS:
            require_ordered_results([message], response)


@_rule(
    "http/big-body",
    "should",
    case="a message of 5 MB",
    kind="own",
    at=_PLACES,
    cause="The error of a size limit is not caught, or the connection hangs: respond with 413.",
)
async def http_big_body(probe: Probe) -> None:
    """The server reads a body of 5 MB, or refuses it with an error status, and answers later requests."""
    message = traceable_request(probe)
    message.setdefault("params", {}).setdefault("_meta", {})["com.example/filler"] = "x" * _BODY
    response = await probe.post(message)
    await probe.fence()
    if not response.status and not response.is_closed:
        raise probe.violation("no response to a body of 5 MB")


@_rule(
    "http/long-header",
    "should",
    case="a header of 100 KB",
    kind="own",
    at=_PLACES,
    cause="The error of a size limit is not caught, or the connection hangs: respond with 431.",
)
async def http_long_header(probe: Probe) -> None:
    """The server reads a header of 100 KB, or refuses it, and answers later requests."""
    whole, body = encode_post(probe, traceable_request(probe), {"x-filler": "x" * _HEADER})
    async with raw_connection(probe) as socket:
        await send_pieces(probe, socket, whole + body)
        response = await socket.read(probe.settings.timeout, until=_END)
        await probe.fence()
        if not response and not socket.closed:
            raise Violation("no response to a header of 100 KB, and the connection is open")


@_rule(
    "http/nonsense",
    "should",
    case="four invalid request lines",
    kind="own",
    at=_PLACES,
    cause="A hand-written web server does not validate its input: parse the request line first.",
)
async def http_nonsense(probe: Probe) -> None:
    """The server refuses an invalid HTTP request, or closes the connection, and answers later requests."""
    for nonsense in _NO_REQUESTS:
        async with raw_connection(probe) as socket:
            await send_pieces(probe, socket, nonsense)
            await probe.fence()
            response = await socket.read(10 * PAUSE, until=_END)
            if 0 < parse_status(response) < 300:
                raise Violation(f"{nonsense!r} returned status {parse_status(response)}")


@_rule(
    "http/pipelined",
    "should",
    case="two pipelined requests",
    at=_PLACES,
    cause="Bytes after the end of the first request are discarded.",
)
async def http_pipelined(probe: Probe) -> None:
    """The server answers two pipelined requests on one connection, in order."""
    messages = [traceable_request(probe), traceable_request(probe)]
    async with raw_connection(probe) as socket:
        await send_pieces(probe, socket, b"".join(part for message in messages for part in encode_post(probe, message)))
        response = await read_responses(probe, socket, messages)
        if b"\r\nconnection: close" in response.lower() and response.count(b'"jsonrpc"') < len(messages):
            raise NotObserved("the server closes the connection after each response")
        require_ordered_results(messages, response)


_HALF_OPEN = 50


@_rule(
    "http/cut-requests",
    "must",
    variants=[
        CaseVariant("a client that disconnects in the headers", part="headers"),
        CaseVariant("a client that disconnects in the body", part="body"),
    ],
    kind="own",
    at=_PLACES,
    cause="The error of one connection ends the server: catch it where the request is read and where "
    "the response is written.",
)
async def http_cut_requests(probe: Probe, part: str) -> None:
    """A client that disconnects in the middle of a request does not affect other clients."""
    whole, body = encode_post(probe, traceable_request(probe))
    await _send_and_abort(probe, whole[: len(whole) // 2] if part == "headers" else whole + body[: len(body) // 2])


@http_cut_requests.case("ten clients that disconnect before the response", kind="own")
async def http_cut_requests_unread_responses(probe: Probe) -> None:
    for _ in range(10):
        whole, body = encode_post(probe, traceable_request(probe))
        await _send_and_abort(probe, whole + body)


@http_cut_requests.case("a stream whose client disconnects", kind="own")
async def http_cut_requests_stream(probe: Probe) -> None:
    if probe.rules.handshake:
        await _send_and_abort(probe, encode_get(probe), wait=True)
    else:
        whole, body = encode_post(
            probe, probe.build_request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        )
        await _send_and_abort(probe, whole + body, wait=True)


async def _send_and_abort(probe: Probe, data: bytes, *, wait: bool = False) -> None:
    """Send bytes on a new connection and close it; then the server must answer others."""
    async with raw_connection(probe) as socket:
        await send_pieces(probe, socket, data)
        if wait:
            await socket.read(probe.settings.timeout, until=b"\r\n\r\n")
        socket.abort()
        await probe.fence()


@_rule(
    "http/slow-body",
    "must",
    case="a body in five parts, with pauses",
    at=_PLACES,
    cause="The first read is taken for the whole body: read as many bytes as Content-Length says.",
)
async def http_slow_body(probe: Probe) -> None:
    """The server reads the whole body of a slow client."""
    message = traceable_request(probe)
    whole, body = encode_post(probe, message)
    size = len(body) // 5 + 1
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    await _require_result(probe, message, whole, *parts)


@_rule(
    "http/half-open",
    "should",
    case="fifty requests with incomplete bodies",
    kind="own",
    at=_PLACES,
    cause="Each connection occupies a thread or a worker until its request is complete.",
)
async def http_half_open(probe: Probe) -> None:
    """The server answers other clients while fifty connections have incomplete requests."""
    message = traceable_request(probe)
    whole, body = encode_post(probe, message)
    async with AsyncExitStack() as others:
        await asyncio.gather(*(_open_half_request(probe, others, whole + body[:-1]) for _ in range(_HALF_OPEN)))
        await _require_result(probe, message, whole + body)
    await probe.fence()


async def _require_result(probe: Probe, message: JSONObject, *pieces: bytes) -> None:
    """Send a request on a new connection, with pauses between the pieces. Raises `Violation` without a result."""
    async with raw_connection(probe) as socket:
        await send_pieces(probe, socket, *pieces)
        require_ordered_results([message], await read_responses(probe, socket, [message]))


async def _open_half_request(probe: Probe, until: AsyncExitStack, data: bytes) -> None:
    """Send bytes on a connection that stays open."""
    socket = await open_socket(probe)
    until.callback(socket.abort)
    await send_pieces(probe, socket, data)
