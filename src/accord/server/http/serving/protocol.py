"""HTTP/1.1 on a socket: feeds an `HTTPConnection`, runs the ASGI application for one request after the other, and
writes its responses.

Whatever is a rule of HTTP, or a bound, is in `wire/http1`; here is only what waits and what writes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

from accord.server.http.serving.connections import Connections
from accord.server.http.serving.refusals import BUSY, refusal, unsent_bytes
from accord.wire.http1.connection import (
    CLOSED,
    BodyReceived,
    ConnectionBudget,
    Event,
    HTTPConnection,
    RequestComplete,
    RequestRefused,
)
from accord.wire.http1.head import HeadReceived

LOGGER: logging.Logger = logging.getLogger("accord.http")
"""Where what an application raises is told."""

Application = Callable[[Any, Any, Any], Awaitable[None]]

_ASGI = {"version": "3.0", "spec_version": "2.3"}
_DISCONNECT = {"type": "http.disconnect"}
_ONE_WRITE = 1 << 16
"""Bytes of a body up to which it is copied behind its head, for one system call."""
_LITTLE = 1 << 14
"""Bytes of a client that wait to be parsed or taken, and are not counted."""


class HTTPProtocol(asyncio.Protocol):
    """One connection. It is in `connections` as long as it is open, and what runs for it is in `tasks`."""

    __slots__ = (
        "_app",
        "_is_counted",
        "_loop",
        "_reading",
        "_writable",
        "connections",
        "exchange",
        "http",
        "peer",
        "scheme",
        "server",
        "tasks",
        "transport",
    )

    def __init__(
        self,
        app: Application,
        budget: ConnectionBudget,
        connections: Connections[HTTPProtocol],
        tasks: set[asyncio.Task[None]],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._app = app
        self._loop = loop
        self._reading = True
        self._is_counted = False  # whether `connections` knows what waits here
        self._writable: asyncio.Event | None = None
        self.connections: Connections[HTTPProtocol] = connections
        self.tasks: set[asyncio.Task[None]] = tasks
        self.http: HTTPConnection = HTTPConnection(budget)
        self.exchange: HTTPExchange | None = None
        """The request that is being served."""

    # --- what asyncio calls ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]  # uvloop's is not declared as one
        self.server: tuple[str, int] | None = _address(transport.get_extra_info("sockname"))
        self.peer: tuple[str, int] | None = _address(transport.get_extra_info("peername"))
        self.scheme = "http" if transport.get_extra_info("sslcontext") is None else "https"
        if not self.connections.add(self):
            self.http.close()
            self.transport.write(BUSY)
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        events = self.http.receive(data)
        if events:
            self._handle(events)
        if self.http.buffered_bytes > _LITTLE or self._is_counted:
            self._report_buffered()
        self.update_reading()

    def _report_buffered(self) -> None:
        size = self.http.buffered_bytes
        self._is_counted = size > _LITTLE
        self.connections.buffered(self, size if self._is_counted else 0)

    def pause_writing(self) -> None:
        self.http.writable = False
        self.connections.stalled(self, unsent_bytes(self.transport))
        self.update_reading()

    def resume_writing(self) -> None:
        self.http.writable = True
        self.connections.resumed(self)
        if self._writable is not None:
            self._writable.set()
        self._handle(self.http.resume())
        if self._is_counted:
            self._report_buffered()
        self.update_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.connections.discard(self)
        self.http.close()
        if self.exchange is not None:
            self.exchange.disconnect()
        if self._writable is not None:
            self._writable.set()

    # --- requests -------------------------------------------------------------------------------------------------

    def _handle(self, events: list[Event]) -> None:
        exchange = self.exchange
        for event in events:
            if type(event) is HeadReceived:
                exchange = self.exchange = HTTPExchange(self, event)
                exchange.task = task = self._loop.create_task(exchange.run(self._app))
                self.tasks.add(task)
            elif type(event) is RequestRefused:
                self._refuse(event)
            elif exchange is not None:
                if type(event) is BodyReceived:
                    exchange.feed(event.data)
                elif type(event) is RequestComplete:
                    exchange.complete()

    def _refuse(self, refused: RequestRefused) -> None:
        if self.exchange is not None:
            self.exchange.refuse(refused)
            return
        if self.http.response is None:
            self.transport.write(refusal(refused.status, refused.text))
        self.transport.close()

    def finished(self) -> None:
        """The response to a request is over: the next one, if it is there, or the end."""
        self.exchange = None
        if self.http.state == CLOSED:
            self.transport.close()
            return
        if self.http.unparsed:
            self._handle(self.http.resume())
        if self._is_counted:
            self._report_buffered()
        if not self._reading:
            self.update_reading()

    def release(self, size: int) -> None:
        """The application has taken so many bytes of the body."""
        self.http.release(size)
        if self._is_counted:
            self._report_buffered()
        if not self._reading:
            self.update_reading()

    def update_reading(self) -> None:
        """Read, or do not, as the state of the connection says."""
        if self._reading is not self.http.reading and not self.transport.is_closing():
            self._reading = not self._reading
            if self._reading:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()

    async def wait_writable(self) -> None:
        """Return when the client has taken enough of what was written, or is gone."""
        if self._writable is None:
            self._writable = asyncio.Event()
        self._writable.clear()
        await self._writable.wait()

    def shutdown(self) -> None:
        """Serve no request behind the one that is being served; without one, close."""
        self.http.finish()
        if self.exchange is None:
            self.transport.close()


class HTTPExchange:
    """One request and its response, as an ASGI application sees them."""

    __slots__ = (
        "_body",
        "_changed",
        "_connection",
        "_disconnected",
        "_ended",
        "_head",
        "_more",
        "_over",
        "_refused",
        "_scope",
        "_started",
        "task",
    )

    def __init__(self, connection: HTTPProtocol, received: HeadReceived) -> None:
        self._connection = connection
        self._scope = _scope(connection, received)
        self._body: bytes | bytearray = b""  # what the application has not taken
        self._more = True  # whether more of it will come
        self._ended = False  # whether the application has its end
        self._disconnected = False
        self._refused: RequestRefused | None = None
        self._started = False  # whether some of the response was written
        self._head: bytes | None = None  # of the response, until it is written with what follows
        self._over = False
        self._changed: asyncio.Event | None = None
        self.task: asyncio.Task[None] | None = None

    # --- what the connection tells ----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """A part of the body has come."""
        if not self._body:
            self._body = data
        else:
            self._body = self._body if isinstance(self._body, bytearray) else bytearray(self._body)
            self._body += data
        if self._changed is not None:
            self._changed.set()

    def complete(self) -> None:
        """The body has ended."""
        self._more = False
        if self._changed is not None:
            self._changed.set()

    def refuse(self, refused: RequestRefused) -> None:
        """The rest of the request is not acceptable: an application that asks for it has lost its client."""
        self._refused = refused
        if self._started:
            self._give_up()
        self._wake()

    def disconnect(self) -> None:
        """The client is gone."""
        self._disconnected = True
        self._wake()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()

    def _give_up(self) -> None:
        """Say why, if nothing was said before, and close."""
        if not self._started and self._refused is not None:
            self._connection.transport.write(refusal(self._refused.status, self._refused.text))
        self._connection.transport.close()
        self.disconnect()

    # --- what the application does ----------------------------------------------------------------------------------

    async def run(self, app: Application) -> None:
        """Run the application. What it raises is logged, and the client is told if nothing was sent."""
        try:
            await app(self._scope, self.receive, self.send)
        except asyncio.CancelledError:
            self._fail("the server ends")
            raise
        except BaseException as exc:
            LOGGER.error("accord: the application failed", exc_info=exc)
            self._fail("the server failed")
        else:
            if not self._over and not self._disconnected:
                # It cuts streams that a client does not read, who can have many of them.
                level = logging.INFO if unsent_bytes(self._connection.transport) else logging.ERROR
                LOGGER.log(level, "accord: the application returned before its response was complete")
                self._fail("the server has no response")
        finally:
            self._connection.tasks.discard(self.task)

    def _fail(self, text: str) -> None:
        if not self._over and not self._disconnected:
            self._refused = RequestRefused(500, text)
            self._connection.http.close()
            self._give_up()

    async def receive(self) -> dict[str, Any]:
        """The next part of the body; then, and when the client is gone, `http.disconnect`."""
        connection = self._connection
        while not (self._disconnected or self._over):
            if self._body or not (self._more or self._ended):
                return self._next_part()
            if self._refused is not None:
                self._give_up()
                break
            if interim := connection.http.send_continue():
                connection.transport.write(interim)
            if self._changed is None:
                self._changed = asyncio.Event()
            self._changed.clear()
            await self._changed.wait()
        return _DISCONNECT.copy()

    def _next_part(self) -> dict[str, Any]:
        body, self._body = self._body, b""
        self._ended = not self._more
        if body:
            self._connection.release(len(body))
        return {"type": "http.request", "body": bytes(body), "more_body": self._more}

    async def send(self, message: Any) -> None:
        """Write a part of the response, once the client has taken what was written before. Raises
        `LocalProtocolError`.
        """
        connection = self._connection
        while not connection.http.writable and not self._disconnected:
            await connection.wait_writable()
        if self._disconnected:
            return
        kind = message["type"]
        if self._over or kind not in ("http.response.start", "http.response.body"):
            raise RuntimeError(f"{kind!r} is not sent {'behind the end of' if self._over else 'in'} a response")
        if kind == "http.response.start":
            head = connection.http.send_head(message["status"], message.get("headers", ()))
            # A head of its own is sent at once, unless the body is as good as there: after a POST it always is.
            if self._scope["method"] == "POST":
                self._head = head
            else:
                self._write(head)
            return
        more = message.get("more_body", False)
        data = connection.http.send_body(message.get("body", b""), more=more)
        self._write(data)
        if not more:
            self._over = True
            self._wake()
            connection.finished()

    def _write(self, data: bytes) -> None:
        """Write it, behind the head if that waits."""
        self._started = True
        head, self._head = self._head, None
        if head is None:
            if data:
                self._connection.transport.write(data)
        elif len(data) <= _ONE_WRITE:
            self._connection.transport.write(head + data)
        else:
            self._connection.transport.writelines((head, data))


def _scope(connection: HTTPProtocol, received: HeadReceived) -> dict[str, Any]:
    raw, _, query = received.target.partition(b"?")
    path = raw.decode()
    return {
        "type": "http",
        "asgi": _ASGI,
        "http_version": received.version,
        "server": connection.server,
        "client": connection.peer,
        "scheme": connection.scheme,
        "method": received.method,
        "root_path": "",
        "path": unquote(path) if "%" in path else path,
        "raw_path": raw,
        "query_string": query,
        "headers": received.headers,
        "state": {},
    }


def _address(name: object) -> tuple[str, int] | None:
    """Host and port; None for a socket that has none."""
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else None
