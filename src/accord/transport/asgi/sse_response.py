"""A response that is an event stream to one client.

`send` queues a message and never waits; `run` writes, in the task that awaits it. The server cuts a client that does
not read: when it reads nothing for a while, or when a further event exceeds the limit of unsent bytes. Comments keep
proxies from closing a silent stream ("servers are encouraged to periodically emit an SSE comment line").
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from accord.limits import Limits
from accord.transport.asgi.request import Headers, Receive, Send
from accord.transport.deadlines import with_deadline
from accord.wire import sse

log: logging.Logger = logging.getLogger("accord")

_HEADERS: Headers = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


_LITTLE = 64 << 10
"""Unsent bytes of a stream that are not reported."""

_PART = 256 << 10
"""Bytes that are written at once: a client has `HTTPLimits.write_seconds` for each part of a large event."""


UnsentCallback = Callable[["SSEResponse", int], None]


class SSEResponse:
    """The response to one request, as an event stream, and a sink that sends messages as events of the type `event`.

    `is_closed` is true once nothing more can be written. `on_unsent` gets the number of unsent bytes while they are
    many, and 0 once they are not.
    """

    def __init__(
        self,
        send: Send,
        limits: Limits,
        headers: Headers = (),
        on_unsent: UnsentCallback | None = None,
        *,
        event: str | None = None,
        name: str = "HTTP",
    ) -> None:
        self.name: str = name
        self._send = send
        self._limits = limits
        self._headers = headers
        self._event = event
        self._loop = asyncio.get_running_loop()
        self._pending: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._writable: asyncio.Event | None = None
        self._ended = False
        self._on_unsent = on_unsent
        self._is_counted = False
        self._write_timeout: asyncio.Timeout | None = None  # while a write waits for the client
        self.size: int = 0
        """Bytes that are not written yet."""
        self.is_closed: bool = False
        self.on_writable: Callable[[], None] | None = None
        """Called when queued bytes were written."""

    @property
    def is_writable(self) -> bool:
        """Return whether the stream is open and few bytes are unsent."""
        return not self.is_closed and self.size < min(self._limits.pending_bytes, self._limits.http.stream_bytes)

    def send(self, message: bytes) -> None:
        self.send_event(sse.encode(message, event=self._event))

    def send_event(self, event: bytes) -> None:
        """Queue an encoded event, of any size."""
        if self.is_closed or self._ended:
            return None
        if self.size > self._limits.http.stream_bytes:
            log.info("accord: a client takes too little of its stream, which has %d bytes; it is cut", self.size)
            return self.abort()
        self._pending.append(event)
        self.size += len(event)
        if self.size > _LITTLE:
            self._report_unsent(self.size)
        return self._wake()

    def _report_unsent(self, size: int) -> None:
        if self._on_unsent is not None:
            self._is_counted = size > 0
            self._on_unsent(self, size)

    def flush(self) -> None:
        """Do nothing: `run` writes."""

    def end(self, message: bytes | None = None) -> None:
        """End the response after the queued events, and `message` as the last one, are written."""
        if message is not None:
            self.send(message)
        self._ended = True
        self._wake()

    def abort(self) -> None:
        """End the response now; the client is gone, or does not read."""
        self.is_closed = True
        self._pending.clear()
        self.size = 0
        if self._is_counted:
            self._report_unsent(0)
        if self._write_timeout is not None and not self._write_timeout.expired():
            self._write_timeout.reschedule(self._loop.time())
        self._wake()

    async def drain(self) -> None:
        """Wait until few bytes are unsent, or the stream is closed."""
        while self.size >= self._limits.pending_bytes and not self.is_closed:
            self._writable = self._writable or asyncio.Event()
            self._writable.clear()
            await self._writable.wait()

    async def run(self) -> None:
        """Write until the end. Raises only CancelledError."""
        try:
            await self._write({"type": "http.response.start", "status": 200, "headers": [*_HEADERS, *self._headers]})
            while not self.is_closed:
                if self._pending or self._ended:
                    await self._write_pending()
                else:
                    await self._wait()
        except (OSError, TimeoutError) as exc:
            log.info("accord: a client is gone, or does not read: %s", exc or type(exc).__name__)
        finally:
            self.abort()

    async def _write_pending(self) -> None:
        parts, last = deque(_parts(b"".join(self._pending))), self._ended
        self._pending = []
        while not self.is_closed:
            part = parts.popleft()  # what is written is not held any more
            is_last = last and not parts
            await self._write({"type": "http.response.body", "body": part, "more_body": not is_last})
            self._on_part_written(len(part))
            self.is_closed = self.is_closed or is_last
            if not parts:
                break

    def _on_part_written(self, size: int) -> None:
        self.size = max(0, self.size - size)
        if self._is_counted:
            self._report_unsent(self.size if self.size > _LITTLE else 0)
        if self._writable is not None:
            self._writable.set()
        if self.on_writable is not None:
            self.on_writable()

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        keep_alive = self._loop.call_later(self._limits.http.keep_alive_seconds, self.send_event, sse.KEEP_ALIVE)
        try:
            await self._waiter
        finally:
            keep_alive.cancel()

    async def _write(self, message: object) -> None:
        try:
            await with_deadline(self._limits.http.write_seconds, self._send_message(message), self._on_write_waits)
        finally:
            self._write_timeout = None

    def _on_write_waits(self, timeout: asyncio.Timeout) -> None:
        self._write_timeout = timeout

    async def _send_message(self, message: object) -> None:
        await self._send(message)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        if self.is_closed and self._writable is not None:
            self._writable.set()


def _parts(events: bytes) -> list[bytes]:
    return [events[start : start + _PART] for start in range(0, len(events), _PART)] or [b""]


async def wait_for_disconnect(receive: Receive, gone: Callable[[], None]) -> None:
    """Call `gone` when the client has closed its connection.

    The body of a request that was not read may arrive first. A middleware that delivers it twice would deliver it for
    ever: then a disconnect cannot be detected.
    """
    ends = 0
    while (message := await receive())["type"] != "http.disconnect":
        ends += not message.get("more_body")
        if ends > 1:
            return
        await asyncio.sleep(0)  # otherwise a middleware that delivers parts without end would block the event loop
    gone()


async def write_until_disconnect(stream: SSEResponse, receive: Receive) -> None:
    """Write a stream until it ends or the client has disconnected."""
    watcher = asyncio.get_running_loop().create_task(wait_for_disconnect(receive, stream.abort))
    try:
        await stream.run()
    finally:
        watcher.cancel()
