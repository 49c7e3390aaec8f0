"""One stream of a session, without HTTP."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

from accord.limits import Limits
from accord.server.http.event_stream import EventStream
from accord.server.http.stored_stream import StoredStream
from accord.store.memory import MemoryEvents
from accord.transport.asgi.sse_response import SSEResponse


async def test_a_stream_whose_session_ends_before_its_first_event_is_stored_still_begins_with_an_id() -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    limits = Limits()
    stream = EventStream(StoredStream(MemoryEvents(limits), "session", "s1", b"[1]"), limits, lambda ended: None, None)
    response = SSEResponse(send, limits)
    stream.attach(response)
    stream.send_priming_event()
    stream.forget()
    stream.end(b'{"the":"error"}')
    await response.run()
    body = b"".join(message.get("body", b"") for message in sent)
    assert body.startswith(b"id: s1-0\ndata:")
    assert b'data: {"the":"error"}' in body


async def test_a_response_holds_only_what_it_counts_as_unsent() -> None:
    event_bytes = 8 << 20
    stalled = asyncio.Event()

    async def send(message: Any) -> None:
        if response.size <= event_bytes // 8:
            stalled.set()
            await asyncio.Event().wait()

    response = SSEResponse(send, Limits())
    tracemalloc.start()
    try:
        response.send_event(bytes(event_bytes))
        running = asyncio.create_task(response.run())
        await stalled.wait()
        held, _ = tracemalloc.get_traced_memory()
        assert held < event_bytes // 4
    finally:
        tracemalloc.stop()
    running.cancel()
    await asyncio.wait([running])
