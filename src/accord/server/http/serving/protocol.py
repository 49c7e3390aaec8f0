"""uvicorn's HTTP/1.1 protocol with a bound on the head of a request, and told of every disconnect.

The bound costs a request nothing but two comparisons: bytes are counted only while a head is unfinished.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from accord.server.http.serving.refusals import refusal

if TYPE_CHECKING:
    import asyncio

    from uvicorn._types import ASGI3Application


_STATUS, _CONTINUE = b"HTTP/1.1 ", b"HTTP/1.1 100 "
_FRAMING = (b"content-length", b"transfer-encoding")


class _Body:
    """Hears of a body only."""

    def __init__(self, connection: HttpToolsProtocol) -> None:
        self.on_body: Callable[[bytes], None] = connection.on_body
        self.on_message_complete: Callable[[], None] = connection.on_message_complete


class Whole:
    """Where the responses of a connection are written, the head of each with what follows it, in one system call.

    Only for a POST, whose head is always followed: by its answer, or by the first event of a stream.
    """

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = None

    def write(self, data: bytes) -> None:
        if self._head is not None:
            head, self._head = self._head, None
            self._transport.writelines((head, data))
        elif data.startswith(_STATUS) and not data.startswith(_CONTINUE):
            self._head = data
        else:
            self._transport.write(data)

    def close(self) -> None:
        if self._head is not None:
            self._transport.write(self._head)
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()


class BoundedProtocol(HttpToolsProtocol):
    """One connection. `head_bytes` bounds the line and the headers of a request; one more is answered 431."""

    # Slots: uvicorn's own attributes nearly fill what CPython keeps inline.
    __slots__ = ("_head", "_head_bytes", "_running", "_whole")

    def __init__(self, *, head_bytes: int, **options: Any) -> None:
        super().__init__(**options)
        self._head_bytes = head_bytes
        self._head = 0
        self._running: RequestResponseCycle | None = None
        self._whole: Whole | None = None

    def data_received(self, data: bytes) -> None:
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        if len(data) > self._head_bytes:
            self._feed_pieces(data)
            return
        before = self.cycle
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._decline(data[offer.args[0] :])
        except httptools.HttpParserError:
            self._refuse(400, "this is not HTTP/1.1")
            return
        if self.cycle is not before:
            self._head = 0
        elif before is None or before.response_complete or not before.more_body:
            self._count(len(data))

    def _feed_pieces(self, data: bytes) -> None:
        for start in range(0, len(data), self._head_bytes):
            if not self.transport.is_closing():
                self.data_received(data[start : start + self._head_bytes])

    def _count(self, size: int) -> None:
        """Bytes of a head that is not finished."""
        self._head += size
        if self._head > self._head_bytes:
            self._refuse(431, f"the head of a request is at most {self._head_bytes} bytes here")

    def _decline(self, rest: bytes) -> None:
        """An offer of another protocol is not taken: what follows the head, which llhttp leaves to it, is the body.

        Java's client makes one with each first request, and uvicorn loses the body of that.
        """
        self.cycle.keep_alive = False
        framing = [b"%s: %s\r\n" % header for header in self.headers if header[0] in _FRAMING]
        if framing:
            self.cycle.more_body = True
            self.cycle.message_event.clear()
            self.parser: httptools.HttpRequestParser = httptools.HttpRequestParser(_Body(self))
            self.parser.feed_data(b"POST / HTTP/1.1\r\n" + b"".join(framing) + b"\r\n" + rest)

    def _refuse(self, status: int, sentence: str) -> None:
        self.transport.write(refusal(status, sentence))
        self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        if cycle.scope["method"] == "POST":
            if self._whole is None:
                self._whole = Whole(self.transport)
            cycle.transport = self._whole  # type: ignore[assignment]  # it has what uvicorn uses
        task = self.loop.create_task(cycle.run_asgi(app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        running = self._running
        # uvicorn tells the last request that came; with pipelining, another one may be running.
        if running is not None and running is not self.cycle and not running.response_complete:
            running.disconnected = True
            running.message_event.set()
