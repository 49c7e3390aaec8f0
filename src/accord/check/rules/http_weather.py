"""Streamable HTTP in rough weather: clients that break off, that are slow, and that never come to an end."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from accord.check.raw_posts import answers, connection, get_stream, in_order, open_socket, post, request, say
from accord.check.rule import HTTP, Rule
from accord.check.talk import Talk

_PLACES = ("basic/transports#sending-messages-to-the-server", "basic/transports/streamable-http#sending-messages")
_HALF_OPEN = 50

CUT = Rule(
    "http/cut-requests",
    "must",
    "A client that disconnects in the middle of a request does not affect other clients.",
    at=_PLACES,
    since="2025-03-26",
    over=HTTP,
    cause="The error of a broken connection ends more than that connection: catch it where the request is read and "
    "where the answer is written.",
)


@CUT.case("a head that breaks off", kind="own")
async def _(talk: Talk) -> None:
    whole, _ = post(talk, request(talk))
    await _cut(talk, whole[: len(whole) // 2])


@CUT.case("a body that breaks off", kind="own")
async def _(talk: Talk) -> None:
    whole, body = post(talk, request(talk))
    await _cut(talk, whole + body[: len(body) // 2])


@CUT.case("ten clients that do not wait for the answer", kind="own")
async def _(talk: Talk) -> None:
    for _ in range(10):
        whole, body = post(talk, request(talk))
        await _cut(talk, whole + body)


@CUT.case("a stream whose client is gone", kind="own")
async def _(talk: Talk) -> None:
    if talk.rules.handshake:
        await _cut(talk, get_stream(talk), wait=True)
    else:
        whole, body = post(talk, talk.message("subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
        await _cut(talk, whole + body, wait=True)


async def _cut(talk: Talk, data: bytes, *, wait: bool = False) -> None:
    """Send this on a connection of its own and close it; then others must be served."""
    async with connection(talk) as socket:
        await say(talk, socket, data)
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
    message = request(talk)
    whole, body = post(talk, message)
    size = len(body) // 5 + 1
    async with connection(talk) as socket:
        await say(talk, socket, whole, *(body[start : start + size] for start in range(0, len(body), size)))
        in_order([message], await answers(talk, socket, [message]))


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
    message = request(talk)
    whole, body = post(talk, message)
    async with AsyncExitStack() as others:
        await asyncio.gather(*(_half_open(talk, others, whole + body[:-1]) for _ in range(_HALF_OPEN)))
        async with connection(talk) as last:
            await say(talk, last, whole + body)
            in_order([message], await answers(talk, last, [message]))
    await talk.tide()


async def _half_open(talk: Talk, until: AsyncExitStack, data: bytes) -> None:
    """Send this on a connection that stays open."""
    socket = await open_socket(talk)
    until.callback(socket.leave)
    await say(talk, socket, data)
