"""Handles: a text for the model, the object for the function."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import pytest

from accord import Client, Context, Handles, Server


@pytest.fixture
def busy_threads() -> Iterator[None]:
    """Threads that give way to each other all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("busy_threads")
async def test_plain_tools_open_and_find_from_many_threads_at_once() -> None:
    server, carts = Server("test"), Handles("cart", list[str], each=10_000)

    @server.tool
    def look_again(handle: str, ctx: Context) -> int:
        for _ in range(200):
            carts.open([], ctx)
            carts.find(handle, ctx)
        return len(carts)

    @server.tool
    def open_cart(ctx: Context) -> str:
        return carts.open([], ctx)

    async with Client(server) as client:
        handle = (await client.call_tool("open_cart")).text
        looks = [client.call_tool("look_again", {"handle": handle}) for _ in range(8)]
        assert [result.text for result in await asyncio.gather(*looks) if result.is_error] == []
        assert len(carts) == 1 + 8 * 200
