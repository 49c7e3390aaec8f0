"""The contract of a store of sessions and events, and the wrapper for stores of users.

A stream belongs to one session, and its events are numbered 1, 2, 3 as they are appended. To resume, a client names the
last number that it has, and reads the rest. If events were dropped, the client gets an error.

`CheckedEvents` wraps a store of any origin, so that it raises only the errors of `Events`, which the server handles.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import ParamSpec, Protocol, TypeVar

import msgspec

from accord.errors import EventsGone, StoreError

EVENT_BYTES = 256
"""What an event counts in addition to its message, so that empty events are limited too."""

STREAM_BYTES = 1_024
"""What a stream that has ended counts in addition to its events and its `about`."""


class Replay(msgspec.Struct, frozen=True):
    """The events of a stream after some number.

    `events` are the numbers, without gaps, and the messages; `ended` says that no more will follow; `about` is the
    argument of `begin`.
    """

    events: list[tuple[int, bytes]]
    ended: bool
    about: bytes


class Events(Protocol):
    """A store of sessions and the events of their streams. The public contract for custom stores.

    The server names sessions and streams; the name of a stream is unique within its session only. Every method may
    raise `StoreError`, and then has no effect. A cancelled call may or may not have an effect.

    The limits are in `Limits`: `events_bytes` of a session and `events_total_bytes` of all, counted with `EVENT_BYTES`
    and `STREAM_BYTES`; `events_seconds` after the end of a stream; `session_kept_seconds` after the last write to a
    session. A stream that has ended is dropped with its last event. Beyond `events_total_bytes`, the store drops events
    of the account with the most bytes, and of these the events of the session with the oldest last write: so no account
    causes the loss of events of an account with fewer bytes.
    """

    async def open(self) -> None:
        """Open the store, unless it is open. Raises `StoreError` if the stored data cannot be read."""

    async def close(self) -> None:
        """Finish pending calls, and close the store once every caller of `open` has closed it. Further calls have no
        effect."""

    async def save(self, session: str, record: bytes) -> None:
        """Store the record of a session, in place of a previous one; this renews the session."""

    async def load(self, session: str) -> bytes | None:
        """Return the record of a session; None for a session that was not saved, or has expired."""

    async def forget(self, session: str) -> None:
        """Remove a session with its streams, if it exists."""

    async def begin(self, session: str, stream: str, about: bytes, account: str = "") -> None:
        """Begin a stream, of a saved session or a new one. Raises `StoreError` if the name is already used.

        `account` is the principal, or the address, to which the session belongs from now on.
        """

    async def append(self, session: str, stream: str, messages: Sequence[bytes], *, ends: bool = False) -> int:
        """Store messages, all or none, and with `ends` end the stream: they are durable once this returns.

        Returns the number of the first. Calls for one stream take effect in their order. Raises `EventsGone` if the
        stream has ended, or was removed with its session.
        """
        ...

    async def end(self, session: str, stream: str) -> None:
        """End a stream, if it exists and has not ended."""

    async def read(self, session: str, stream: str, after: int, most: int | None = None) -> Replay | None:
        """Return the events after number `after`, which is 0 for all, or the first `most` of them.

        Return None if this session has no such stream (any more), or the stream never reached `after`. Raises
        `EventsGone` if events after `after` were dropped.
        """
        ...

    async def last(self, session: str, stream: str) -> int | None:
        """Return the number of the last event, which may have been dropped since, or None if there is no such
        stream."""
        ...


def event_cost(message: bytes) -> int:
    """Return the number of bytes that an event counts."""
    return EVENT_BYTES + len(message)


def stream_cost(about: bytes) -> int:
    """Return the number of bytes that a stream counts once it has ended."""
    return STREAM_BYTES + len(about)


def stream_exists_text(stream: str) -> str:
    """Return the error text of `begin`."""
    return f"this session has a stream {stream!r} already; a stream needs a name of its own"


def stream_closed_error(stream: str) -> EventsGone:
    """Return the error of `append`."""
    return EventsGone(f"stream {stream!r} cannot go on: it has ended, or its session was forgotten")


def events_dropped_error(stream: str, after: int, last: int) -> EventsGone:
    """Return the error of `read`."""
    return EventsGone(
        f"events {after + 1} to {last} of stream {stream!r} were dropped before they were read: the store was full "
        "(HTTPLimits: events_bytes, events_total_bytes); begin a new session"
    )


log: logging.Logger = logging.getLogger("accord")

T = TypeVar("T")
P = ParamSpec("P")


class CheckedEvents:
    """`Events` backed by the store `events`. Exceptions other than `StoreError` are logged, and raised as
    `StoreError`."""

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
