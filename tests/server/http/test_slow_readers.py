"""A client that asks and does not read: its request ends, and nothing piles up for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from accord.server.context import Context
from accord.server.server import Server

from tests.server.http.raw import SECONDS, request_bytes, served
from tests.server.http.speaking import LATEST, META, Modern, encode, quick, request

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


def asking() -> bytes:
    meta = {META + "protocolVersion": LATEST, META + "clientCapabilities": {}, "progressToken": "p"}
    message = request("tools/call", {"name": "pour", "arguments": {}, "_meta": meta})
    return request_bytes("POST", "/mcp", Modern(None).head(message), encode(message))  # type: ignore[arg-type]


@pytest.mark.parametrize("stream_bytes", [2_000_000, 1 << 40], ids=["it is cut", "it waits"])
async def test_the_call_of_a_client_that_does_not_read_is_cancelled(stream_bytes: int) -> None:
    pouring = Pouring(write_seconds=0.3, stream_bytes=stream_bytes)
    async with served(pouring.server.app, pouring.server.limits) as port:
        _, writer = await port.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(asking())
        await asyncio.wait_for(pouring.stopped.wait(), SECONDS)
        writer.transport.abort()
