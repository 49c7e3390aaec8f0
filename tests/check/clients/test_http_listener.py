"""HTTP by hand: requests come as they were sent, responses go as they were said, and a client that hangs up is seen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from accord.check.clients.http_listener import ClientExchange, HTTPListener, ScriptedResponse
from accord.check.probes.message_log import MemoryBudget

Answer = Callable[[ClientExchange, ScriptedResponse], Coroutine[Any, Any, None]]


@asynccontextmanager
async def site(answer: Answer, room: MemoryBudget | None = None) -> AsyncIterator[HTTPListener]:
    opened = HTTPListener(answer, room or MemoryBudget())
    await opened.open()
    try:
        yield opened
    finally:
        await opened.close()


async def connected(to: HTTPListener) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = to.url.removeprefix("http://").partition(":")
    return await asyncio.open_connection(host, int(port))


async def said(to: HTTPListener, *pieces: bytes) -> bytes:
    """What came back for these bytes, until the site closed or said all."""
    reader, writer = await connected(to)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)
    writer.write_eof()
    answer = await asyncio.wait_for(reader.read(), 100)
    writer.close()
    return answer


async def fine(exchange: ClientExchange, reply: ScriptedResponse) -> None:
    await reply.send(200, b"fine", content_type="text/plain")


async def test_a_request_is_taken_as_it_came() -> None:
    async with site(fine) as opened:
        answer = await said(opened, b'POST /mcp?a=1 HTTP/1.1\r\nX-One: 1\r\nx-one:2\r\nContent-Length: 4\r\n\r\n{""}')
    assert answer == b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nfine"
    (exchange,) = opened.exchanges
    assert (exchange.number, exchange.verb, exchange.path, exchange.body) == (1, "POST", "/mcp", b'{""}')
    assert exchange.headers["x-one"] == "1, 2"
    assert exchange.ended_at is not None


async def test_a_body_in_chunks_is_whole() -> None:
    async with site(fine) as opened:
        head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        await said(opened, head + b"3\r\nabc\r\n2;x=1\r\nde\r\n0\r\n\r\n")
    assert opened.exchanges[0].body == b"abcde"


@given(cuts=st.lists(st.integers(0, 120), max_size=8))
@settings(max_examples=25, deadline=None)
def test_it_does_not_matter_how_the_bytes_are_cut(cuts: list[int]) -> None:
    whole = b"POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\nAccept: x\r\n\r\n"
    at = sorted({0, len(whole), *(cut % len(whole) for cut in cuts)})
    pieces = [whole[begin:end] for begin, end in pairwise(at)]

    async def tried() -> None:
        async with site(fine) as opened:
            await said(opened, *pieces)
        assert [(each.path, each.body) for each in opened.exchanges] == [("/a", b"abc"), ("/b", b"")]

    asyncio.run(tried())


@pytest.mark.parametrize(
    "garbage", [b"\r\n\r\n", b"GET\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"\xff" * 90]
)
async def test_what_is_no_http_is_hung_up_on(garbage: bytes) -> None:
    async with site(fine) as opened:
        assert await said(opened, garbage) == b""
        assert await said(opened, b"GET / HTTP/1.1\r\n\r\n")


async def test_a_client_that_hangs_up_is_seen() -> None:
    gone = asyncio.Event()

    async def waits(exchange: ClientExchange, reply: ScriptedResponse) -> None:
        await reply.start(200, content_type="text/event-stream")
        reply.on_client_close = gone.set
        await reply.client_closed.wait()

    async with site(waits) as opened:
        reader, writer = await connected(opened)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await asyncio.wait_for(gone.wait(), 100)
    assert opened.exchanges[0].client_closed_at is not None


async def test_a_response_in_pieces_is_cut_where_it_is_wanted() -> None:
    async def cuts(exchange: ClientExchange, reply: ScriptedResponse) -> None:
        await reply.start(200)
        await reply.send_chunk(b"abc")
        reply.abort()

    async with site(cuts) as opened:
        answer = await said(opened, b"GET / HTTP/1.1\r\n\r\n")
    assert answer.endswith(b"3\r\nabc\r\n")
