"""One stream of a session (2025-03-26 to 2025-11-25): its messages in order, whichever response carries them.

What is sent is kept in the event store first, and then written to the response that carries the stream at the moment,
if there is one. A client that comes back names the last event it has, and another response carries the rest: "event
IDs should be assigned by servers on a per-stream basis, to act as a cursor within that particular stream".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from accord.errors import EventsGone, StoreError
from accord.limits import Limits
from accord.store.base import Events
from accord.transport.asgi.stream import Stream
from accord.wire import sse

log: logging.Logger = logging.getLogger("accord")


class Channel:
    """A way with a memory. `session` and `id` name it in the store, `about` is kept there with it.

    `known` is one that the store may have already; `ended(channel)` is called once it is over.
    """

    name = "HTTP"

    def __init__(
        self,
        events: Events,
        session: str,
        id: str,
        limits: Limits,
        *,
        about: bytes = b"",
        known: bool = False,
        ended: Callable[[Channel], None] | None = None,
    ) -> None:
        self.id: str = id
        self._about: bytes | None = about
        self._known = known
        self._unsure = known  # how many events the store has
        self._events = events
        self._session = session
        self._limits = limits
        self._on_end = ended
        self._queue: list[bytes] = []
        self._ending = False
        self._ended = False
        self.broken: bool = False
        """Whether something was said that the store does not have: then it cannot be taken up again."""
        self._last = 0  # number of the last event in the store
        self._carried = 0  # number of the last event that was handed to a response
        self._owed = 0  # bytes that no response has taken yet
        self._carrier: Stream | None = None
        self._leaving: tuple[Stream, int | None] | None = None  # a carrier that is to end, and its `retry`
        self._pumping: asyncio.Task[None] | None = None
        self._room: asyncio.Event | None = None
        self._strict = False  # a carrier began after a number: no event may be missing then

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

    async def settled(self) -> None:
        """Return when all that was sent is kept, as far as the store answers."""
        if self._pumping is not None:
            await asyncio.wait([self._pumping], timeout=self._limits.close_seconds)

    # --- who carries it ----------------------------------------------------------------------------------------

    def carry(self, stream: Stream, after: int | None = None) -> None:
        """Another response carries it from now on, from the event after that number; by default, from what none had.

        The one that did so before ends: "the server MUST send each of its JSON-RPC messages on only one".
        """
        if self._carrier is not None:
            self._carrier.end()
        self._carrier = stream
        stream.on_room = self._on_room
        self._strict = after is not None
        if after is not None:
            self._carried = after
        self._pump_on()

    def let_go(self, stream: Stream) -> None:
        """That response is over; what comes waits for the next."""
        if self._carrier is stream:
            self._carrier = None
            if self._ended:
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

    async def _pump(self) -> None:
        """Keep, and hand on, until there is nothing to do."""
        try:
            while self._queue or self._is_behind() or self._leaving or self._ending != self._ended:
                if self._queue:
                    await self._keep()
                elif self._is_behind():
                    await self._catch_up()
                elif self._leaving:
                    self._part(*self._leaving)
                else:
                    await self._end_kept()
            if self._ended and not self._owes():
                self._finish()
        finally:
            self._pumping = None

    def _owes(self) -> bool:
        """Whether the carrier has not all that the store has."""
        return self._carrier is not None and (self._unsure or self._carried < self._last)

    def _is_behind(self) -> bool:
        """Whether it does, and can take more."""
        return self._carrier is not None and self._owes() and self._carrier.has_room

    def _on_room(self) -> None:
        if self._owes():
            self._pump_on()

    async def _keep(self) -> None:
        """Put what was sent into the store, and at once on the carrier if that has all before it."""
        batch, self._queue = self._queue, []
        if self.broken:
            return self._hand_over_unkept(batch)
        try:
            if self._about is not None:
                await self._begin(self._about)
            # The end with the answer: a kill between the two would have an answered call cut off as well.
            ends = self._ending and not self._queue
            first = await self._events.append(self._session, self.id, batch, ends=ends)
        except StoreError as exc:
            level = logging.DEBUG if isinstance(exc, EventsGone) else logging.ERROR  # the session may have ended
            log.log(level, "accord: %s; what a stream says is sent, but cannot be sent again", exc)
            self.broken = True
            return self._hand_over_unkept(batch)
        self._ended, self._last = ends, first + len(batch) - 1
        if self._carried == first - 1:
            self._hand_over_kept(enumerate(batch, first))
        return None

    async def _begin(self, about: bytes) -> None:
        """Have the store begin the stream, unless it has it from a process that is gone."""
        try:
            there = self._known and await self._events.read(self._session, self.id, 0) is not None
        except EventsGone:
            there = True
        if not there:
            await self._events.begin(self._session, self.id, about)
        self._about = None

    async def _catch_up(self) -> None:
        """Hand over what the store has and the carrier has not."""
        carrier = self._carrier
        try:
            replay = await self._events.read(self._session, self.id, self._carried)
        except StoreError as exc:
            return self._missed(str(exc))
        if carrier is not self._carrier:
            return None
        if replay is not None and replay.events:
            self._about, self._unsure = None, False
            self._last = max(self._carried + len(replay.events), self._last)
            return self._hand_over_kept(replay.events)
        if replay is None and not self._unsure:
            return self._missed(f"stream {self.id!r} is no longer kept")
        self._unsure, self._carried = False, max(self._carried, self._last)
        return None

    def _part(self, carrier: Stream, retry: int | None) -> None:
        """Let the carrier go that was to end, and has all that was said."""
        self._leaving = None
        if carrier is self._carrier:
            if retry is not None:
                carrier.put(b"retry: %d\n\n" % retry)
            carrier.end()
            self._carrier = None

    def _missed(self, why: str) -> None:
        """Some of what the carrier should have is gone. Who named an event comes back with it, and is told so."""
        log.error("accord: a client cannot be sent what it missed: %s", why)
        self._unsure = False
        if self._strict and self._carrier is not None:
            self._carrier.end()
            self._carrier = None
        else:
            self._carried = self._last

    def _hand_over_kept(self, events: Iterable[tuple[int, bytes]]) -> None:
        """As many as the carrier can take now; for the others the store is read again."""
        carrier = self._carrier
        for number, message in events:
            if carrier is None or not carrier.has_room:
                return
            carrier.put(sse.encode(message, id=f"{self.id}-{number}"))
            self._carried = number
            self._took(len(message))

    def _hand_over_unkept(self, batch: list[bytes]) -> None:
        for message in batch:
            if self._carrier is not None:
                self._carrier.put(sse.encode(message))
            self._took(len(message))

    def _took(self, size: int) -> None:
        self._owed = max(0, self._owed - size)
        if self._room is not None and self._owed < self._limits.pending_bytes:
            self._room.set()

    async def _end_kept(self) -> None:
        """All is said; what is kept is so for a client that comes back."""
        try:
            await self._events.end(self._session, self.id)
        except StoreError as exc:
            log.error("accord: %s", exc)
        self._ended = True

    def _finish(self) -> None:
        """It is over: so is what carries it."""
        if self._carrier is not None:
            self._carrier.end()
        if self._on_end is not None:
            on_end, self._on_end = self._on_end, None
            on_end(self)


def place_of(event_id: bytes) -> tuple[str, int] | None:
    """The stream, and the number, that a `Last-Event-ID` names; None for one that is not ours."""
    stream, _, number = event_id.decode("latin-1").rpartition("-")
    if not stream or not number.isascii() or not number.isdigit() or len(number) > 18:
        return None
    return stream, int(number)
