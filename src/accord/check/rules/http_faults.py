"""Streamable HTTP in rough weather: clients that break off, that are slow, and that never come to an end."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from accord.check.probe import Probe
from accord.check.raw_http import (
    encode_get,
    encode_post,
    open_socket,
    raw_connection,
    read_responses,
    require_ordered_results,
    send_pieces,
    traceable_request,
)
from accord.check.rule import HTTP, Rule

_PLACES = ("basic/transports#sending-messages-to-the-server", "basic/transports/streamable-http#sending-messages")
_HALF_OPEN = 50

CUT_REQUESTS = Rule(
    "http/cut-requests",
    "must",
    "A client that disconnects in the middle of a request does not affect other clients.",
    at=_PLACES,
    since="2025-03-26",
    over=HTTP,
    cause="The error of a broken connection ends more than that connection: catch it where the request is read and "
    "where the answer is written.",
)


@CUT_REQUESTS.case("a head that breaks off", kind="own")
async def check_cut_requests_head_breaks_off(talk: Probe) -> None:
    whole, _ = encode_post(talk, traceable_request(talk))
    await _send_and_abort(talk, whole[: len(whole) // 2])


@CUT_REQUESTS.case("a body that breaks off", kind="own")
async def check_cut_requests_body_breaks_off(talk: Probe) -> None:
    whole, body = encode_post(talk, traceable_request(talk))
    await _send_and_abort(talk, whole + body[: len(body) // 2])


@CUT_REQUESTS.case("ten clients that do not wait for the answer", kind="own")
async def check_cut_requests_ten_clients_do_not(talk: Probe) -> None:
    for _ in range(10):
        whole, body = encode_post(talk, traceable_request(talk))
        await _send_and_abort(talk, whole + body)


@CUT_REQUESTS.case("a stream whose client is gone", kind="own")
async def check_cut_requests_stream_whose_client_gone(talk: Probe) -> None:
    if talk.rules.handshake:
        await _send_and_abort(talk, encode_get(talk), wait=True)
    else:
        whole, body = encode_post(
            talk, talk.build_request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        )
        await _send_and_abort(talk, whole + body, wait=True)


async def _send_and_abort(talk: Probe, data: bytes, *, wait: bool = False) -> None:
    """Send this on a connection of its own and close it; then others must be served."""
    async with raw_connection(talk) as socket:
        await send_pieces(talk, socket, data)
        if wait:
            await socket.read(talk.settings.timeout, until=b"\r\n\r\n")
        socket.abort()
        await talk.fence()


SLOW_BODY = Rule(
    "http/slow-body",
    "must",
    "A body is read whole, however slowly its bytes come.",
    at=_PLACES,
    since="2025-03-26",
    over=HTTP,
    cause="What is there at the first read is taken for the body: read as much as Content-Length says.",
)


@SLOW_BODY.case("a body in five pieces, with pauses")
async def check_slow_body(talk: Probe) -> None:
    message = traceable_request(talk)
    whole, body = encode_post(talk, message)
    size = len(body) // 5 + 1
    async with raw_connection(talk) as socket:
        await send_pieces(talk, socket, whole, *(body[start : start + size] for start in range(0, len(body), size)))
        require_ordered_results([message], await read_responses(talk, socket, [message]))


HALF_OPEN = Rule(
    "http/half-open",
    "should",
    "Fifty connections on which a request never comes to its end do not keep another client from being served.",
    at=_PLACES,
    since="2025-03-26",
    over=HTTP,
    cause="Each connection has a thread or a worker until its request is whole.",
)


@HALF_OPEN.case("fifty requests that stop in the middle of their bodies", kind="own")
async def check_half_open(talk: Probe) -> None:
    message = traceable_request(talk)
    whole, body = encode_post(talk, message)
    async with AsyncExitStack() as others:
        await asyncio.gather(*(_open_half_request(talk, others, whole + body[:-1]) for _ in range(_HALF_OPEN)))
        async with raw_connection(talk) as last:
            await send_pieces(talk, last, whole + body)
            require_ordered_results([message], await read_responses(talk, last, [message]))
    await talk.fence()


async def _open_half_request(talk: Probe, until: AsyncExitStack, data: bytes) -> None:
    """Send this on a connection that stays open."""
    socket = await open_socket(talk)
    until.callback(socket.abort)
    await send_pieces(talk, socket, data)
