"""One stream of a session, as the store has it: begun when something is said, read in pages, and whole or not.

What could not be kept leaves a hole. A client that names an event from before it cannot be sent what comes after.
"""

from __future__ import annotations

from collections.abc import Sequence

from accord.errors import EventsGone
from accord.store.base import Events, Replay

PAGE = 256
"""Events that are read at once: a long stream holds up no other for long."""


class StoredStream:
    """`session` and `id` name it in the store, `about` is kept there with it, and `account` whose it is.

    `known` is one that the store may have already, from a process that is gone.
    """

    def __init__(
        self, events: Events, session: str, id: str, about: bytes = b"", *, account: str = "", known: bool = False
    ) -> None:
        self.id: str = id
        self.last: int | None = None if known else 0
        """The number of the last event; None until the store was asked."""
        self.forgotten: bool = False
        """Whether the session is over: nothing is kept any more."""
        self._events = events
        self._session = session
        self._about = about
        self._account = account
        self._created = False
        self._complete_from: int | None = 0  # whoever has the event of this number misses nothing; None: everyone does

    @property
    def is_complete(self) -> bool:
        """Whether the store has all that was said of late."""
        return self._complete_from is not None

    @property
    def can_append(self) -> bool:
        """Whether more can be kept. The answer to a request is not kept after a hole: it would look like the whole."""
        return not self.forgotten and (self.is_complete or not self._about)

    def is_complete_after(self, after: int) -> bool:
        """Whether there is no hole after the event of that number."""
        return self._complete_from is not None and after >= self._complete_from

    def mark_incomplete(self) -> None:
        """Something that was said is not in the store, and will not be."""
        self._complete_from = None

    async def load_last(self) -> int:
        """How far it came: the number of the last event. Raises `StoreError`."""
        if self.last is None:
            last = await self._events.last(self._session, self.id)
            self._created, self.last = last is not None, last or 0
        return self.last

    async def append(self, messages: Sequence[bytes], *, ends: bool) -> int:
        """Keep what was said, and with `ends` that it was all; the number of the first. Raises `StoreError`."""
        await self.load_last()
        if not self._created:
            await self._events.begin(self._session, self.id, self._about, self._account)
            self._created = True
        # The end with the answer: a kill between the two would have an answered call cut off as well.
        first = await self._events.append(self._session, self.id, messages, ends=ends)
        self.last = first + len(messages) - 1
        if self._complete_from is None:
            self._complete_from = first
        return first

    async def end(self) -> None:
        """All is said. One with a hole does not end: to the next process it is cut off. Raises `StoreError`."""
        if self.can_append:
            await self._events.end(self._session, self.id)

    async def page(self, after: int) -> Replay:
        """The next events after that number. Raises `EventsGone` where some are missing, and `StoreError`."""
        replay = await self._events.read(self._session, self.id, after, PAGE)
        if replay is None or not self.is_complete_after(after):
            raise EventsGone("unknown stream, or some of its events have been dropped")
        self._created = True
        if self.last is None and len(replay.events) < PAGE:
            self.last = after + len(replay.events)
        return replay


def parse_event_id(event_id: bytes) -> tuple[str, int] | None:
    """The stream, and the number, that a `Last-Event-ID` names; None for one that is not ours."""
    stream, _, number = event_id.decode("latin-1").rpartition("-")
    if not stream or not number.isascii() or not number.isdigit() or len(number) > 18:
        return None
    return stream, int(number)
