"""One stream of a session (2025-03-26 to 2025-11-25): its messages in order, over one or more responses.

A message is stored first (see `stored`), then written to the response that carries the stream, if there is one. A
client that reconnects names its last event, and another response carries the rest: "event IDs should be assigned by
servers on a per-stream basis, to act as a cursor within that particular stream".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from accord.errors import EventsGone, StoreError
from accord.limits import Limits
from accord.server.http.stored_stream import StoredStream
from accord.transport.asgi.request import Receive
from accord.transport.asgi.sse_response import SSEResponse, write_until_disconnect
from accord.wire import sse

log: logging.Logger = logging.getLogger("accord")

_RETRY_SECONDS = 0.5
"""Seconds until the store is tried again after a failure, if no response carries the stream."""

_MAX_RETRIES = 6


class EventStream:
    """A message sink that stores its messages in `stored`. `ended` is called with the stream after its end. `retry` is
    the default of `close_response`.
    """

    name = "HTTP"

    def __init__(
        self,
        stored: StoredStream,
        limits: Limits,
        ended: Callable[[EventStream], None] | None = None,
        retry: int | None = None,
    ) -> None:
        self.id: str = stored.id
        self.stored: StoredStream = stored
        self._limits = limits
        self._on_end = ended
        self._retry_milliseconds = retry
        self._queue: list[bytes] = []
        self._ending = False
        self._ended = False
        self._delivered = stored.last  # number of the last event handed to a response; None: start with new events
        self._undelivered_bytes = 0  # bytes not handed to a response yet
        self._response: SSEResponse | None = None
        self._closing: tuple[SSEResponse, int | None] | None = None  # a response to close, and its `retry`
        self._pumping: asyncio.Task[None] | None = None
        self._drained: asyncio.Event | None = None
        self._resumed = False  # a response resumed after an event: no later event may be missing
        self._retry_timer: asyncio.TimerHandle | None = None  # until the store is tried again
        self._failures = 0

    # --- sending -----------------------------------------------------------------------------------------------

    def send(self, message: bytes) -> None:
        if not self._ending:
            self._queue.append(message)
            self._undelivered_bytes += len(message)
            self._start_pump()

    def end(self, message: bytes | None) -> None:
        """Send `message` as the last one, if it is not None."""
        if not self._ending:
            if message is not None:
                self._queue.append(message)
            self._ending = True
            self._start_pump()

    def send_priming_event(self) -> None:
        """ "The server SHOULD immediately send an SSE event consisting of an event ID and an empty `data` field"."""
        self.send(b"")

    def flush(self) -> None:
        """Do nothing: messages are not buffered."""

    async def drain(self) -> None:
        while self._undelivered_bytes >= self._limits.pending_bytes:
            self._drained = self._drained or asyncio.Event()
            self._drained.clear()
            await self._drained.wait()

    def forget(self) -> None:
        """Stop storing messages: the session has ended, and the stream cannot be resumed."""
        self.stored.forgotten = True
        self._start_pump()

    async def wait_stored(self) -> None:
        """Wait until all messages are stored or given up, at most `close_seconds`."""
        if self._retry_timer is not None:
            self._failures = _MAX_RETRIES
            self._retry()
        if self._pumping is not None:
            await asyncio.wait([self._pumping], timeout=self._limits.close_seconds)

    # --- responses ---------------------------------------------------------------------------------------------

    def attach(self, stream: SSEResponse, after: int | None = None, page: Iterable[tuple[int, bytes]] = ()) -> None:
        """Carry the stream on a response from now on, from the event after `after`, by default from the first
        undelivered one.

        `page` has the first of these events. The previous response ends: "the server MUST send each of its JSON-RPC
        messages on only one".
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
        """Detach a response that has ended; messages wait for the next response."""
        if self._response is stream:
            self._response = None
            if self._ending:
                self._start_pump()

    async def write(self, stream: SSEResponse, receive: Receive) -> None:
        """Write the attached response until the stream ends or the client disconnects."""
        try:
            await write_until_disconnect(stream, receive)
        finally:
            self.detach(stream)

    def close_response(self, retry: int | None = None, *, of: SSEResponse | None = None) -> None:
        """End the response after its pending messages; the client reconnects for the rest after `retry` milliseconds.
        With `of`, end it only if it is this one.

        Pending messages are sent first: a client without an event id could not reconnect.
        """
        if self._response is not None and of in (None, self._response):
            self._closing = (self._response, self._retry_milliseconds if retry is None else retry)
            self._start_pump()

    # --- delivery loop -----------------------------------------------------------------------------------------

    def _start_pump(self) -> None:
        if self._pumping is None:
            self._pumping = asyncio.get_running_loop().create_task(self._pump())
            self._pumping.add_done_callback(self._pump_done)

    def _pump_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (exc := task.exception()) is not None:
            log.error("accord: a stream could not go on", exc_info=exc)
            self.stored.mark_incomplete()
            self._ending = self._ended = True
            self._finish()

    async def _pump(self) -> None:
        """Store and deliver messages until nothing is left to do."""
        try:
            while (step := self._next_step()) is not None:
                await step()
            if self._ended and not self._has_undelivered():
                self._finish()
        finally:
            self._pumping = None

    def _next_step(self) -> Callable[[], Awaitable[None]] | None:
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
        """Return whether the store has events that the response lacks."""
        if self._response is None or self._delivered is None:
            return False
        return self.stored.last is None or self._delivered < self.stored.last

    def _can_catch_up(self) -> bool:
        """Return whether the response lacks stored events and is writable."""
        return self._response is not None and self._has_undelivered() and self._response.is_writable

    def _on_writable(self) -> None:
        if self._has_undelivered():
            self._start_pump()

    def _must_wait(self) -> bool:
        """Return whether unstored messages must wait: for earlier events, or for the store if no
        response is attached.
        """
        if self._response is not None:
            return self._has_undelivered()
        full = sum(map(len, self._queue)) >= self._limits.pending_bytes
        return self.stored.can_append and self._failures < _MAX_RETRIES and not full

    # --- storing -------------------------------------------------------------------------------------------------

    async def _store(self) -> None:
        """Store the queued messages, and deliver them at once if the response has all earlier ones."""
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
            log.log(logging.DEBUG if gone else logging.ERROR, "accord: messages of a stream cannot be stored: %s", exc)
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
        """Store the end of the stream, for a client that reconnects."""
        try:
            await self.stored.end()
        except StoreError as exc:
            log.error("accord: %s", exc)
        self._ended = True

    # --- delivery ----------------------------------------------------------------------------------------------

    async def _catch_up(self) -> None:
        """Deliver the next stored events that the response lacks."""
        response, after = self._response, self._delivered
        try:
            events = (await self.stored.page(after or 0)).events
        except StoreError as exc:
            return self._lost_events(str(exc))
        if response is not self._response or after != self._delivered:
            return None
        if not events and self._has_undelivered():
            return self._lost_events(f"the store has lost events of stream {self.id!r}")
        return self._deliver_stored(events)

    def _lost_events(self, reason: str) -> None:
        """Handle lost events: end a response that resumed after an event, so that the client reconnects and receives
        the error.
        """
        log.error("accord: missed events cannot be sent to a client: %s", reason)
        if self._resumed and self._response is not None:
            self._response.end()
            self._response = None
        else:
            self._delivered = self.stored.last
        self._count_delivered(self._undelivered_bytes - sum(map(len, self._queue)))

    def _deliver_stored(self, events: Iterable[tuple[int, bytes]]) -> None:
        """Deliver as many events as the response can take; the rest is read again from the store."""
        response = self._response
        for number, message in events:
            if response is None or not response.is_writable:
                return
            response.send_event(sse.encode(message, id=f"{self.id}-{number}"))
            self._delivered = number
            self._count_delivered(len(message))

    async def _deliver_unstored(self) -> None:
        """Deliver messages that the store did not take to the response, if any; the stored stream is incomplete from
        here.
        """
        batch, self._queue = self._queue, []
        self._cancel_retry()
        self.stored.mark_incomplete()
        if self._response is None and not self.stored.forgotten:
            log.error("accord: %d messages are lost: no client was connected, and they could not be stored", len(batch))
        for message in batch:
            if self._response is not None and (message or not self.stored.forgotten):
                self._response.send(message)
            elif self._response is not None:  # the session ended before its priming event was stored
                self._response.send_event(sse.encode(message, id=f"{self.id}-0"))
            self._count_delivered(len(message))

    def _count_delivered(self, size: int) -> None:
        self._undelivered_bytes = max(0, self._undelivered_bytes - size)
        if self._drained is not None and self._undelivered_bytes < self._limits.pending_bytes:
            self._drained.set()

    # --- closing -----------------------------------------------------------------------------------------------

    async def _close_response(self) -> None:
        """End the response that was to be closed, now that it has all messages."""
        if self._closing is None:
            return
        (response, retry), self._closing = self._closing, None
        if response is self._response:
            if retry is not None:
                response.send_event(b"retry: %d\n\n" % retry)
            response.end()
            self._response = None

    def _finish(self) -> None:
        """End the response, and call `ended`."""
        self._cancel_retry()
        if self._response is not None:
            self._response.end()
        if self._on_end is not None:
            on_end, self._on_end = self._on_end, None
            on_end(self)
