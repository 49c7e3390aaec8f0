"""One stream of a session (2025-03-26 to 2025-11-25): its messages in order, whichever response carries them.

What is sent is kept first (see `kept`), and then written to the response that carries the stream at the moment, if
there is one. A client that comes back names the last event it has, and another response carries the rest: "event IDs
should be assigned by servers on a per-stream basis, to act as a cursor within that particular stream".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from accord.errors import EventsGone, StoreError
from accord.limits import Limits
from accord.server.http.kept import Kept
from accord.transport.asgi.stream import Stream
from accord.wire import sse

log: logging.Logger = logging.getLogger("accord")

_AGAIN_SECONDS = 0.5
"""After which the store is asked again to keep what it could not, where nobody is there to be given it."""

_TRIES = 6


class Channel:
    """A way with a memory, `kept`. `ended(channel)` is called once it is over."""

    name = "HTTP"

    def __init__(self, kept: Kept, limits: Limits, ended: Callable[[Channel], None] | None = None) -> None:
        self.id: str = kept.id
        self.kept: Kept = kept
        self._limits = limits
        self._on_end = ended
        self._queue: list[bytes] = []
        self._ending = False
        self._ended = False
        self._carried = kept.last  # number of the last event handed to a response; None: begin with what is new
        self._owed = 0  # bytes that no response has taken yet
        self._carrier: Stream | None = None
        self._leaving: tuple[Stream, int | None] | None = None  # a carrier that is to end, and its `retry`
        self._pumping: asyncio.Task[None] | None = None
        self._room: asyncio.Event | None = None
        self._strict = False  # a carrier began after a number: no event may be missing then
        self._again: asyncio.TimerHandle | None = None  # until the store is asked again
        self._failures = 0

    # --- in ----------------------------------------------------------------------------------------------------

    def send(self, message: bytes) -> None:
        if not self._ending:
            self._queue.append(message)
            self._owed += len(message)
            self._pump_on()

    def end(self, message: bytes | None) -> None:
        """Nothing comes after `message`."""
        if not self._ending:
            if message is not None:
                self._queue.append(message)
            self._ending = True
            self._pump_on()

    def prime(self) -> None:
        """ "The server SHOULD immediately send an SSE event consisting of an event ID and an empty `data` field"."""
        self.send(b"")

    def flush(self) -> None:
        """Nothing is held."""

    async def drain(self) -> None:
        while self._owed >= self._limits.pending_bytes:
            self._room = self._room or asyncio.Event()
            self._room.clear()
            await self._room.wait()

    def forget(self) -> None:
        """Its session is over: nothing more is kept, and nobody comes back."""
        self.kept.forgotten = True
        self._pump_on()

    async def settled(self) -> None:
        """Return when all that was sent is kept, as far as the store answers, or is given up."""
        if self._again is not None:
            self._failures = _TRIES
            self._ask_again()
        if self._pumping is not None:
            await asyncio.wait([self._pumping], timeout=self._limits.close_seconds)

    # --- who carries it ----------------------------------------------------------------------------------------

    def carry(self, stream: Stream, after: int | None = None, page: Iterable[tuple[int, bytes]] = ()) -> None:
        """Another response carries it from now on, from the event after that number; by default, from what none had.

        `page` are the first of these events. The response that did so before ends: "the server MUST send each of its
        JSON-RPC messages on only one".
        """
        if self._carrier is not None:
            self._carrier.end()
        self._carrier = stream
        self._stop_waiting()
        stream.on_room = self._on_room
        self._strict = after is not None
        if after is not None:
            self._carried = after
            self._hand_over_kept(page)
        self._pump_on()

    def let_go(self, stream: Stream) -> None:
        """That response is over; what comes waits for the next."""
        if self._carrier is stream:
            self._carrier = None
            if self._ending:
                self._pump_on()

    def close_carrier(self, retry: int | None) -> None:
        """End the response, and have the client come back for the rest after so many milliseconds.

        What was said before goes out first: with no event to name, a client could not come back.
        """
        if self._carrier is not None:
            self._leaving = (self._carrier, retry)
            self._pump_on()

    # --- out ---------------------------------------------------------------------------------------------------

    def _pump_on(self) -> None:
        if self._pumping is None:
            self._pumping = asyncio.get_running_loop().create_task(self._pump())
            self._pumping.add_done_callback(self._pumped)

    def _pumped(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (exc := task.exception()) is not None:
            log.error("accord: a stream could not go on", exc_info=exc)
            self.kept.lose()
            self._ending = self._ended = True
            self._finish()

    async def _pump(self) -> None:
        """Keep, and hand on, until there is nothing to do."""
        try:
            while (step := self._next()) is not None:
                await step()
            if self._ended and not self._owes():
                self._finish()
        finally:
            self._pumping = None

    def _next(self) -> Callable[[], Awaitable[None]] | None:
        if self._queue and self.kept.goes_on and self._again is None:
            return self._keep
        if self._is_behind():
            return self._catch_up
        if self._queue and not self._waits():
            return self._hand_over_unkept
        if self._leaving is not None:
            return self._part
        if self._ending and not self._ended and not self._queue:
            return self._end_kept
        return None

    def _owes(self) -> bool:
        """Whether the carrier has not all that the store has."""
        if self._carrier is None or self._carried is None:
            return False
        return self.kept.last is None or self._carried < self.kept.last

    def _is_behind(self) -> bool:
        """Whether it does, and can take more."""
        return self._carrier is not None and self._owes() and self._carrier.has_room

    def _on_room(self) -> None:
        if self._owes():
            self._pump_on()

    def _waits(self) -> bool:
        """Whether what could not be kept waits: for its turn, or for the store while nobody is there to be given it."""
        if self._carrier is not None:
            return self._owes()
        full = sum(map(len, self._queue)) >= self._limits.pending_bytes
        return self.kept.goes_on and self._failures < _TRIES and not full

    # --- what is kept ------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Put what was sent into the store, and at once on the carrier if that has all before it."""
        batch, self._queue = self._queue, []
        try:
            last = await self.kept.look()
            if self._carried is None:
                self._carried = last
            ends = self._ending and not self._queue
            first = await self.kept.append(batch, ends=ends)
        except StoreError as exc:
            self._queue[:0] = batch
            return self._put_off(exc)
        self._ended, self._failures = ends, 0
        if self._carried == first - 1:
            self._hand_over_kept(enumerate(batch, first))
        return None

    def _put_off(self, exc: StoreError) -> None:
        gone = isinstance(exc, EventsGone)  # the session may have ended
        if not self._failures:
            log.log(logging.DEBUG if gone else logging.ERROR, "accord: what a stream says is not kept: %s", exc)
        self._failures = _TRIES if gone else self._failures + 1
        self._again = asyncio.get_running_loop().call_later(_AGAIN_SECONDS, self._ask_again)

    def _ask_again(self) -> None:
        self._stop_waiting()
        self._pump_on()

    def _stop_waiting(self) -> None:
        if self._again is not None:
            self._again.cancel()
            self._again = None

    async def _end_kept(self) -> None:
        """All is said; what is kept is so for a client that comes back."""
        try:
            await self.kept.end()
        except StoreError as exc:
            log.error("accord: %s", exc)
        self._ended = True

    # --- what is handed over -----------------------------------------------------------------------------------

    async def _catch_up(self) -> None:
        """Hand over the next of what the store has and the carrier has not."""
        carrier, after = self._carrier, self._carried
        try:
            events = (await self.kept.page(after or 0)).events
        except StoreError as exc:
            return self._missed(str(exc))
        if carrier is not self._carrier or after != self._carried:
            return None
        if not events and self._owes():
            return self._missed(f"the store has lost events of stream {self.id!r}")
        return self._hand_over_kept(events)

    def _missed(self, why: str) -> None:
        """Some of what the carrier should have is gone. Who named an event comes back with it, and is told so."""
        log.error("accord: a client cannot be sent what it missed: %s", why)
        if self._strict and self._carrier is not None:
            self._carrier.end()
            self._carrier = None
        else:
            self._carried = self.kept.last

    def _hand_over_kept(self, events: Iterable[tuple[int, bytes]]) -> None:
        """As many as the carrier can take now; for the others the store is read again."""
        carrier = self._carrier
        for number, message in events:
            if carrier is None or not carrier.has_room:
                return
            carrier.put(sse.encode(message, id=f"{self.id}-{number}"))
            self._carried = number
            self._took(len(message))

    async def _hand_over_unkept(self) -> None:
        """What the store did not take goes to who is there; from here on there is a hole."""
        batch, self._queue = self._queue, []
        self._stop_waiting()
        self.kept.lose()
        if self._carrier is None and not self.kept.forgotten:
            log.error("accord: %d messages are lost: nobody was there, and they could not be kept", len(batch))
        for message in batch:
            if self._carrier is not None:
                self._carrier.put(sse.encode(message))
            self._took(len(message))

    def _took(self, size: int) -> None:
        self._owed = max(0, self._owed - size)
        if self._room is not None and self._owed < self._limits.pending_bytes:
            self._room.set()

    # --- the end -----------------------------------------------------------------------------------------------

    async def _part(self) -> None:
        """Let the carrier go that was to end, and has all that was said."""
        if self._leaving is None:
            return
        (carrier, retry), self._leaving = self._leaving, None
        if carrier is self._carrier:
            if retry is not None:
                carrier.put(b"retry: %d\n\n" % retry)
            carrier.end()
            self._carrier = None

    def _finish(self) -> None:
        """It is over: so is what carries it."""
        self._stop_waiting()
        if self._carrier is not None:
            self._carrier.end()
        if self._on_end is not None:
            on_end, self._on_end = self._on_end, None
            on_end(self)
