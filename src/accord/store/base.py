"""What a store of sessions and events is: the contract that each implementation holds.

A stream belongs to one session, and its events are numbered 1, 2, 3 as they are appended. A client that comes back
names the last number it has, and reads the rest. What had to be dropped is told, never passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from accord.errors import EventsGone

EVENT_BYTES = 256
"""What an event counts beside its message: so that empty ones are bounded, too."""

STREAM_BYTES = 1_024
"""What a stream that has ended counts beside its events and what it is about."""


class Replay(msgspec.Struct, frozen=True):
    """What a stream holds after some number.

    `events` are the numbers, which follow each other, and the messages; `ended` says that no more will come; `about`
    is what `begin` was given.
    """

    events: list[tuple[int, bytes]]
    ended: bool
    about: bytes


class Events(Protocol):
    """Keeps sessions and the events of their streams. The public contract for custom stores.

    Sessions and streams are named by the server; a stream is known within its session only. Every method may raise
    `StoreError`, and is then as if it had not been called. One that is cancelled may or may not have been.

    Bounds are `Limits`: `events_bytes` of a session and `events_total_bytes` of all, counted with `EVENT_BYTES` and
    `STREAM_BYTES`; `events_seconds` after the end of a stream; `session_kept_seconds` after the last write to a
    session. A stream that has ended goes with the last of its events.
    """

    async def open(self) -> None:
        """Start, unless another has. Raises `StoreError` when what was kept cannot be read."""

    async def close(self) -> None:
        """Finish what was asked so far, and stop once all who opened it have closed it. More closing does nothing."""

    async def save(self, session: str, record: bytes) -> None:
        """Keep what makes up a session, in the place of what was kept; this renews it."""

    async def load(self, session: str) -> bytes | None:
        """What was saved; None for a session that was not, or is no longer kept."""

    async def forget(self, session: str) -> None:
        """Drop a session with its streams, if it is there."""

    async def begin(self, session: str, stream: str, about: bytes) -> None:
        """Begin a stream, of a session that was saved or was not. Raises `StoreError` where the name is taken."""

    async def append(self, session: str, stream: str, messages: Sequence[bytes], *, ends: bool = False) -> int:
        """Keep messages, all or none, and with `ends` end the stream: they are safe once this returns.

        Returns the number of the first. Calls on one stream take effect in the order in which they were made. Raises
        `EventsGone` when the stream has ended, or went with its session.
        """
        ...

    async def end(self, session: str, stream: str) -> None:
        """End a stream, if it is there and has not ended."""

    async def read(self, session: str, stream: str, after: int, most: int | None = None) -> Replay | None:
        """Every event after number `after`, which is 0 for all, or the first `most` of them.

        None when this session has no such stream (any more), or the stream never came as far as `after`. Raises
        `EventsGone` when events after `after` were dropped.
        """
        ...

    async def last(self, session: str, stream: str) -> int | None:
        """The number of the last event, which may have been dropped since; None when there is no such stream."""
        ...


def event_cost(message: bytes) -> int:
    """Bytes that an event counts."""
    return EVENT_BYTES + len(message)


def stream_cost(about: bytes) -> int:
    """Bytes that a stream counts once it has ended."""
    return STREAM_BYTES + len(about)


def stream_exists_text(stream: str) -> str:
    """The text of the error of `begin`."""
    return f"this session has a stream {stream!r} already; a stream needs a name of its own"


def stream_closed_error(stream: str) -> EventsGone:
    """The error of `append`."""
    return EventsGone(f"stream {stream!r} cannot go on: it has ended, or its session was forgotten")


def events_dropped_error(stream: str, after: int, last: int) -> EventsGone:
    """The error of `read`."""
    return EventsGone(
        f"events {after + 1} to {last} of stream {stream!r} were dropped before they were read: the store was full "
        "(Limits: events_bytes, events_total_bytes); begin a new session"
    )
