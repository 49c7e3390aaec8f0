"""The stream of what a server says unasked: what becomes of it when it ends, and that gaps in it are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from accord import Client, Missed, ResourceUpdated
from accord.client.subscription import Subscription

from .site import INFO, Play, Site, Visit, older, quiet, site

UPDATED = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a://b"}}


def watched(listen: Callable[[Visit, int], Awaitable[None]]) -> Play:
    """A server whose resources may be watched; once they are, `listen` plays each GET, by its number."""
    gets = 0
    subscribed = asyncio.Event()

    async def play(visit: Visit) -> None:
        nonlocal gets
        if visit.verb == "initialize":
            offers = {"resources": {"subscribe": True}, "tools": {"listChanged": True}}
            said = {"protocolVersion": "2025-11-25", "capabilities": offers, "serverInfo": INFO}
            await visit.result({"Mcp_Session_Id": "1"}, **said)
        elif visit.verb == "GET":
            gets += 1
            await subscribed.wait()
            await listen(visit, gets)
        elif visit.verb == "resources/subscribe":
            await visit.result()
            subscribed.set()
        elif visit.verb == "tools/call":
            await visit.result(content=[], structuredContent={})
        else:
            await older(quiet)(visit)

    return play


@asynccontextmanager
async def watching(
    listen: Callable[[Visit, int], Awaitable[None]],
) -> AsyncIterator[tuple[Site, Client, Subscription]]:
    """A client that watches a resource of such a server, for a while."""
    async with site(watched(listen)) as server, Client(server.url) as client, client.subscribe("a://b") as changes:
        async with asyncio.timeout(100):
            yield server, client, changes


async def update(visit: Visit, number: int) -> None:
    await visit.stream()
    await visit.chunk(b"retry: 1\n\n")
    await visit.event(UPDATED)
    await visit.gone.wait()


async def test_a_gap_in_the_notifications_of_a_server_is_reported() -> None:
    async with watching(update) as (server, client, changes):
        await client.call_tool("echo")
        await client.call_tool("echo")
        assert len(server.of("tools/list")) == 1
        assert await anext(changes) == ResourceUpdated("a://b")
        server.of("GET")[0].close()
        assert isinstance(await anext(changes), Missed)
        await client.call_tool("echo")
        assert len(server.of("tools/list")) == 2  # it may have changed meanwhile


async def test_a_stream_that_is_taken_up_where_it_was_has_no_gap() -> None:
    async def listen(visit: Visit, number: int) -> None:
        await visit.stream()
        await visit.event(UPDATED, id=str(number), retry=1)
        if number == 3:
            await visit.gone.wait()
        visit.close()

    async with watching(listen) as (_, _client, changes):
        assert [await anext(changes) for _ in range(3)] == [ResourceUpdated("a://b")] * 3


@pytest.mark.parametrize("status", [301, 400, 401, 410, 429, 503])
async def test_a_stream_that_is_refused_later_is_opened_again_all_the_same(status: int) -> None:
    async def listen(visit: Visit, number: int) -> None:
        if number == 2:
            await visit.respond(status)
        else:
            await update(visit, number)

    async with watching(listen) as (server, _, changes):
        assert await anext(changes) == ResourceUpdated("a://b")
        server.of("GET")[0].close()
        assert isinstance(await anext(changes), Missed)
        assert await anext(changes) == ResourceUpdated("a://b")
        assert len(server.of("GET")) == 3


async def test_a_stream_that_is_given_up_for_good_is_reported() -> None:
    async def listen(visit: Visit, number: int) -> None:
        await (update(visit, number) if number == 1 else visit.respond(405))

    async with watching(listen) as (server, _, changes):
        assert await anext(changes) == ResourceUpdated("a://b")
        server.of("GET")[0].close()
        missed = await anext(changes)
        assert isinstance(missed, Missed)
        assert "HTTP 405" in missed.why


async def test_invalid_messages_and_refused_answers_are_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    taken, all_taken = list[Visit](), asyncio.Event()

    async def play(visit: Visit) -> None:
        if visit.verb == "GET":
            await visit.stream()
            for _ in range(50):
                await visit.event({"jsonrpc": "2.0", "result": {}})
            for number in range(50):
                await visit.event({"jsonrpc": "2.0", "id": f"p{number}", "method": "ping"})
            await visit.gone.wait()
        elif visit.verb == "DELETE" or "method" in visit.message:
            await quiet(visit)
        else:
            taken.append(visit)
            await visit.respond(400, b"no")
            if len(taken) == 50:
                all_taken.set()

    async with site(older(play)) as server, Client(server.url):
        await asyncio.wait_for(all_taken.wait(), 20)
    for text in ("dropped an invalid message", "an answer to"):
        assert sum(text in message for message in caplog.messages) == 1
