"""Server-sent events on their way to one client.

`put` queues and never waits; `run` writes, in whichever task awaits it. A client that does not read is cut off: when it
takes nothing for a while, or when there is more for it while what it has not taken is too much already. A comment now
and then keeps proxies from taking a quiet stream for a dead one ("servers are encouraged to periodically emit an SSE
comment line").
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from accord.limits import Limits
from accord.transport.asgi.answer import Headers
from accord.transport.asgi.request import Receive, Send
from accord.transport.patience import within
from accord.wire.sse import KEEP_ALIVE

log: logging.Logger = logging.getLogger("accord")

_HEADERS: Headers = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


class Stream:
    """The response to one request, as events. `over` is true once nothing more can be written."""

    def __init__(self, send: Send, limits: Limits, headers: Headers = ()) -> None:
        self._send = send
        self._limits = limits
        self._headers = headers
        self._loop = asyncio.get_running_loop()
        self._pending: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._room: asyncio.Event | None = None
        self._ended = False
        self.size: int = 0
        """Bytes that are not written yet."""
        self.over: bool = False
        self.on_room: Callable[[], None] | None = None
        """Called when some of what was queued is written."""

    @property
    def has_room(self) -> bool:
        """Whether it takes more, and little is left to write."""
        return not self.over and self.size < min(self._limits.pending_bytes, self._limits.stream_bytes)

    def put(self, event: bytes) -> None:
        """Queue an encoded event, of any size."""
        if self.over or self._ended:
            return None
        if self.size > self._limits.stream_bytes:
            log.warning("accord: a client takes too little of its stream, which has %d bytes; it is cut", self.size)
            return self.cut()
        self._pending.append(event)
        self.size += len(event)
        return self._wake()

    def end(self) -> None:
        """Nothing more will come: what is queued is written, then the response ends."""
        self._ended = True
        self._wake()

    def cut(self) -> None:
        """End it now; the client is gone, or as good as gone."""
        self.over = True
        self._pending.clear()
        self.size = 0
        self._wake()

    async def drain(self) -> None:
        """Return when little is left to write, or nobody takes it."""
        while self.size >= self._limits.pending_bytes and not self.over:
            self._room = self._room or asyncio.Event()
            self._room.clear()
            await self._room.wait()

    async def run(self) -> None:
        """Write until the end. Raises nothing but CancelledError."""
        try:
            await self._write({"type": "http.response.start", "status": 200, "headers": [*_HEADERS, *self._headers]})
            while not self.over:
                if self._pending or self._ended:
                    await self._write_pending()
                else:
                    await self._wait()
        except (OSError, TimeoutError) as exc:
            log.info("accord: a client is gone, or does not read: %s", exc or type(exc).__name__)
        finally:
            self.cut()

    async def _write_pending(self) -> None:
        chunk, self._pending = b"".join(self._pending), []
        last = self._ended
        await self._write({"type": "http.response.body", "body": chunk, "more_body": not last})
        self.size = max(0, self.size - len(chunk))
        self.over = self.over or last
        if self._room is not None:
            self._room.set()
        if self.on_room is not None:
            self.on_room()

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        beat = self._loop.call_later(self._limits.keep_alive_seconds, self.put, KEEP_ALIVE)
        try:
            await self._waiter
        finally:
            beat.cancel()

    async def _write(self, message: object) -> None:
        await within(self._limits.write_seconds, self._written(message))

    async def _written(self, message: object) -> None:
        await self._send(message)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        if self.over and self._room is not None:
            self._room.set()


async def watch(receive: Receive, gone: Callable[[], None]) -> None:
    """Call `gone` when the client has closed its connection.

    What may come before that is the body of a request that nobody has read. A middleware that gives it twice will give
    it for ever: it does not tell who is gone.
    """
    ends = 0
    while (message := await receive())["type"] != "http.disconnect":
        ends += not message.get("more_body")
        if ends > 1:
            return
        await asyncio.sleep(0)  # or one that gives pieces without end would let nobody else have a turn
    gone()


async def watched(stream: Stream, receive: Receive) -> None:
    """Write a stream until it ends or the client has gone away."""
    watching = asyncio.get_running_loop().create_task(watch(receive, stream.cut))
    try:
        await stream.run()
    finally:
        watching.cancel()
