"""HTTP/1.1 on a socket: feeds an `HTTPConnection`, runs the ASGI application for one request at a time, and writes its
responses.

The rules and limits of HTTP are in `wire/http1`; this module only waits and writes.
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
    COMPLETE,
    HEAD,
    BodyReceived,
    ConnectionBudget,
    Event,
    HTTPConnection,
    RequestComplete,
    RequestRefused,
)
from accord.wire.http1.head import HeadReceived

LOGGER: logging.Logger = logging.getLogger("accord.http")
"""The logger of exceptions that an application raises."""

Application = Callable[[Any, Any, Any], Awaitable[None]]

_ASGI = {"version": "3.0", "spec_version": "2.3"}
_DISCONNECT = {"type": "http.disconnect"}
_ONE_WRITE = 1 << 16
"""The most bytes of a body that are copied behind the head, for a single system call."""
_LITTLE = 1 << 14
"""The most unread bytes of a client that are not counted."""


class HTTPProtocol(asyncio.Protocol):
    """One connection. It is in `connections` while it is open, and its tasks are in `tasks`."""

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
        self._is_counted = False  # whether `connections` counts this one's unread bytes
        self._writable: asyncio.Event | None = None
        self.connections: Connections[HTTPProtocol] = connections
        self.tasks: set[asyncio.Task[None]] = tasks
        self.http: HTTPConnection = HTTPConnection(budget)
        self.exchange: HTTPExchange | None = None
        """The request in progress."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress, as far as its head has arrived."""
        return self.http.state == HEAD

    @property
    def is_working(self) -> bool:
        """Whether a request has arrived whose response has not begun."""
        return self.http.state == COMPLETE and self.exchange is not None and not self.exchange.has_started

    # --- asyncio callbacks ----------------------------------------------------------------------------------------

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
        http_exchange = self.exchange
        for event in events:
            if type(event) is HeadReceived:
                http_exchange = self.exchange = HTTPExchange(self, event)
                http_exchange.task = task = self._loop.create_task(http_exchange.run(self._app))
                self.tasks.add(task)
            elif type(event) is RequestRefused:
                self._refuse(event)
            elif http_exchange is not None:
                if type(event) is BodyReceived:
                    http_exchange.feed(event.data)
                elif type(event) is RequestComplete:
                    http_exchange.complete()

    def _refuse(self, refused: RequestRefused) -> None:
        if self.exchange is not None:
            self.exchange.refuse(refused)
            return
        if self.http.response is None:
            self.transport.write(refusal(refused.status, refused.text))
        self.transport.close()

    def finished(self) -> None:
        """Continue after a response: with the next request, or the end of the connection."""
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
        """Release bytes of the body that the application has read."""
        self.http.release(size)
        if self._is_counted:
            self._report_buffered()
        if not self._reading:
            self.update_reading()

    def update_reading(self) -> None:
        """Pause or resume reading, depending on the state of the connection."""
        if self._reading is not self.http.reading and not self.transport.is_closing():
            self._reading = not self._reading
            if self._reading:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()

    async def wait_writable(self) -> None:
        """Wait until the client has read enough of the response, or has disconnected."""
        if self._writable is None:
            self._writable = asyncio.Event()
        self._writable.clear()
        await self._writable.wait()

    def shutdown(self) -> None:
        """Serve no request after the current one; without one, close the connection."""
        self.http.finish()
        if self.exchange is None:
            self.transport.close()


class HTTPExchange:
    """One HTTP request and its response, as the ASGI application sees them."""

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
        "has_started",
        "task",
    )

    def __init__(self, connection: HTTPProtocol, head: HeadReceived) -> None:
        self._connection = connection
        self._scope = _scope(connection, head)
        self._body: bytes | bytearray = b""  # received, and not read by the application
        self._more = True  # whether more of the body will arrive
        self._ended = False  # whether the application has read the end of the body
        self._disconnected = False
        self._refused: RequestRefused | None = None
        self.has_started: bool = False
        """Whether a part of the response was written."""
        self._head: bytes | None = None  # the response's head, until it is written with the body
        self._over = False
        self._changed: asyncio.Event | None = None
        self.task: asyncio.Task[None] | None = None

    # --- called by the connection -----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Add a part of the body."""
        if not self._body:
            self._body = data
        else:
            self._body = self._body if isinstance(self._body, bytearray) else bytearray(self._body)
            self._body += data
        if self._changed is not None:
            self._changed.set()

    def complete(self) -> None:
        """Mark the body as complete."""
        self._more = False
        if self._changed is not None:
            self._changed.set()

    def refuse(self, refused: RequestRefused) -> None:
        """Refuse the rest of the request: an application that reads on receives a disconnect."""
        self._refused = refused
        if self.has_started:
            self._give_up()
        self._wake()

    def disconnect(self) -> None:
        """Mark the client as disconnected."""
        self._disconnected = True
        self._wake()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()

    def _give_up(self) -> None:
        """Send the reason, unless the response has begun, and close the connection."""
        if not self.has_started and self._refused is not None:
            self._connection.transport.write(refusal(self._refused.status, self._refused.text))
        self._connection.transport.close()
        self.disconnect()

    # --- called by the application ----------------------------------------------------------------------------------

    async def run(self, app: Application) -> None:
        """Run the application. An exception is logged, and answered with 500 unless the response has begun."""
        try:
            if self._connection.connections.have_much_unsent:
                await self._connection.connections.wait_for_turn()
            await app(self._scope, self.receive, self.send)
        except asyncio.CancelledError:
            self._fail("the server ends")
            raise
        except BaseException as exc:
            LOGGER.error("accord: the application failed", exc_info=exc)
            self._fail("the server failed")
        else:
            if not self._over and not self._disconnected:
                # The application aborts streams whose clients do not read; a client may have many of them.
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
        """Return the next part of the body; after its end or a disconnect, `http.disconnect`."""
        connection = self._connection
        while not (self._disconnected or self._over):
            if self._body or not (self._more or self._ended):
                body, self._body = self._body, b""
                self._ended = not self._more
                if body:
                    connection.release(len(body))
                return {"type": "http.request", "body": bytes(body), "more_body": self._more}
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

    async def send(self, message: Any) -> None:
        """Write a part of the response, once the client has read enough of the earlier parts. Raises
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
            # The head is sent at once, unless the body follows immediately, as it always does after a POST.
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
        """Write data, after the head if that is pending."""
        self.has_started = True
        head, self._head = self._head, None
        if head is None:
            if data:
                self._connection.transport.write(data)
        elif len(data) <= _ONE_WRITE:
            self._connection.transport.write(head + data)
        else:
            self._connection.transport.writelines((head, data))


def _scope(connection: HTTPProtocol, head: HeadReceived) -> dict[str, Any]:
    raw, _, query = head.target.partition(b"?")
    path = raw.decode()
    return {
        "type": "http",
        "asgi": _ASGI,
        "http_version": head.version,
        "server": connection.server,
        "client": connection.peer,
        "scheme": connection.scheme,
        "method": head.method,
        "root_path": "",
        "path": unquote(path) if "%" in path else path,
        "raw_path": raw,
        "query_string": query,
        "headers": head.headers,
        "state": {},
    }


def _address(name: object) -> tuple[str, int] | None:
    """Return host and port, or None for a socket without them."""
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else None
