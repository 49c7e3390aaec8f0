"""One stream of a session in the event store: created with its first event, read in pages, complete or not.

Messages that could not be stored leave a gap. A client cannot resume from an event before a gap.
"""

from __future__ import annotations

from collections.abc import Sequence

from accord.errors import EventsGone
from accord.store.base import Events, Replay

PAGE = 256
"""The most events per read: a long stream must not delay others."""


class StoredStream:
    """A stream in the store, identified by `session` and `id`; `about` and `account` are stored with it.

    `known` is whether the store may already have the stream, from an earlier process.
    """

    def __init__(
        self, events: Events, session: str, id: str, about: bytes = b"", *, account: str = "", known: bool = False
    ) -> None:
        self.id: str = id
        self.last: int | None = None if known else 0
        """The number of the last event; None until the store was read."""
        self.forgotten: bool = False
        """Whether the session has ended, so that nothing more is stored."""
        self._events = events
        self._session = session
        self._about = about
        self._account = account
        self._created = False
        self._complete_from: int | None = 0  # no gap after this event; None: a gap at the end

    @property
    def is_complete(self) -> bool:
        """Whether the store has all recent messages."""
        return self._complete_from is not None

    @property
    def can_append(self) -> bool:
        """Whether more can be stored. After a gap the response to a request is not stored: the stream would look
        complete.
        """
        return not self.forgotten and (self.is_complete or not self._about)

    def is_complete_after(self, after: int) -> bool:
        """Return whether there is no gap after an event."""
        return self._complete_from is not None and after >= self._complete_from

    def mark_incomplete(self) -> None:
        """Record that a message is not in the store, and will not be."""
        self._complete_from = None

    async def load_last(self) -> int:
        """Return the number of the last event. Raises `StoreError`."""
        if self.last is None:
            last = await self._events.last(self._session, self.id)
            self._created, self.last = last is not None, last or 0
        return self.last

    async def append(self, messages: Sequence[bytes], *, ends: bool) -> int:
        """Store messages, and with `ends` the end of the stream; return the number of the first. Raises
        `StoreError`.
        """
        await self.load_last()
        if not self._created:
            await self._events.begin(self._session, self.id, self._about, self._account)
            self._created = True
        # The end with the response: a crash between the two would make an answered call look interrupted.
        first = await self._events.append(self._session, self.id, messages, ends=ends)
        self.last = first + len(messages) - 1
        if self._complete_from is None:
            self._complete_from = first
        return first

    async def end(self) -> None:
        """Store the end of the stream, unless it has a gap: then the next process treats it as interrupted. Raises
        `StoreError`.
        """
        if self.can_append:
            await self._events.end(self._session, self.id)

    async def page(self, after: int) -> Replay:
        """Return the next events after a number. Raises `EventsGone` if some are missing, and `StoreError`."""
        replay = await self._events.read(self._session, self.id, after, PAGE)
        if replay is None or not self.is_complete_after(after):
            raise EventsGone("unknown stream, or some of its events have been dropped")
        self._created = True
        if self.last is None and len(replay.events) < PAGE:
            self.last = after + len(replay.events)
        return replay


def parse_event_id(event_id: bytes) -> tuple[str, int] | None:
    """Return stream and number of a `Last-Event-ID`, or None if this server did not create it."""
    stream, _, number = event_id.decode("latin-1").rpartition("-")
    if not stream or not number.isascii() or not number.isdigit() or len(number) > 18:
        return None
    return stream, int(number)
