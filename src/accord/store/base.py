"""What a store of sessions and events is: the contract that each implementation holds.

A stream belongs to one session, and its events are numbered 1, 2, 3 as they are appended. A client that comes back
names the last number it has, and reads the rest. What had to be dropped is told, never passed over.

A store of anyone's making, of which nothing is raised but what `Events` says: the server knows what to do then.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import ParamSpec, Protocol, TypeVar

import msgspec

from accord.errors import EventsGone, StoreError

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
    session. A stream that has ended goes with the last of its events. Beyond `events_total_bytes` the events of the
    account go first that has most, and of these the ones of the session that was not written to for the longest time:
    one account drops nothing of those that have less.
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

    async def begin(self, session: str, stream: str, about: bytes, account: str = "") -> None:
        """Begin a stream, of a session that was saved or was not. Raises `StoreError` where the name is taken.

        `account` stands for the principal, or the address, that the session belongs to from now on.
        """

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


log: logging.Logger = logging.getLogger("accord")

T = TypeVar("T")
P = ParamSpec("P")


class CheckedEvents:
    """`Events` that are kept by `events`. What else that raises is logged, and raised as a `StoreError`."""

    def __init__(self, events: Events) -> None:
        self._events = events

    async def open(self) -> None:
        """See `Events.open`."""
        await _as_store_error(self._events.open)

    async def close(self) -> None:
        """See `Events.close`."""
        await _as_store_error(self._events.close)

    async def save(self, session: str, record: bytes) -> None:
        """See `Events.save`."""
        await _as_store_error(self._events.save, session, record)

    async def load(self, session: str) -> bytes | None:
        """See `Events.load`."""
        return await _as_store_error(self._events.load, session)

    async def forget(self, session: str) -> None:
        """See `Events.forget`."""
        await _as_store_error(self._events.forget, session)

    async def begin(self, session: str, stream: str, about: bytes, account: str = "") -> None:
        """See `Events.begin`."""
        await _as_store_error(self._events.begin, session, stream, about, account)

    async def append(self, session: str, stream: str, messages: Sequence[bytes], *, ends: bool = False) -> int:
        """See `Events.append`."""
        return await _as_store_error(self._events.append, session, stream, messages, ends=ends)

    async def end(self, session: str, stream: str) -> None:
        """See `Events.end`."""
        await _as_store_error(self._events.end, session, stream)

    async def read(self, session: str, stream: str, after: int, most: int | None = None) -> Replay | None:
        """See `Events.read`."""
        return await _as_store_error(self._events.read, session, stream, after, most)

    async def last(self, session: str, stream: str) -> int | None:
        """See `Events.last`."""
        return await _as_store_error(self._events.last, session, stream)


async def _as_store_error(method: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return await method(*args, **kwargs)
    except StoreError:
        raise
    except Exception as exc:
        log.exception("accord: the event store raised an exception of its own")
        what = getattr(method, "__qualname__", repr(method))
        raise StoreError(f"{what} of the event store raised {type(exc).__name__}: {exc}") from exc
