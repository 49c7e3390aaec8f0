"""A client that knows HTTP and no more: what it sends is what the test says, and it may go away at any time.

`Direct` calls the ASGI application; `Socket` sends bytes to a real server. Both give an `Answer`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol

from accord.limits import DEFAULT_LIMITS, Limits
from accord.server.http.app import HTTPApp
from accord.server.http.serving.address import bind, parse_address
from accord.server.http.serving.asgi_server import ASGIServer

JSON = dict[str, Any]
SECONDS = 100.0
"""How long anything may take here."""

BASIC = {
    "host": "localhost",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}


class Event(NamedTuple):
    """One server-sent event; `data` is the message in it, or None where it is empty."""

    id: str | None
    data: Any
    retry: int | None = None
    name: str = "message"


class Ended(Exception):
    """The response is over, or cut."""


class Answer:
    """A response on its way in. `status` and `headers` are there; the rest comes."""

    def __init__(self) -> None:
        self.status: int = 0
        self.headers: dict[str, str] = {}
        self.whole: bool = False
        """Whether it was there to its end."""
        self._buffer = b""
        self._over = False
        self._news = asyncio.Event()

    @property
    def streams(self) -> bool:
        """Whether it consists of events."""
        return self.headers.get("content-type") == "text/event-stream"

    async def start(self) -> Answer:
        """Wait for the status. Raises `Ended` when there is none."""
        while not self.status:
            await self._more()
        return self

    async def body(self) -> bytes:
        """All of it."""
        await self.end()
        return self._buffer

    async def json(self) -> Any:
        """All of it, as JSON."""
        return json.loads(await self.body())

    async def end(self) -> None:
        """Wait for the end."""
        while not self._over:
            await self._more()

    async def event(self) -> Event:
        """The next event; comments are passed over. Raises `Ended`."""
        while True:
            while b"\n\n" not in self._buffer:
                await self._more()
            block, self._buffer = self._buffer.split(b"\n\n", 1)
            if (event := _event(block)) is not None:
                return event

    async def events(self) -> list[Event]:
        """All that come until the end."""
        found = []
        try:
            while True:
                found.append(await self.event())
        except Ended:
            return found

    async def message(self) -> JSON:
        """The next event that is a message."""
        while True:
            event = await self.event()
            if event.data is not None:
                return event.data  # type: ignore[no-any-return]

    async def result(self) -> Any:
        """The last message: the answer, however it came."""
        if not self.streams:
            return await self.json()
        return [event for event in await self.events() if event.data is not None][-1].data

    async def _more(self) -> None:
        if self._over:
            raise Ended
        self._news.clear()
        async with asyncio.timeout(SECONDS):
            await self._news.wait()

    def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.status, self.headers = status, dict(headers)
        self._news.set()

    def _take(self, data: bytes) -> None:
        self._buffer += data
        self._news.set()

    def _end(self, *, whole: bool) -> None:
        self.whole, self._over = whole, True
        self._news.set()

    async def leave(self) -> None:
        """Go away, whatever was to come."""
        raise NotImplementedError


def _event(block: bytes) -> Event | None:
    fields: dict[str, str] = {}
    for line in block.decode().split("\n"):
        name, _, value = line.partition(":")
        fields[name] = fields[name] + "\n" + value.strip() if name in fields else value.strip()
    fields.pop("", None)
    if not fields:
        return None
    data, name = fields.get("data") or None, fields.get("event", "message")
    retry = fields.get("retry")
    parsed = json.loads(data) if data is not None and name == "message" else data
    return Event(fields.get("id"), parsed, None if retry is None else int(retry), name)


class Raw(Protocol):
    """Whoever can send a request."""

    async def begin(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        """The answer, of which nothing is there yet."""
        ...

    async def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        """The answer, once its head is there."""
        return await (await self.begin(method, path, headers, body)).start()


class _DirectAnswer(Answer):
    def __init__(self, app: Any, scope: JSON, body: bytes) -> None:
        super().__init__()
        self._body: bytes | None = body
        self._gone = asyncio.Event()
        self.task = asyncio.create_task(self._run(app, scope))

    async def _run(self, app: Any, scope: JSON) -> None:
        try:
            await app(scope, self._receive, self._send)
        finally:
            self._end(whole=self.whole)

    async def _receive(self) -> JSON:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: JSON) -> None:
        if self._gone.is_set():
            return
        if message["type"] == "http.response.start":
            self._begin(message["status"], {name.decode(): value.decode() for name, value in message["headers"]})
            return
        self._take(message.get("body", b""))
        if not message.get("more_body"):
            self._end(whole=True)
            self._gone.set()

    async def leave(self) -> None:
        self._gone.set()
        self._end(whole=False)


class Direct(Raw):
    """Calls an application, as a server would."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def begin(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        path, _, query = path.partition("?")
        raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": raw}
        return _DirectAnswer(self.app, scope, body)


class _SocketAnswer(Answer):
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__()
        self._reader, self._writer = reader, writer
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        whole = False
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            status, *lines = head.decode("latin-1").split("\r\n")[:-2]
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            self._begin(int(status.split()[1]), headers)
            if headers.get("transfer-encoding") == "chunked":
                while size := int((await self._reader.readuntil(b"\r\n")).strip(), 16):
                    self._take((await self._reader.readexactly(size + 2))[:-2])
            else:
                self._take(await self._reader.readexactly(int(headers["content-length"])))
            whole = True
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._end(whole=whole)
            self._writer.close()

    async def leave(self) -> None:
        self.reading.cancel()
        self._writer.transport.abort()


class Socket(Raw):
    """Sends bytes to a server, each request on a connection of its own."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._coming: set[_SocketAnswer] = set()
        """Answers that come, also while nobody looks."""

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def begin(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        return await self.bytes(request_bytes(method, path, headers, body))

    async def bytes(self, request: bytes) -> Answer:
        """The answer to these bytes, of which nothing is there yet."""
        reader, writer = await self.connect()
        writer.write(request)
        answer = _SocketAnswer(reader, writer)
        self._coming.add(answer)
        answer.reading.add_done_callback(lambda _: self._coming.discard(answer))
        return answer


def request_bytes(method: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """A request as it goes over the wire."""
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode("latin-1") + body


@asynccontextmanager
async def served(app: HTTPApp, limits: Limits = DEFAULT_LIMITS) -> AsyncIterator[Socket]:
    """The application on a socket; it is drained and closed at the end."""
    sockets = bind(parse_address("127.0.0.1:0"))
    listening = ASGIServer(app, limits)
    await listening.start(sockets)
    try:
        yield Socket(sockets[0].getsockname()[1])
    finally:
        listening.stop_accepting()
        await app.drain(SECONDS / 10)
        await listening.finish(SECONDS / 10)
        await app.close()
