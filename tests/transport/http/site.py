"""A server over HTTP that a test plays by hand: raw sockets, so that it can misbehave in any way."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from accord import Client
from accord.errors import RequestTimeout

from tests.clock import Clock

Message = dict[str, Any]

INFO = {"name": "site", "version": "1"}
OFFERS: Message = {"tools": {}, "resources": {}, "prompts": {}}
VERSION = "io.modelcontextprotocol/protocolVersion"


class Visit:
    """One request, and ways to respond to it."""

    def __init__(self, method: str, path: str, headers: dict[str, str], body: bytes, out: asyncio.StreamWriter) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.at = asyncio.get_running_loop().time()
        self.gone = asyncio.Event()
        """Set when the client has closed the connection."""
        self._out = out
        self._chunked = False

    @property
    def message(self) -> Message:
        return dict(json.loads(self.body)) if self.body else {}

    @property
    def verb(self) -> str:
        """The method of the message, or of HTTP where there is none."""
        return str(self.message.get("method", self.method))

    async def raw(self, data: bytes) -> None:
        self._out.write(data)
        await self._out.drain()

    async def respond(self, status: int, body: bytes = b"", kind: str = "text/plain", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", f"Content-Type: {kind}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    async def json(self, message: Any, status: int = 200, **headers: str) -> None:
        await self.respond(status, json.dumps(message).encode(), "application/json", **headers)

    async def result(self, _headers: dict[str, str] | None = None, **result: Any) -> None:
        """The answer to the request."""
        await self.json(self.answer(**result), **(_headers or {}))

    def answer(self, **result: Any) -> Message:
        return {"jsonrpc": "2.0", "id": self.message["id"], "result": {"resultType": "complete", **result}}

    async def error(self, code: int, text: str, status: int = 200, **data: Any) -> None:
        error = {"code": code, "message": text, **({"data": data} if data else {})}
        await self.json({"jsonrpc": "2.0", "id": self.message.get("id"), "error": error}, status)

    async def done(self, text: str = "done") -> None:
        """A good answer to `tools/call`."""
        await self.result(content=[{"type": "text", "text": text}])

    def done_message(self, text: str = "done") -> Message:
        return self.answer(content=[{"type": "text", "text": text}])

    async def stream(self, **headers: str) -> None:
        """Begin a stream of events."""
        lines = ["HTTP/1.1 200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self._chunked = True
        await self.raw("\r\n".join(lines).encode() + b"\r\n\r\n")

    async def event(self, message: Any = None, **fields: Any) -> None:
        """Send one event; without a message its data is empty."""
        text = "".join(f"{name}: {value}\n" for name, value in fields.items())
        await self.chunk(f"{text}data: {'' if message is None else json.dumps(message)}\n\n".encode())

    async def chunk(self, data: bytes) -> None:
        await self.raw(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        """End the stream as one should."""
        await self.raw(b"0\r\n\r\n")

    def close(self) -> None:
        """End the connection."""
        self._out.close()

    def reset(self) -> None:
        """Break the connection."""
        linger = struct.pack("ii", 1, 0)
        self._out.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._out.transport.abort()


Play = Callable[[Visit], Awaitable[None]]


class Site:
    """What was asked, and where."""

    def __init__(self, play: Play, tls: ssl.SSLContext | None = None) -> None:
        self.play = play
        self.port = 0
        self._tls = tls
        self._server: asyncio.Server | None = None
        self.visits: list[Visit] = []
        self.connections = 0
        self.url = ""
        self.failures: list[Exception] = []
        """What `play` raised."""
        self._serving: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    async def start(self) -> None:
        """Be up, on the same port as before."""
        self._server = await asyncio.start_server(self._begin, "127.0.0.1", self.port, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Be away, with every connection."""
        assert self._server is not None
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def of(self, verb: str) -> list[Visit]:
        """The visits that asked for this."""
        return [visit for visit in self.visits if visit.verb == verb]

    async def seen(self, verb: str, count: int = 1, seconds: float = 100) -> Visit:
        """Wait until this was asked for so many times; the last of them."""
        async with asyncio.timeout(seconds):
            while len(self.of(verb)) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.of(verb)[count - 1]

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (visit := await self._read(reader, writer)) is not None:
                self.visits.append(visit)
                self._changed.set()
                await _until(asyncio.ensure_future(self.play(visit)), reader, visit)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except Exception as error:
            self.failures.append(error)
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Visit | None:
        try:
            first = await reader.readexactly(1)
            if not first.isalpha():  # TLS, say
                writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                return None
            head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        method, path, _ = head[0].split(" ")
        pairs = (line.split(": ", 1) for line in head[1:] if line)
        headers = {name.lower(): value for name, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return Visit(method, path, headers, body, writer)


async def runs_out_of_time(client: Client, tool: str, reached: Awaitable[object]) -> None:
    """Call a tool that gets no answer: its time ends once the server was reached, however long that took."""
    call = asyncio.ensure_future(client.call_tool(tool, timeout=60))
    await reached
    await Clock().jump(61)
    with pytest.raises(RequestTimeout):
        await call


async def _until(playing: asyncio.Future[None], reader: asyncio.StreamReader, visit: Visit) -> None:
    """Let it play to its end, also when the client has gone: the end of the site ends it too."""
    closed = asyncio.ensure_future(_closed(reader))
    try:
        await asyncio.wait([playing, closed], return_when=asyncio.FIRST_COMPLETED)
        if closed.done() and not playing.done():
            visit.gone.set()
            await asyncio.wait([playing])
    finally:
        if playing.done() and not playing.cancelled() and isinstance(playing.exception(), ConnectionError):
            visit.gone.set()
        closed.cancel()
        playing.cancel()
        await asyncio.gather(closed, playing, return_exceptions=True)
    if not playing.cancelled():
        playing.result()


async def _closed(reader: asyncio.StreamReader) -> None:
    """Return when the client has closed its side; what it says meanwhile stays where it is."""
    while not reader.at_eof():
        await asyncio.sleep(0.005)


@asynccontextmanager
async def site(play: Play, path: str = "/mcp", tls: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    """A site that is up. Raises what `play` raised, also when the test fails: that is why it fails."""
    here = Site(play, tls)
    await here.start()
    here.url = f"{'https' if tls else 'http'}://127.0.0.1:{here.port}{path}"
    try:
        yield here
    finally:
        await here.stop()
        for failure in here.failures:
            raise failure


# --- servers of the two eras -----------------------------------------------------------------------------------


def modern(play: Play) -> Play:
    """A server of 2026-07-28: it answers `server/discover`, refuses `initialize`, and `play` has the rest."""

    async def played(visit: Visit) -> None:
        if visit.verb == "server/discover":
            await visit.result(supportedVersions=["2026-07-28"], capabilities=OFFERS, ttlMs=0, cacheScope="private")
        elif visit.verb == "initialize":  # from a client that got no answer to `server/discover` in time
            await visit.error(-32022, "Unsupported protocol version", 400, supported=["2026-07-28"], requested="")
        else:
            await play(visit)

    return played


def older(
    play: Play, session: str | None = "session-1", revision: str = "2025-11-25", offers: Message = OFFERS
) -> Play:
    """A server with a handshake; `play` has what comes after it, GET and DELETE included."""

    async def played(visit: Visit) -> None:
        if visit.verb == "server/discover":
            await visit.respond(400, b"Bad Request: no session")
        elif visit.verb == "initialize":
            said = {"protocolVersion": revision, "capabilities": offers, "serverInfo": INFO}
            await visit.result({"Mcp_Session_Id": session} if session else {}, **said)
        elif visit.verb == "notifications/initialized":
            await visit.respond(202)
        else:
            await play(visit)

    return played


async def quiet(visit: Visit) -> None:
    """What a server does that has no more than tools: no stream, and DELETE is fine."""
    if visit.verb == "GET":
        await visit.respond(405)
    elif visit.verb == "DELETE":
        await visit.respond(200)
    elif visit.verb == "tools/call":
        await visit.done()
    elif "id" in visit.message:
        await visit.result(tools=[])
    else:
        await visit.respond(202)
