"""A client that asks and does not read: its request ends, and nothing piles up for it."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from typing import Any

import pytest

from accord.server.core.context import Context
from accord.server.server import Server

from tests.clock import without_waiting
from tests.server.http.http_clients import LATEST, META, Here, Legacy, Modern, encode, quick, request, site, until
from tests.server.http.raw import SECONDS, Direct, request_bytes, served

MILLION = "x" * 1_000_000


class Pouring:
    """A server with a tool that says more than anybody takes."""

    def __init__(self, **limits: Any) -> None:
        self.server = Server("pouring", "1", limits=quick(progress_per_second=1e6, **limits))
        self.stopped = asyncio.Event()

        @self.server.tool
        async def pour(ctx: Context) -> None:
            try:
                for step in range(100_000):
                    await ctx.report_progress(step, message=MILLION)
                    await asyncio.sleep(0)
            finally:
                self.stopped.set()


def calling(tool: str) -> bytes:
    meta = {META + "protocolVersion": LATEST, META + "clientCapabilities": {}, "progressToken": "p"}
    message = request("tools/call", {"name": tool, "arguments": {}, "_meta": meta})
    return request_bytes("POST", "/mcp", Modern(None).head(message), encode(message))  # type: ignore[arg-type]


@pytest.mark.parametrize("stream_bytes", [2_000_000, 1 << 40], ids=["it is cut", "it waits"])
async def test_the_call_of_a_client_that_does_not_read_is_cancelled(stream_bytes: int) -> None:
    pouring = Pouring(http_write_seconds=0.3, http_stream_bytes=stream_bytes)
    async with served(pouring.server.app, pouring.server.limits) as port:
        _, writer = await port.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(calling("pour"))
        await asyncio.wait_for(pouring.stopped.wait(), SECONDS)
        writer.transport.abort()


def slow_reader(here: Here, address: str) -> tuple[Direct, asyncio.Event]:
    """A client at this address that takes no large event of its stream until the event is set."""
    reads = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def taken(message: Any) -> None:
            if scope["method"] == "GET" and len(message.get("body", b"")) > 10_000:
                await reads.wait()
            await send(message)

        await here.app({**scope, "client": (address, 1)}, receive, taken)

    return Direct(app), reads


async def test_what_waits_for_slow_readers_of_http_sse_is_bounded_and_the_address_with_most_is_cut() -> None:
    server = Server("large", "1", limits=quick(http_unsent_bytes=6_500_000))

    @server.tool
    def large() -> str:
        return MILLION

    call = request("tools/call", {"name": "large", "arguments": {}})
    async with site(server) as here:
        raw, reads = slow_reader(here, "127.0.0.2")
        honest = await (await Legacy.connect(raw)).open()
        await honest.post(call)
        flood = [await (await Legacy.connect(slow_reader(here, "127.0.0.3")[0])).open() for _ in range(4)]
        posts = [asyncio.create_task(each.post({**call, "id": id})) for each in flood for id in range(3)]
        slow = here.endpoint.context.slow_streams
        await until(lambda: len(here.endpoint.sse) < 5)
        assert 2_000_000 < slow.unsent <= 6_500_000
        reads.set()
        assert (await honest.stream.message())["result"]["content"][0]["text"] == MILLION
        for each in (honest, *flood):
            await each.stream.leave()
        await asyncio.wait(posts)
        assert slow.unsent == 0


@without_waiting
async def test_a_client_has_time_for_each_part_of_a_large_event() -> None:
    server = Server("large", "1", limits=quick(http_write_seconds=10.0))

    @server.tool
    async def large() -> str:
        return MILLION

    async with site(server) as here:

        async def app(scope: Any, receive: Any, send: Any) -> None:
            async def taken(message: Any) -> None:
                await asyncio.sleep(len(message.get("body", b"")) / 40_000)
                await send(message)

            await here.app(scope, receive, taken)

        client = await (await Legacy.connect(Direct(app))).open()
        await client.post(request("tools/call", {"name": "large", "arguments": {}}))
        assert (await client.stream.message())["result"]["content"][0]["text"] == MILLION
        assert not client.stream.whole, "the stream goes on"
        await client.stream.leave()


def slow_socket(port: int) -> socket.socket:
    """A connection of which the system takes little before the client reads."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    return client


async def test_large_responses_do_not_all_begin_in_one_turn_of_the_loop() -> None:
    server = Server("large", "1", limits=quick(http_unsent_bytes=20_000_000))
    loop = asyncio.get_running_loop()
    turn, began = 0, Counter[int]()

    def count_turns() -> None:
        nonlocal turn, counting
        turn += 1
        counting = loop.call_soon(count_turns)

    @server.tool
    async def large() -> str:
        began[turn] += 1
        return MILLION * 5

    counting = loop.call_soon(count_turns)
    async with served(server.app, server.limits) as port:
        await (await port.bytes(calling("large"))).end()  # the server is started by now
        began.clear()
        clients = [slow_socket(port.port) for _ in range(30)]
        await asyncio.sleep(0.1)  # all are accepted
        for client in clients:
            client.sendall(calling("large"))
        await until(lambda: began.total() == len(clients))
        for client in clients:
            client.close()
    counting.cancel()
    assert max(began.values()) < 10, "as many as fill half of the limit; then each has a turn of its own"
