"""State across calls without a session: the server keeps it, the client names it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Annotated

import pytest

from accord import APIKeys, Client, Context, DeclarationError, Handles, Server

from tests.server.http.raw import served


class Cart(list[str]):
    """What was put into it."""


def shop(carts: Handles[Cart], **options: object) -> Server:
    server = Server("shop", **options)  # type: ignore[arg-type]

    @server.tool
    def open_cart(ctx: Context) -> str:
        return carts.open(Cart(), ctx)

    @server.tool
    def add(item: str, cart: Annotated[Cart, carts]) -> list[str]:
        cart.append(item)
        return cart

    @server.tool
    def close_cart(handle: str, ctx: Context) -> None:
        carts.close(handle, ctx)

    return server


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", "2026-07-28"])
async def test_what_is_opened_in_one_call_is_there_in_the_next(revision: str) -> None:
    server = shop(Handles("cart", Cart))
    async with Client(server, revisions=[revision]) as client:
        handle = (await client.call_tool("open_cart")).text
        await client.call_tool("add", {"item": "tea", "cart": handle})
        assert (await client.call_tool("add", {"item": "milk", "cart": handle})).text == '["tea","milk"]'
    async with Client(server, revisions=[revision]) as again:
        assert (await again.call_tool("add", {"item": "salt", "cart": handle})).text == '["tea","milk","salt"]'
        (_, add, _) = await again.list_tools()
        assert add.input_schema["properties"]["cart"] == {
            "type": "string",
            "description": "The handle of the cart, as it was given when that was opened.",
        }


@pytest.mark.parametrize("wrong", ["", "cart_", "no such cart", "cart_" + "A" * 32])
async def test_a_handle_for_nothing_is_an_error_that_says_what_to_do(wrong: str) -> None:
    async with Client(shop(Handles("cart", Cart))) as client:
        failed = await client.call_tool("add", {"item": "tea", "cart": wrong})
    assert failed.is_error
    assert "open a new one" in failed.text


async def test_one_that_is_closed_or_left_alone_is_gone_and_closed_once() -> None:
    closed: list[Cart] = []
    carts = Handles("cart", Cart, close=closed.append)
    async with Client(shop(carts)) as client:
        handle = (await client.call_tool("open_cart")).text
        await client.call_tool("close_cart", {"handle": handle})
        assert closed == [Cart()]
        assert (await client.call_tool("add", {"item": "tea", "cart": handle})).is_error
        assert (await client.call_tool("close_cart", {"handle": handle})).is_error
    assert len(closed) == 1
    brief = Handles("cart", Cart, seconds=0, close=closed.append)
    async with Client(shop(brief)) as client:
        left = (await client.call_tool("open_cart")).text
        assert (await client.call_tool("add", {"item": "tea", "cart": left})).is_error
    assert len(brief) == 0
    assert len(closed) == 2


async def test_there_is_room_for_so_many_of_one_and_so_many_of_all() -> None:
    async with Client(
        shop(Handles("cart", Cart, most=2, each=1))
    ) as client:  # nobody knows who asks: `each` is for all
        assert not any([(await client.call_tool("open_cart")).is_error for _ in range(2)])
        assert "too many are open" in (await client.call_tool("open_cart")).text


async def test_a_task_belongs_to_its_principal() -> None:
    carts = Handles("cart", Cart, each=1)
    server = shop(carts, auth=APIKeys({"key-of-ann": "ann", "key-of-bob": "bob"}))
    async with served(server.app) as socket:
        url = f"http://127.0.0.1:{socket.port}/mcp"
        ann, bob = (Client(url, auth=f"key-of-{name}") for name in ("ann", "bob"))
        async with ann, bob:
            handle = (await ann.call_tool("open_cart")).text
            assert (await ann.call_tool("add", {"item": "tea", "cart": handle})).data == ["tea"]
            assert (await bob.call_tool("add", {"item": "tea", "cart": handle})).is_error
            assert "too many are open" in (await ann.call_tool("open_cart")).text
            assert not (await bob.call_tool("open_cart")).is_error


def test_what_it_is_is_one_word() -> None:
    with pytest.raises(DeclarationError, match="must be one word"):
        Handles("shopping cart", Cart)


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


def test_what_closes_one_is_not_async_since_nobody_would_await_it() -> None:
    async def close(cart: Cart) -> None: ...

    with pytest.raises(DeclarationError, match="closes a cart may run in any thread"):
        Handles("cart", Cart, close=close)
