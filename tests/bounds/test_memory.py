"""What a peer sends is ten times what its limit allows, and what is kept of it stays within the limit."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from accord import AccordError, Client, ClientLimits, Limits, Server, TaskLimits
from accord.transport.recording import SessionRecorder
from accord.transport.session_queue import SessionQueue
from accord.transport.session_writer import SessionFileWriter

from tests.client.raw import raw_server
from tests.server.tasks.test_calls import CORE, EXTENSION, Desk, client
from tests.waiting import turns

LIMIT = 1 << 20
TEXT = "x" * 10_000


class Kept:
    bytes = 0


@contextmanager
def kept() -> Iterator[Kept]:
    """Measure the memory that is in use at the end of a block and was not before it."""
    found = Kept()
    gc.collect()
    tracemalloc.start()
    try:
        yield found
        gc.collect()
        found.bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


async def test_notifications_that_nobody_reads() -> None:
    async def waits(notice: Any) -> None:
        await asyncio.Event().wait()

    limits = Limits(notice_bytes=LIMIT, notices=100_000)
    async with raw_server("2025-11-25", on_notification=waits, limits=limits) as (server, client):
        async with client.notifications() as stream:
            with kept() as memory:
                for number in range(10 * LIMIT // len(TEXT)):
                    server.say({"method": "notifications/message", "params": {"level": "info", "data": TEXT}})
                    if number % 10 == 0:
                        await turns(20)
                await turns(200)
            assert stream.dropped > 0
        assert memory.bytes < 4 * LIMIT  # a callback and a stream, each with its own


async def test_results_in_the_cache() -> None:
    async with raw_server("2026-07-28", limits=Limits(client=ClientLimits(cache_bytes=LIMIT))) as (peer, client):
        with kept() as memory:
            for number in range(10 * LIMIT // len(TEXT)):
                call = asyncio.ensure_future(client.read_resource(f"large://{number}"))
                contents = [{"uri": f"large://{number}", "text": TEXT}]
                peer.answer(await peer.hear(), contents=contents, ttlMs=600_000, cacheScope="private")
                await call
        assert LIMIT / 2 < memory.bytes < 2 * LIMIT


async def test_a_session_file(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    queue = SessionQueue(SessionFileWriter(file, limit=LIMIT), size=LIMIT)
    recorder = SessionRecorder(queue)
    recorder.begin("test")
    server = Server("large")
    server.tool(name="echo")(lambda text: text)
    async with Client(server, record=recorder) as client:
        with kept() as memory:
            for _ in range(10 * LIMIT // len(TEXT)):
                await client.call_tool("echo", {"text": TEXT})
            await queue.wait()
        assert memory.bytes < 4 * LIMIT
    assert file.stat().st_size <= LIMIT


@pytest.mark.parametrize("revision", [CORE, EXTENSION])
async def test_tasks(revision: str) -> None:
    desk = Desk(Limits(tasks=TaskLimits(kept_bytes=LIMIT)))
    async with client(desk, revision) as each:
        with kept() as memory:
            for _ in range(10 * LIMIT // len(TEXT)):
                with suppress(AccordError):
                    await each.start_tool("work", {"label": TEXT})
        assert LIMIT / 2 < memory.bytes < 5 * LIMIT
        desk.let_on.set()
