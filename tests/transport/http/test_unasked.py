"""The stream of what a server says unasked: what becomes of it when it ends, and that gaps in it are told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from accord import Client, Missed, ResourceUpdated

from .site import INFO, Play, Visit, older, quiet, site

UPDATED = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a://b"}}


def watched(listen: Callable[[Visit, int], Awaitable[None]]) -> Play:
    """A server whose resources may be watched; `listen` plays each GET, by its number."""
    gets = 0

    async def play(visit: Visit) -> None:
        nonlocal gets
        if visit.verb == "initialize":
            offers = {"resources": {"subscribe": True}, "tools": {"listChanged": True}}
            said = {"protocolVersion": "2025-11-25", "capabilities": offers, "serverInfo": INFO}
            await visit.result({"Mcp_Session_Id": "1"}, **said)
        elif visit.verb == "GET":
            gets += 1
            await listen(visit, gets)
        elif visit.verb == "tools/call":
            await visit.result(content=[], structuredContent={})
        else:
            await older(quiet)(visit)

    return play


async def once_and_again(visit: Visit, number: int) -> None:
    await visit.stream()
    await visit.chunk(b"retry: 1\n\n")
    await visit.event(UPDATED)
    if number == 1:
        await asyncio.sleep(0.1)
        await visit.end()
    else:
        await visit.gone.wait()


async def test_a_gap_in_what_a_server_says_unasked_is_told() -> None:
    async with site(watched(once_and_again)) as server, Client(server.url) as client:
        async with client.subscribe("a://b") as changes, asyncio.timeout(5):
            await client.call_tool("echo")
            await client.call_tool("echo")
            assert len(server.of("tools/list")) == 1
            while not isinstance(await anext(changes), Missed):
                pass
            await client.call_tool("echo")
            assert len(server.of("tools/list")) == 2  # it may have changed meanwhile


async def test_a_stream_that_is_taken_up_where_it_was_has_no_gap() -> None:
    async def listen(visit: Visit, number: int) -> None:
        await visit.stream()
        await visit.event(UPDATED, id=str(number), retry=1)
        if number < 3:
            await asyncio.sleep(0.1)
            await visit.end()
        else:
            await visit.gone.wait()

    async with site(watched(listen)) as server, Client(server.url) as client:
        async with client.subscribe("a://b") as changes, asyncio.timeout(5):
            assert [await anext(changes) for _ in range(2)] == [ResourceUpdated("a://b")] * 2


@pytest.mark.parametrize("status", [301, 400, 401, 410, 429, 503])
async def test_a_stream_that_is_refused_later_is_opened_again_all_the_same(status: int) -> None:
    async def listen(visit: Visit, number: int) -> None:
        if number == 2:
            await visit.respond(status)
        else:
            await once_and_again(visit, number)

    async with site(watched(listen)) as server, Client(server.url) as client:
        async with client.subscribe("a://b") as changes, asyncio.timeout(5):
            while not isinstance(await anext(changes), Missed):
                pass
            assert await anext(changes) == ResourceUpdated("a://b")


async def test_it_is_told_when_a_stream_is_given_up_for_good() -> None:
    async def listen(visit: Visit, number: int) -> None:
        await (once_and_again(visit, number) if number == 1 else visit.respond(405))

    async with site(watched(listen)) as server, Client(server.url) as client:
        async with client.subscribe("a://b") as changes, asyncio.timeout(5):
            while not isinstance(missed := await anext(changes), Missed):
                pass
            assert "HTTP 405" in missed.why
