"""A raw HTTP server: requests without validation, and responses byte by byte, incomplete if a scenario wants that.

A `HTTPListener` listens on a port of 127.0.0.1 and passes each request to a function, with a `ScriptedResponse` for
its response. Nothing is validated or corrected, so that rules see what the client sent. A memory budget limits what is
read.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

import msgspec

from accord.check.clients.loopback import LoopbackListener
from accord.check.probes.message_log import MemoryBudget

_HEAD_BYTES = 256 << 10
_READ = 65_536
_EXCHANGE_MEMORY = 2_048
"""Approximate memory of a request besides its body: the headers of request and response."""


class ClientExchange(msgspec.Struct, kw_only=True, eq=False):
    """One request of the client, and its response. Times are of the monotonic clock."""

    number: int = 0
    """From 1, in the order in which they were complete."""
    verb: str
    target: str
    """Path and query."""
    headers: Mapping[str, str]
    """Names in lower case; repeated headers are joined with a comma."""
    body: bytes
    at: float
    status: int = 0
    """0 without a response."""
    response_headers: dict[str, str] = msgspec.field(default_factory=dict)
    """The headers of the response, with names in lower case."""
    client_closed_at: float | None = None
    """When the client closed the connection before the end of the response."""
    ended_at: float | None = None
    """When the response was complete, or aborted by the server."""

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    def line(self) -> str:
        """Return it as a remark in a transcript."""
        headers = "; ".join(f"{name}: {value}" for name, value in self.headers.items())
        return f"# {self.verb} {self.target} ({headers}) -> HTTP {self.status or 'nothing'}"


class ScriptedResponse:
    """The response to one request. `client_closed` is set when the client disconnects before its end."""

    def __init__(self, exchange: ClientExchange, writer: asyncio.StreamWriter) -> None:
        self._exchange = exchange
        self._writer = writer
        self.is_started: bool = False
        self.is_finished: bool = False
        self.client_closed: asyncio.Event = asyncio.Event()
        self.on_client_close: Callable[[], None] | None = None
        """Called when it is set."""

    async def send(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Send a response with a length. Keyword arguments are headers: `content_type="text/html"`."""
        named = _header_names(headers)
        if status != HTTPStatus.NO_CONTENT:
            named["Content-Length"] = str(len(body))
        await self._head(status, named, body)
        self.finish()

    async def start(self, status: int, **headers: str) -> None:
        """Start a chunked response."""
        await self._head(status, {**_header_names(headers), "Transfer-Encoding": "chunked"})

    async def send_chunk(self, data: bytes) -> None:
        """Send one chunk."""
        if data:
            await self._write(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        """Send the last chunk."""
        await self._write(b"0\r\n\r\n")
        self.finish()

    async def send_raw(self, data: bytes) -> None:
        """Send bytes without changes instead of a response."""
        self.is_started = True
        await self._write(data)

    def abort(self) -> None:
        """Close the connection at any point."""
        self.finish()
        self._writer.transport.abort()

    def finish(self) -> None:
        """Finish the response."""
        if not self.is_finished:
            self.is_finished = True
            self._exchange.ended_at = time.monotonic()

    async def _head(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        self.is_started = True
        self._exchange.status = status
        self._exchange.response_headers |= {name.lower(): value for name, value in headers.items()}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        await self._write(f"HTTP/1.1 {status} {_phrase(status)}\r\n{lines}\r\n".encode() + body)

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        with contextlib.suppress(OSError):  # it hung up, which its own event tells
            await self._writer.drain()


class HTTPListener:
    """Listens on its own port; `answer(exchange, reply)` gets each request. `room` limits what is read."""

    def __init__(
        self, answer: Callable[[ClientExchange, ScriptedResponse], Awaitable[None]], room: MemoryBudget
    ) -> None:
        self._answer = answer
        self._memory = room
        self._loopback = LoopbackListener(self._serve, _HEAD_BYTES)
        self.exchanges: list[ClientExchange] = []
        """All requests, in order."""
        self.url: str = ""
        """`http://127.0.0.1:PORT`."""
        self.connections: int = 0
        """The number of connections so far."""

    async def open(self) -> None:
        """Listen."""
        await self._loopback.open()
        self.url = f"http://127.0.0.1:{self._loopback.port}"

    async def close(self) -> None:
        """Close the port and all connections."""
        await self._loopback.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        incoming = _RequestReader(reader, self._memory)
        try:
            while (exchange := await incoming.read_request()) is not None:
                self.exchanges.append(exchange)
                exchange.number = len(self.exchanges)
                response = ScriptedResponse(exchange, writer)
                await self._respond(exchange, response, incoming)
                if response.client_closed.is_set() or not response.is_finished:
                    return
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            return  # no HTTP, or cut off in the middle of a request
        finally:
            writer.transport.abort()

    async def _respond(self, exchange: ClientExchange, response: ScriptedResponse, incoming: _RequestReader) -> None:
        """Handle a request, and detect that the client disconnects."""

        async def watch() -> None:
            await incoming.wait_for_close()
            if not response.is_finished:
                exchange.client_closed_at = time.monotonic()
                response.client_closed.set()
                if response.on_client_close is not None:
                    response.on_client_close()

        watching = asyncio.get_running_loop().create_task(watch())
        try:
            await self._answer(exchange, response)
        finally:
            watching.cancel()
            await asyncio.wait([watching])


class _RequestReader:
    """Serve the requests of one connection."""

    def __init__(self, reader: asyncio.StreamReader, room: MemoryBudget) -> None:
        self._reader = reader
        self._memory = room
        self._buffer = b""

    async def read_request(self) -> ClientExchange | None:
        """Read the next request; None at the end of the connection. Raises `ValueError` or `EOFError` for an invalid
        one.
        """
        self._memory.charge(_EXCHANGE_MEMORY)
        head = await self._read_until(b"\r\n\r\n")
        if head is None:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        verb, target, _ = first.split(" ", 2)
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            key = name.strip().lower()
            headers[key] = f"{headers[key]}, {value.strip()}" if key in headers else value.strip()
        at = time.monotonic()
        body = await self._read_body(headers)
        return ClientExchange(verb=verb, target=target, headers=headers, body=body, at=at)

    async def wait_for_close(self) -> None:
        """Wait until the client closes the connection; bytes that it sends are buffered."""
        while data := await self._read():
            self._buffer += data

    async def _read(self) -> bytes:
        """Read bytes; none at the end, or beyond the memory limit."""
        if self._memory.exhausted:
            return b""
        data = await self._reader.read(_READ)
        self._memory.charge_message(data)
        return data

    async def _read_body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return await self._read_exactly(int(headers.get("content-length", "0")))
        parts: list[bytes] = []
        while size := int((await self._read_line()).partition(b";")[0], 16):
            parts.append(await self._read_exactly(size))
            await self._read_line()
        await self._read_line()
        return b"".join(parts)

    async def _read_line(self) -> bytes:
        line = await self._read_until(b"\r\n")
        if line is None:
            raise EOFError
        return line

    async def _read_until(self, mark: bytes) -> bytes | None:
        while mark not in self._buffer:
            data = await self._read()
            if not data or len(self._buffer) > _HEAD_BYTES:
                return None
            self._buffer += data
        found, _, self._buffer = self._buffer.partition(mark)
        return found

    async def _read_exactly(self, size: int) -> bytes:
        if size < 0:
            raise ValueError(f"a body of {size} bytes")
        parts = [self._buffer]
        missing = size - len(self._buffer)
        while missing > 0:
            if not (data := await self._read()):
                raise EOFError
            parts.append(data)
            missing -= len(data)
        self._buffer = b"".join(parts)
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found


def _header_names(headers: Mapping[str, str]) -> dict[str, str]:
    """Return `content_type` as `Content-Type`."""
    return {"-".join(part.capitalize() for part in name.split("_")): value for name, value in headers.items()}


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
