"""Clients of both forms of Streamable HTTP that say what a test wants, and the census of what is left afterwards."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

import pytest

from accord.limits import Limits
from accord.server.http.app import HTTPApp
from accord.server.http.endpoint import HTTPEndpoint
from accord.server.http.options import HTTPOptions
from accord.server.server import Server

from tests.limits import limits_of
from tests.server.http.raw import BASIC, JSON, Answer, Direct, Event, Raw, served
from tests.waiting import until

LATEST = "2026-07-28"
META = "io.modelcontextprotocol/"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
ALL: JSON = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}

both_ways = pytest.mark.parametrize("way", ["direct", "socket"])


def encode(message: Any) -> bytes:
    return message if isinstance(message, bytes) else json.dumps(message).encode()


def request(method: str, params: Any = None, id: Any = 1) -> JSON:
    return {"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})}


def notification(method: str, params: Any = None) -> JSON:
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}


def text(answer: Any) -> str:
    """What a call said, or its error."""
    if "error" in answer:
        return str(answer["error"]["message"])
    return "".join(block["text"] for block in answer["result"]["content"])


class Modern:
    """A client of 2026-07-28."""

    def __init__(self, raw: Raw, capabilities: JSON | None = None, **headers: str) -> None:
        self.raw = raw
        self.capabilities = {} if capabilities is None else capabilities
        self.headers = {**BASIC, **headers}

    def meta(self, **more: Any) -> JSON:
        named = {META + "protocolVersion": LATEST, META + "clientCapabilities": self.capabilities}
        return {**named, **{META + name if name == "logLevel" else name: value for name, value in more.items()}}

    def head(self, message: JSON) -> dict[str, str]:
        """The headers that go with a message."""
        method = message["method"]
        headers = {**self.headers, "mcp-protocol-version": LATEST, "mcp-method": method}
        if method in NAMED:
            headers["mcp-name"] = message["params"][NAMED[method]]
        return headers

    async def begin(self, message: JSON, **headers: str | None) -> Answer:
        """Post it, and wait for nothing; headers that are None are left out."""
        given = {**self.head(message), **{name.replace("_", "-"): value for name, value in headers.items()}}
        return await self.raw.begin("POST", "/mcp", _there(given), encode(message))

    async def post(self, message: JSON, **headers: str | None) -> Answer:
        return await (await self.begin(message, **headers)).start()

    def request(self, method: str, params: JSON | None = None, *, id: Any = 1, **meta: Any) -> JSON:
        return request(method, {**(params or {}), "_meta": self.meta(**meta)}, id)

    def calling(self, tool: str, arguments: JSON | None = None, *, id: Any = 1, **meta: Any) -> JSON:
        return self.request("tools/call", {"name": tool, "arguments": arguments or {}}, id=id, **meta)

    async def ask(self, method: str, params: JSON | None = None, *, id: Any = 1, **meta: Any) -> Answer:
        return await self.post(self.request(method, params, id=id, **meta))

    async def call(self, tool: str, arguments: JSON | None = None, *, id: Any = 1, **meta: Any) -> Answer:
        return await self.post(self.calling(tool, arguments, id=id, **meta))


class Stateful:
    """A client that has a session: 2025-03-26 to 2025-11-25."""

    def __init__(
        self, raw: Raw, revision: str = "2025-11-25", capabilities: JSON | None = None, **headers: str
    ) -> None:
        self.raw = raw
        self.revision = revision
        self.capabilities = ALL if capabilities is None else capabilities
        self.headers: dict[str, str] = {**BASIC, **headers}
        self.id = ""

    def hello(self, id: Any = 0) -> JSON:
        known = {"name": "raw", "version": "1"}
        params = {"protocolVersion": self.revision, "capabilities": self.capabilities, "clientInfo": known}
        return request("initialize", params, id)

    async def initialize(self) -> Answer:
        answer = await self.post(self.hello())
        assert answer.status == 200, await answer.body()
        self.join(answer.headers["mcp-session-id"])
        return answer

    def join(self, id: str) -> Stateful:
        """Be in this session."""
        self.id = id
        self.headers |= {"mcp-session-id": id, "mcp-protocol-version": self.revision}
        return self

    async def open(self) -> Stateful:
        """Through the handshake."""
        await (await self.initialize()).end()
        assert (await self.post(notification("notifications/initialized"))).status == 202
        return self

    async def begin(self, method: str, body: bytes = b"", **headers: str | None) -> Answer:
        """Send it, and wait for nothing; headers that are None are left out."""
        given = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return await self.raw.begin(method, "/mcp", _there(given), body)

    async def send(self, method: str, body: bytes = b"", **headers: str | None) -> Answer:
        return await (await self.begin(method, body, **headers)).start()

    async def post(self, message: Any, **headers: str | None) -> Answer:
        return await self.send("POST", encode(message), **headers)

    async def ask(self, method: str, params: JSON | None = None, *, id: Any = 1) -> Answer:
        return await self.post(request(method, params, id))

    async def call(self, tool: str, arguments: JSON | None = None, *, id: Any = 1, **meta: Any) -> Answer:
        return await self.post(self.calling(tool, arguments, id=id, **meta))

    def calling(self, tool: str, arguments: JSON | None = None, *, id: Any = 1, **meta: Any) -> JSON:
        return request("tools/call", {"name": tool, "arguments": arguments or {}, "_meta": meta}, id)

    async def tell(self, method: str, params: JSON | None = None) -> int:
        return (await self.post(notification(method, params))).status

    async def answer(self, id: Any, result: JSON) -> int:
        return (await self.post({"jsonrpc": "2.0", "id": id, "result": result})).status

    async def listen(self, last: str | None = None) -> Answer:
        """GET: the stream, or the rest of the one that this event belongs to."""
        return await self.send("GET", last_event_id=last)

    async def delete(self) -> Answer:
        return await self.send("DELETE")


class Legacy:
    """A client of HTTP+SSE (2024-11-05): one stream, and an address to post to."""

    def __init__(self, raw: Raw, stream: Answer, address: str, **headers: str) -> None:
        self.raw, self.stream, self.address = raw, stream, address
        self.headers: dict[str, str] = {**BASIC, **headers}

    @classmethod
    async def connect(cls, raw: Raw, **headers: str) -> Legacy:
        stream = await raw.send("GET", "/sse", {"host": "localhost", "accept": "text/event-stream", **headers})
        event: Event = await stream.event()
        assert event.name == "endpoint"
        return cls(raw, stream, event.data, **headers)

    async def open(self, revision: str = "2024-11-05", capabilities: JSON | None = None) -> Legacy:
        known = {"name": "raw", "version": "1"}
        hello = {"protocolVersion": revision, "capabilities": capabilities or {}, "clientInfo": known}
        assert "result" in await self.ask("initialize", hello, id=0)
        assert (await self.post(notification("notifications/initialized"))).status == 202
        return self

    async def post(self, message: Any) -> Answer:
        return await self.raw.send("POST", self.address, self.headers, encode(message))

    async def ask(self, method: str, params: JSON | None = None, *, id: Any = 1) -> JSON:
        """Its answer, which is the next thing on the stream."""
        assert (await self.post(request(method, params, id))).status == 202
        return await self.stream.message()


def _there(headers: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if value is not None}


def sentinel(value: str) -> str:
    """A value of a header that is no plain text."""
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


class Here(NamedTuple):
    """A server that can be asked."""

    raw: Raw
    app: HTTPApp

    @property
    def endpoint(self) -> HTTPEndpoint:
        """What is behind the application, once it was asked something."""
        (endpoint,) = self.app._endpoints.values()
        return endpoint

    def busy(self) -> list[Any]:
        """What is in flight, and who listens."""
        found: list[Any] = []
        for each in self.app._endpoints.values():
            lines = [*each._clients.values(), *each.sessions, *each.sse]
            found += [*(line.session.incoming for line in lines), each._stateless._listening]
        return [each for each in found if each]


@asynccontextmanager
async def site(server: Server, way: str = "direct", options: HTTPOptions | None = None) -> AsyncIterator[Here]:
    """A server, called directly or over sockets. When the block ends, nothing runs any more within moments; when it
    is closed, no task and no descriptor is left of it.
    """
    before, files = asyncio.all_tasks(), _files()
    app = server.asgi(options)
    async with AsyncExitStack() as stack:
        raw: Raw = Direct(app) if way == "direct" else await stack.enter_async_context(served(app, server.limits))
        here = Here(raw, app)
        yield here
        await until(lambda: not here.busy(), here.busy)
    await app.drain(1)
    await app.close()
    await until(lambda: not asyncio.all_tasks() - before, lambda: asyncio.all_tasks() - before)
    gc.collect()
    await until(lambda: _files() <= files, lambda: (files, _files()))


def _files() -> int:
    return len(os.listdir("/proc/self/fd"))


def quick(**limits: Any) -> Limits:
    """Limits for tests that wait for them."""
    return limits_of(**{"http_patience_seconds": 0.05, "close_seconds": 0.5, **limits})
