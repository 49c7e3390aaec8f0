"""A client that says more than anybody can keep is ended, what it said is bounded, and the check tells of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from accord.check.clients.client import check_client
from accord.check.clients.conversation import ClientConversation
from accord.check.clients.http_listener import ClientExchange, HTTPListener, ScriptedResponse
from accord.check.clients.ordinary_scenario import ORDINARY
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario_runner import Client, run_scenario
from accord.check.clients.scripted_server import ScriptedServer
from accord.check.engine.report import TransportName
from accord.check.probes.message_log import MemoryBudget
from accord.check.settings import CheckSettings

from tests.waiting import SECONDS

REVISION = "2025-11-25"
HELLO = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "hostile", "version": "1"}}
MEGABYTE = 1 << 20

Post = Callable[[bytes], Awaitable[bytes]]
"""Sends one body, and returns the head of the answer."""


def message(method: str, id: int | None = None, params: Any = None) -> bytes:
    body = {"jsonrpc": "2.0", "method": method, "params": params or {}}
    return json.dumps(body if id is None else body | {"id": id}).encode()


@contextlib.asynccontextmanager
async def connection(url: str) -> AsyncIterator[tuple[Post, asyncio.StreamWriter]]:
    """One connection to the URL, by which bodies are posted."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    session = b""

    async def post(body: bytes) -> bytes:
        nonlocal session
        writer.write(b"POST %b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n" % (where.path.encode(), session, len(body)))
        writer.write(body)
        await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
        await reader.readexactly(int(fields.get(b"Content-Length", b"0")))
        if b"Mcp-Session-Id" in fields:
            session = b"Mcp-Session-Id: %b\r\n" % fields[b"Mcp-Session-Id"]
        return head

    try:
        yield post, writer
    finally:
        writer.transport.abort()


async def over_http(url: str) -> None:
    """Opens a session, and posts a megabyte at a time for ever."""
    async with connection(url) as (post, _):
        await post(message("initialize", 1, HELLO))
        await post(message("notifications/initialized"))
        while True:
            await post(message("notifications/progress", params={"message": "x" * MEGABYTE}))


FLOODER = f"""
import shlex, subprocess, sys
server = subprocess.Popen(shlex.split(sys.argv[1]), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
server.stdin.write({message("initialize", 1, HELLO)!r} + b"\\n" + {message("notifications/initialized")!r} + b"\\n")
while True:
    server.stdin.write(b'{{"jsonrpc":"2.0","method":"x","params":{{"a":"' + b"x" * {MEGABYTE} + b'"}}}}\\n')
"""
OVER_STDIO = f"{shlex.quote(sys.executable)} -c {shlex.quote(FLOODER)} {{server}}"
"""Opens a server, and writes a megabyte at a time for ever."""


async def flood(writer: asyncio.StreamWriter) -> None:
    """Write for ever."""
    while True:
        writer.write(b"x" * 65_536)
        await writer.drain()
        await asyncio.sleep(0)


async def played(client: Client, over: TransportName = "http") -> tuple[ClientRun, MemoryBudget]:
    room = MemoryBudget(1 << 30)
    settings = CheckSettings(opening=SECONDS)
    return await run_scenario(client, ORDINARY, REVISION, over, settings, 5.0, room), room


def kept(run: ClientRun) -> int:
    """Bytes that a run holds of what the client said."""
    said = [each.raw for one in run.conversations for each in one.log.entries]
    return sum(len(each) for each in said if isinstance(each, bytes)) + sum(len(each.body) for each in run.exchanges)


@pytest.mark.parametrize(("client", "over"), [(over_http, "http"), (OVER_STDIO, "stdio")])
async def test_a_client_that_floods_in_one_scene_is_ended_there(client: Any, over: TransportName) -> None:
    run, room = await played(client, over)
    assert "16 MB that the checker keeps of a scenario" in run.overflow
    assert run.ending == "deadline"
    assert run.finished_at - run.started_at < SECONDS, "it is not the time that ended it"
    assert MEGABYTE < kept(run) < 20 * MEGABYTE
    assert not room.exhausted, "the other scenarios have room"


async def test_a_client_that_floods_in_every_scene_ends_the_check_which_says_so() -> None:
    settings = CheckSettings(revisions=(REVISION,), only=("client-robust",), opening=SECONDS)
    report = await check_client(over_http, "http", settings)
    (visit,) = report.visits
    assert "96 MB that the checker keeps of a check" in visit.error
    assert report.failed
    assert not any(each.verdict in ("fail", "warn") for each in report.outcomes), "what we cut off is not judged"


async def test_a_body_that_never_ends_is_read_no_further_than_there_is_room() -> None:
    room = MemoryBudget(MEGABYTE)

    async def answer(exchange: ClientExchange, reply: ScriptedResponse) -> None:
        await reply.send(200)

    site = HTTPListener(answer, room)
    await site.open()
    try:
        async with connection(site.url) as (_, writer):
            writer.write(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (1 << 40))
            with pytest.raises(ConnectionError):
                await flood(writer)
    finally:
        await site.close()
    assert room.exhausted
    assert site.exchanges == []


async def test_what_a_client_sends_ahead_counts_too() -> None:
    room = MemoryBudget(MEGABYTE)

    async def waits(exchange: ClientExchange, reply: ScriptedResponse) -> None:
        await reply.client_closed.wait()

    site = HTTPListener(waits, room)
    await site.open()
    try:
        async with connection(site.url) as (_, writer):
            writer.write(b"POST / HTTP/1.1\r\n\r\n")
            with pytest.raises(ConnectionError):
                await flood(writer)
    finally:
        await site.close()
    assert room.exhausted


async def test_one_connection_too_many_is_closed_at_once() -> None:
    async def waits(exchange: ClientExchange, reply: ScriptedResponse) -> None:
        await reply.client_closed.wait()

    site = HTTPListener(waits, MemoryBudget())
    await site.open()
    where = urlsplit(site.url)
    opened = []
    try:
        for _ in range(201):
            opened.append(await asyncio.open_connection(where.hostname, where.port))
        assert await asyncio.wait_for(opened[-1][0].read(), 100) == b""
        assert not any(reader.at_eof() for reader, _ in opened[:-1])
    finally:
        for _, writer in opened:
            writer.transport.abort()
        await site.close()


async def test_what_we_answer_counts_too() -> None:
    room = MemoryBudget(MEGABYTE)
    stand = ScriptedServer(ORDINARY, REVISION, "http", room)
    conversation = ClientConversation(stand, 1, stand.scenario.name)

    class Nowhere:
        async def send(self, raw: bytes, *, last: bool = False) -> None:
            return

        async def drop(self) -> None:
            return

    for id in range(1_000):
        await conversation.send({"jsonrpc": "2.0", "id": id, "result": {"tools": ["x" * 500]}}, Nowhere())
    assert room.exhausted
