"""The length of the path of one `tools/call` on the server: Python calls of accord, and the files that they are in.

A call is counted once, also if it is suspended and resumed. The bounds are the figures that were reached. A change that
needs a longer path says why, and raises them; a shorter path lowers them. See docs/design.md, "Length of the path".
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import accord
from accord.server.run import serve
from accord.server.server import Server
from accord.transport.pipes import PipeTransport

from tests.server.raw import META

STATELESS, SESSION = "2026-07-28", "2025-11-25"

BOUNDS = {
    ("stdio", STATELESS): (40, 15),
    ("stdio", SESSION): (38, 14),
    ("http", STATELESS): (49, 17),
    ("http", SESSION): (48, 18),
}
"""Calls and files, by transport and revision. HTTP begins at the ASGI application."""

WARM_UP = 20
"""Calls before the counted one: caches are full, and types are built."""

SOURCE = str(Path(accord.__file__).parent) + os.sep
JSON = dict[str, Any]
Send = Callable[[JSON], Awaitable[JSON]]


class CallPath:
    """The calls of accord's functions, in their order."""

    def __init__(self) -> None:
        self._frames: list[FrameType] = []  # kept, so that no two calls have the same one

    def add(self, frame: FrameType, event: str, _: object) -> None:
        """Add a call that begins; a call that is resumed is there already."""
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE) and frame not in self._frames:
            self._frames.append(frame)

    @property
    def steps(self) -> list[str]:
        """File and function of each call."""
        codes = [frame.f_code for frame in self._frames]
        return [f"{code.co_filename.removeprefix(SOURCE)} {code.co_qualname}" for code in codes]

    @property
    def files(self) -> set[str]:
        """The files that the calls are in."""
        return {step.partition(" ")[0] for step in self.steps}


@contextmanager
def recorded_path() -> Iterator[CallPath]:
    """Record the calls within the block."""
    path = CallPath()
    sys.setprofile(path.add)
    try:
        yield path
    finally:
        sys.setprofile(None)


def make_server() -> Server:
    """Return a server with a tool that neither waits nor has structured output."""
    server = Server("path", "1")

    @server.tool
    async def echo(text: str) -> str:
        return text

    return server


@asynccontextmanager
async def over_stdio() -> AsyncIterator[Send]:
    """Yield a function that sends a message over pipes and returns the response, without any code of accord."""
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    loop, responses = asyncio.get_running_loop(), asyncio.Queue[bytes]()
    loop.add_reader(ours_in, lambda: responses.put_nowait(os.read(ours_in, 1 << 16)))
    serving = loop.create_task(serve(make_server(), PipeTransport(theirs_in, theirs_out)))

    async def send(message: JSON) -> JSON:
        os.write(ours_out, json.dumps(message).encode() + b"\n")
        return json.loads(await responses.get()) if "id" in message else {}

    try:
        yield send
    finally:
        os.close(ours_out)
        loop.remove_reader(ours_in)
        async with asyncio.timeout(100):
            await serving
        os.close(ours_in)


@asynccontextmanager
async def over_http() -> AsyncIterator[Send]:
    """Yield a function that posts a message to the application and returns the response."""
    app = make_server().app
    headers = {
        b"host": b"localhost",
        b"content-type": b"application/json",
        b"accept": b"application/json, text/event-stream",
    }

    async def send(message: JSON) -> JSON:
        body, sent = json.dumps(message).encode(), []

        async def receive() -> JSON:
            return {"type": "http.request", "body": body}

        async def receive_response(event: JSON) -> None:
            sent.append(event)

        fields = [*headers.items(), *_request_headers(message).items()]
        client = {"client": ("127.0.0.1", 50_000), "server": ("127.0.0.1", 8_000)}
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": fields, **client}
        await app(scope, receive, receive_response)
        if session := dict(sent[0]["headers"]).get(b"mcp-session-id"):
            headers[b"mcp-session-id"] = session
        return json.loads(sent[1]["body"]) if "id" in message else {}

    try:
        yield send
    finally:
        await app.close()


def _request_headers(message: JSON) -> dict[bytes, bytes]:
    if "_meta" not in message["params"]:
        return {b"mcp-protocol-version": SESSION.encode()} if message["method"] != "initialize" else {}
    repeated = {b"mcp-method": message["method"].encode(), b"mcp-name": message["params"]["name"].encode()}
    return {b"mcp-protocol-version": STATELESS.encode(), **repeated}


async def open_session(send: Send) -> None:
    """Complete the handshake."""
    params = {"protocolVersion": SESSION, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    assert "result" in await send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
    await send({"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}})


@pytest.mark.parametrize(("transport", "revision"), BOUNDS, ids=lambda value: value)
async def test_path_of_one_tool_call_gets_no_longer(transport: str, revision: str) -> None:
    params: JSON = {"name": "echo", "arguments": {"text": "x"}}
    async with (over_http if transport == "http" else over_stdio)() as send:
        if revision == SESSION:
            await open_session(send)
        else:
            params["_meta"] = META
        calls = [{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params} for id in range(1, WARM_UP + 3)]
        for call in calls[:WARM_UP]:
            await send(call)
        with recorded_path() as path:
            response = await send(calls[WARM_UP])
        await send(calls[-1])
    assert response["result"]["content"] == [{"type": "text", "text": "x"}]
    most_calls, most_files = BOUNDS[transport, revision]
    assert len(path.steps) <= most_calls, "\n".join(path.steps)
    assert len(path.files) <= most_files, sorted(path.files)
