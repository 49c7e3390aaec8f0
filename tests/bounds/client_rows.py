"""Rows of `ClientLimits`, and of `Limits` for a client."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable
from typing import Any

from msgspec import Raw

from accord import Client
from accord.client.cache import Cache, CacheableRequest, ClientCache
from accord.client.notifications import NotificationBuffer
from accord.errors import AccordError
from accord.messages.meta import CacheableResult
from accord.transport.callbacks import Callback
from accord.transport.subprocess import StderrTail

from tests.bounds.server_rows import MOST
from tests.bounds.table import Outcome, drops, refuses
from tests.client.raw import Message, RawServer, raw_server
from tests.clock import Clock
from tests.limits import limits_of
from tests.transport.http.site import Visit, modern, older, site
from tests.waiting import turns

NEWEST = "2026-07-28"
HANDSHAKE = "2025-11-25"
BOTH = (NEWEST, HANDSHAKE)


async def ended(call: Awaitable[Any]) -> Outcome:
    """Return how a call of the client ends."""
    try:
        await call
    except AccordError as error:
        return Outcome(str(error))
    return Outcome()


@refuses("ClientLimits.request_seconds", *BOTH, name="timeout=")
@refuses("ClientLimits.total_seconds", *BOTH, name="timeout=")
async def time_of_a_request(over: str, extra: int) -> Outcome:
    clock = Clock()
    limits = limits_of(client_request_seconds=30, client_total_seconds=30)
    async with raw_server(over, limits=limits) as (server, client):
        clock.move(0)
        call = asyncio.ensure_future(client.call_tool("slow"))
        asked = await server.hear()
        await clock.jump(29)
        if extra:
            await clock.jump(2)
        else:
            server.done(asked)
        return await ended(call)


async def paged(over: str, pages: list[Message], **limits: Any) -> Outcome:
    """List the tools of a server with these pages."""
    async with raw_server(over, limits=limits_of(**limits)) as (server, client):
        call = asyncio.ensure_future(client.list_tools())
        for number, page in enumerate(pages):
            asked = await next_request(server, call)
            if asked is None:
                break
            more = {"nextCursor": str(number)} if number < len(pages) - 1 else {}
            server.answer(asked, **page, **more, ttlMs=0, cacheScope="private")
        return await ended(call)


async def next_request(server: RawServer, call: asyncio.Future[Any]) -> Message | None:
    """Return the next request, or None when the call has ended first."""
    hearing = asyncio.ensure_future(server.hear())
    await asyncio.wait([hearing, call], return_when=asyncio.FIRST_COMPLETED)
    if hearing.done():
        return hearing.result()
    hearing.cancel()
    return None


def tools(count: int, first: int = 0, **more: Any) -> Message:
    named = [{"name": f"t{first + number}", "inputSchema": {"type": "object"}, **more} for number in range(count)]
    return {"tools": named}


@refuses("ClientLimits.pages", *BOTH)
async def pages(over: str, extra: int) -> Outcome:
    return await paged(over, [tools(1, number) for number in range(MOST + extra)], client_pages=MOST)


@refuses("ClientLimits.items", *BOTH)
async def items(over: str, extra: int) -> Outcome:
    return await paged(over, [tools(3), tools(MOST - 3 + extra, 3)], client_items=MOST)


@refuses("ClientLimits.list_bytes", *BOTH)
async def bytes_of_a_list(over: str, extra: int) -> Outcome:
    page = tools(1)
    stamped = {**({"resultType": "complete"} if over == NEWEST else {}), **page}
    size = len(json.dumps({**stamped, "ttlMs": 0, "cacheScope": "private"}))
    page["tools"][0]["name"] += "x" * extra
    return await paged(over, [page], client_list_bytes=size)


@refuses("ClientLimits.form_fields", *BOTH)
async def fields_of_a_form(over: str, extra: int) -> Outcome:
    fields = {f"f{number}": {"type": "string"} for number in range(MOST + extra)}
    params = {"message": "Who?", "requestedSchema": {"type": "object", "properties": fields}}
    options = {"elicitation": lambda params: None, "limits": limits_of(client_form_fields=MOST)}
    async with raw_server(over, **options) as (server, client):
        if over == HANDSHAKE:
            answer = await server.ask("elicitation/create", params)
            return Outcome(answer.get("error", {}).get("message", ""))
        call = asyncio.ensure_future(client.call_tool("asks"))
        server.require(await server.hear(), inputRequests={"a": {"method": "elicitation/create", "params": params}})
        if not extra:
            server.done(await server.hear())
        return await ended(call)


@refuses("ClientLimits.rounds", NEWEST)
async def rounds(over: str, extra: int) -> Outcome:
    async with raw_server(over, limits=limits_of(client_rounds=MOST)) as (server, client):
        call = asyncio.ensure_future(client.call_tool("asks"))
        for _ in range(MOST + extra):
            server.require(await server.hear(), requestState="s")
        if not extra:
            server.done(await server.hear())
        return await ended(call)


@refuses("Limits.requests_in_flight", "client")
async def input_requests(over: str, extra: int) -> Outcome:
    wanted = {f"r{number}": {"method": "roots/list"} for number in range(MOST + extra)}
    async with raw_server(NEWEST, roots=["/a"], limits=limits_of(requests_in_flight=MOST)) as (server, client):
        call = asyncio.ensure_future(client.call_tool("asks"))
        server.require(await server.hear(), inputRequests=wanted)
        if not extra:
            server.done(await server.hear())
        return await ended(call)


@refuses("ClientLimits.retry_seconds")
async def pause_of_a_stream(over: str, extra: int) -> Outcome:
    async def play(visit: Visit) -> None:
        await visit.stream()
        if "last-event-id" in visit.headers:
            await visit.event(server.of("tools/call")[0].done_message())
            await visit.end()
            return
        await visit.event(None, id="1", retry=110 + extra)
        visit.close()

    limits = limits_of(client_retry_seconds=0.11)
    async with site(older(play)) as server, Client(server.url, limits=limits) as client:
        return await ended(client.call_tool("slow"))


@refuses("Limits.line_bytes", "client of HTTP")
async def message_over_http(over: str, extra: int) -> Outcome:
    async def play(visit: Visit) -> None:
        message = visit.done_message()
        size = 2_000 + extra - len(json.dumps(message))
        message["result"]["content"][0]["text"] += "x" * size
        await visit.stream()
        await visit.event(message)
        await visit.end()

    async with site(modern(play)) as server, Client(server.url, limits=limits_of(line_bytes=2_000)) as client:
        return await ended(client.call_tool("large"))


def cached(count: int, size: int, **limits: Any) -> Outcome:
    """Cache results of so many bytes; return whether the first one is dropped."""
    kept = ClientCache(Cache(limits_of(**limits)), "server")
    for number in range(count):
        key = CacheableRequest("tools/list", str(number))
        kept.put(key, Raw(b"x" * size), CacheableResult(ttl_ms=10_000), 0, 0)
    return Outcome("" if kept.get(CacheableRequest("tools/list", "0"), 0) is not None else "dropped")


@drops("ClientLimits.cache_entries")
async def entries_of_the_cache(over: str, extra: int) -> Outcome:
    return cached(MOST + extra, 1, client_cache_entries=MOST)


@drops("ClientLimits.cache_bytes")
async def bytes_of_the_cache(over: str, extra: int) -> Outcome:
    return cached(MOST + extra, 10, client_cache_bytes=10 * MOST)


@drops("ClientLimits.cache_seconds")
async def age_in_the_cache(over: str, extra: int) -> Outcome:
    kept, key = ClientCache(Cache(limits_of(client_cache_seconds=60)), "server"), CacheableRequest("tools/list")
    kept.put(key, Raw(b"{}"), CacheableResult(ttl_ms=10**9), 0, 0)
    return Outcome("" if kept.get(key, 59 + extra) is not None else "dropped")


@drops("Limits.notices")
async def waiting_notifications(over: str, extra: int) -> Outcome:
    return await called_back(MOST + extra, 1, MOST, None)


@drops("Limits.notice_bytes")
async def bytes_of_waiting_notifications(over: str, extra: int) -> Outcome:
    return await called_back(MOST + extra, 10, 1_000, 10 * MOST)


async def called_back(count: int, size: int, most: int, most_bytes: int | None) -> Outcome:
    """Give so many notifications to a callback that is busy, and to a reader that reads none."""

    async def waits(value: int) -> None:
        await asyncio.Event().wait()

    callback, buffer = Callback(waits, most, most_bytes), NotificationBuffer[int](most, most_bytes)
    callback.call(0)
    for number in range(count):
        callback.call(number, size=size)
        buffer.put(number, size)
    await turns(2)
    callback.cancel()
    assert callback.dropped == buffer.dropped
    return Outcome("dropped" if callback.dropped else "")


@drops("ClientLimits.stderr_lines")
async def lines_of_stderr(over: str, extra: int) -> Outcome:
    tail = StderrTail(MOST, None)
    read, write = os.pipe()
    tail.read(read)
    os.write(write, b"".join(b"line %d\n" % number for number in range(MOST + extra)))
    os.close(write)
    await asyncio.wait_for(tail.ended.wait(), 100)
    tail.close()
    return Outcome("" if "line 0" in tail.text else "dropped")
