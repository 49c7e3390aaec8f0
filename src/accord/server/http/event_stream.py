"""One stream of a session (2025-03-26 to 2025-11-25): its messages in order, whichever response carries them.

What is sent is kept first (see `stored`), and then written to the response that carries the stream at the moment, if
there is one. A client that comes back names the last event it has, and another response carries the rest: "event IDs
should be assigned by servers on a per-stream basis, to act as a cursor within that particular stream".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from accord.errors import EventsGone, StoreError
from accord.limits import Limits
from accord.server.http.stored_stream import StoredStream
from accord.transport.asgi.sse_response import SSEResponse
from accord.wire import sse

log: logging.Logger = logging.getLogger("accord")

_RETRY_SECONDS = 0.5
"""After which the store is asked again to keep what it could not, where nobody is there to be given it."""

_MAX_RETRIES = 6


class EventStream:
    """A way with a memory, `stored`. `ended(channel)` is called once it is over."""

    name = "HTTP"

    def __init__(self, kept: StoredStream, limits: Limits, ended: Callable[[EventStream], None] | None = None) -> None:
        self.id: str = kept.id
        self.stored: StoredStream = kept
        self._limits = limits
        self._on_end = ended
        self._queue: list[bytes] = []
        self._ending = False
        self._ended = False
        self._delivered = kept.last  # number of the last event handed to a response; None: begin with what is new
        self._undelivered_bytes = 0  # bytes that no response has taken yet
        self._response: SSEResponse | None = None
        self._closing: tuple[SSEResponse, int | None] | None = None  # a carrier that is to end, and its `retry`
        self._pumping: asyncio.Task[None] | None = None
        self._drained: asyncio.Event | None = None
        self._resumed = False  # a carrier began after a number: no event may be missing then
        self._retry_timer: asyncio.TimerHandle | None = None  # until the store is asked again
        self._failures = 0

    # --- in ----------------------------------------------------------------------------------------------------

    def send(self, message: bytes) -> None:
        if not self._ending:
            self._queue.append(message)
            self._undelivered_bytes += len(message)
            self._start_pump()

    def end(self, message: bytes | None) -> None:
        """Nothing comes after `message`."""
        if not self._ending:
            if message is not None:
                self._queue.append(message)
            self._ending = True
            self._start_pump()

    def send_priming_event(self) -> None:
        """ "The server SHOULD immediately send an SSE event consisting of an event ID and an empty `data` field"."""
        self.send(b"")

    def flush(self) -> None:
        """Nothing is held."""

    async def drain(self) -> None:
        while self._undelivered_bytes >= self._limits.pending_bytes:
            self._drained = self._drained or asyncio.Event()
            self._drained.clear()
            await self._drained.wait()

    def forget(self) -> None:
        """Its session is over: nothing more is kept, and nobody comes back."""
        self.stored.forgotten = True
        self._start_pump()

    async def wait_stored(self) -> None:
        """Return when all that was sent is kept, as far as the store answers, or is given up."""
        if self._retry_timer is not None:
            self._failures = _MAX_RETRIES
            self._retry()
        if self._pumping is not None:
            await asyncio.wait([self._pumping], timeout=self._limits.close_seconds)

    # --- who carries it ----------------------------------------------------------------------------------------

    def attach(self, stream: SSEResponse, after: int | None = None, page: Iterable[tuple[int, bytes]] = ()) -> None:
        """Another response carries it from now on, from the event after that number; by default, from what none had.

        `page` are the first of these events. The response that did so before ends: "the server MUST send each of its
        JSON-RPC messages on only one".
        """
        if self._response is not None:
            self._response.end()
        self._response = stream
        self._cancel_retry()
        stream.on_writable = self._on_writable
        self._resumed = after is not None
        if after is not None:
            self._delivered = after
            self._deliver_stored(page)
        self._start_pump()

    def detach(self, stream: SSEResponse) -> None:
        """That response is over; what comes waits for the next."""
        if self._response is stream:
            self._response = None
            if self._ending:
                self._start_pump()

    def close_response(self, retry: int | None) -> None:
        """End the response, and have the client come back for the rest after so many milliseconds.

        What was said before goes out first: with no event to name, a client could not come back.
        """
        if self._response is not None:
            self._closing = (self._response, retry)
            self._start_pump()

    # --- out ---------------------------------------------------------------------------------------------------

    def _start_pump(self) -> None:
        if self._pumping is None:
            self._pumping = asyncio.get_running_loop().create_task(self._pump())
            self._pumping.add_done_callback(self._pumped)

    def _pumped(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (exc := task.exception()) is not None:
            log.error("accord: a stream could not go on", exc_info=exc)
            self.stored.mark_incomplete()
            self._ending = self._ended = True
            self._finish()

    async def _pump(self) -> None:
        """Keep, and hand on, until there is nothing to do."""
        try:
            while (step := self._next()) is not None:
                await step()
            if self._ended and not self._has_undelivered():
                self._finish()
        finally:
            self._pumping = None

    def _next(self) -> Callable[[], Awaitable[None]] | None:
        if self._queue and self.stored.can_append and self._retry_timer is None:
            return self._store
        if self._can_catch_up():
            return self._catch_up
        if self._queue and not self._must_wait():
            return self._deliver_unstored
        if self._closing is not None:
            return self._close_response
        if self._ending and not self._ended and not self._queue:
            return self._end_stored
        return None

    def _has_undelivered(self) -> bool:
        """Whether the carrier has not all that the store has."""
        if self._response is None or self._delivered is None:
            return False
        return self.stored.last is None or self._delivered < self.stored.last

    def _can_catch_up(self) -> bool:
        """Whether it does, and can take more."""
        return self._response is not None and self._has_undelivered() and self._response.is_writable

    def _on_writable(self) -> None:
        if self._has_undelivered():
            self._start_pump()

    def _must_wait(self) -> bool:
        """Whether what could not be kept waits: for its turn, or for the store while nobody is there to be given it."""
        if self._response is not None:
            return self._has_undelivered()
        full = sum(map(len, self._queue)) >= self._limits.pending_bytes
        return self.stored.can_append and self._failures < _MAX_RETRIES and not full

    # --- what is kept ------------------------------------------------------------------------------------------

    async def _store(self) -> None:
        """Put what was sent into the store, and at once on the carrier if that has all before it."""
        batch, self._queue = self._queue, []
        try:
            last = await self.stored.load_last()
            if self._delivered is None:
                self._delivered = last
            ends = self._ending and not self._queue
            first = await self.stored.append(batch, ends=ends)
        except StoreError as exc:
            self._queue[:0] = batch
            return self._schedule_retry(exc)
        self._ended, self._failures = ends, 0
        if self._delivered == first - 1:
            self._deliver_stored(enumerate(batch, first))
        return None

    def _schedule_retry(self, exc: StoreError) -> None:
        gone = isinstance(exc, EventsGone)  # the session may have ended
        if not self._failures:
            log.log(logging.DEBUG if gone else logging.ERROR, "accord: what a stream says is not kept: %s", exc)
        self._failures = _MAX_RETRIES if gone else self._failures + 1
        self._retry_timer = asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._retry)

    def _retry(self) -> None:
        self._cancel_retry()
        self._start_pump()

    def _cancel_retry(self) -> None:
        if self._retry_timer is not None:
            self._retry_timer.cancel()
            self._retry_timer = None

    async def _end_stored(self) -> None:
        """All is said; what is kept is so for a client that comes back."""
        try:
            await self.stored.end()
        except StoreError as exc:
            log.error("accord: %s", exc)
        self._ended = True

    # --- what is handed over -----------------------------------------------------------------------------------

    async def _catch_up(self) -> None:
        """Hand over the next of what the store has and the carrier has not."""
        carrier, after = self._response, self._delivered
        try:
            events = (await self.stored.page(after or 0)).events
        except StoreError as exc:
            return self._lost_events(str(exc))
        if carrier is not self._response or after != self._delivered:
            return None
        if not events and self._has_undelivered():
            return self._lost_events(f"the store has lost events of stream {self.id!r}")
        return self._deliver_stored(events)

    def _lost_events(self, why: str) -> None:
        """Some of what the carrier should have is gone. Who named an event comes back with it, and is told so."""
        log.error("accord: a client cannot be sent what it missed: %s", why)
        if self._resumed and self._response is not None:
            self._response.end()
            self._response = None
        else:
            self._delivered = self.stored.last

    def _deliver_stored(self, events: Iterable[tuple[int, bytes]]) -> None:
        """As many as the carrier can take now; for the others the store is read again."""
        carrier = self._response
        for number, message in events:
            if carrier is None or not carrier.is_writable:
                return
            carrier.send(sse.encode(message, id=f"{self.id}-{number}"))
            self._delivered = number
            self._count_delivered(len(message))

    async def _deliver_unstored(self) -> None:
        """What the store did not take goes to who is there; from here on there is a hole."""
        batch, self._queue = self._queue, []
        self._cancel_retry()
        self.stored.mark_incomplete()
        if self._response is None and not self.stored.forgotten:
            log.error("accord: %d messages are lost: nobody was there, and they could not be kept", len(batch))
        for message in batch:
            if self._response is not None:
                self._response.send(sse.encode(message))
            self._count_delivered(len(message))

    def _count_delivered(self, size: int) -> None:
        self._undelivered_bytes = max(0, self._undelivered_bytes - size)
        if self._drained is not None and self._undelivered_bytes < self._limits.pending_bytes:
            self._drained.set()

    # --- the end -----------------------------------------------------------------------------------------------

    async def _close_response(self) -> None:
        """Let the carrier go that was to end, and has all that was said."""
        if self._closing is None:
            return
        (carrier, retry), self._closing = self._closing, None
        if carrier is self._response:
            if retry is not None:
                carrier.send(b"retry: %d\n\n" % retry)
            carrier.end()
            self._response = None

    def _finish(self) -> None:
        """It is over: so is what carries it."""
        self._cancel_retry()
        if self._response is not None:
            self._response.end()
        if self._on_end is not None:
            on_end, self._on_end = self._on_end, None
            on_end(self)
