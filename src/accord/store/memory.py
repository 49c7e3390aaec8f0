"""Events in memory: they survive a broken connection, and are lost with the process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from accord.errors import StoreError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.store.base import (
    Replay,
    event_cost,
    events_dropped_error,
    stream_closed_error,
    stream_cost,
    stream_exists_text,
)


class _MemoryStream:
    __slots__ = ("about", "dropped", "ended", "last")

    def __init__(self, about: bytes) -> None:
        self.about = about
        self.last = 0
        self.dropped = 0  # up to this number
        self.ended = False


class _MemorySession:
    __slots__ = ("account", "bytes", "items", "record", "renewed", "streams")

    def __init__(self) -> None:
        self.account = ""
        self.record: bytes | None = None
        self.renewed = 0.0
        self.streams: dict[str, _MemoryStream] = {}
        self.items: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        """Events by stream and number, oldest first; a stream that has ended has one more number for its end."""
        self.bytes = 0


class _Account:
    __slots__ = ("bytes", "sessions")

    def __init__(self) -> None:
        self.bytes = 0
        self.sessions: OrderedDict[str, _MemorySession] = OrderedDict()
        """Sessions with events, ordered by last write, the oldest first."""


class MemoryEvents:
    """`Events` within this process, limited by `limits`; `clock` returns seconds and never goes back."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._sessions: OrderedDict[str, _MemorySession] = OrderedDict()  # ordered by last write, the oldest first
        self._accounts: dict[str, _Account] = {}  # accounts with events
        self._ended: OrderedDict[tuple[str, str], float] = OrderedDict()  # when each stream ended
        self.bytes: int = 0
        """Bytes of all events, as counted by `event_cost` and `stream_cost`."""

    async def open(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing: the events stay until the process ends."""

    async def save(self, session: str, record: bytes) -> None:
        """See `Events.save`."""
        self._expire()
        self._touch_session(session).record = record

    async def load(self, session: str) -> bytes | None:
        """See `Events.load`."""
        self._expire()
        stored = self._sessions.get(session)
        return None if stored is None else stored.record

    async def forget(self, session: str) -> None:
        """See `Events.forget`."""
        self._forget(session)

    async def begin(self, session: str, stream: str, about: bytes, account: str = "") -> None:
        """See `Events.begin`."""
        self._expire()
        stored = self._sessions.get(session)
        if stored is not None and stream in stored.streams:
            raise StoreError(stream_exists_text(stream))
        stored = self._touch_session(session)
        stored.streams[stream] = _MemoryStream(about)
        self._move_to_account(session, stored, account)

    async def append(self, session: str, stream: str, messages: Sequence[bytes], *, ends: bool = False) -> int:
        """See `Events.append`."""
        self._expire()
        open_stream = self._open_stream(session, stream)
        if open_stream is None:
            raise stream_closed_error(stream)
        stored = self._touch_session(session)
        first = open_stream.last + 1
        for number, message in enumerate(messages, first):
            self._add_event(session, stored, (stream, number), message, event_cost(message))
        open_stream.last += len(messages)
        if ends:
            self._end(session, stored, stream, open_stream)
        self._evict(session, stored)
        return first

    async def end(self, session: str, stream: str) -> None:
        """See `Events.end`."""
        self._expire()
        open_stream = self._open_stream(session, stream)
        if open_stream is not None:
            stored = self._touch_session(session)
            self._end(session, stored, stream, open_stream)
            self._evict(session, stored)

    async def read(self, session: str, stream: str, after: int, most: int | None = None) -> Replay | None:
        """See `Events.read`."""
        self._expire()
        stored = self._sessions.get(session)
        stored_stream = stored.streams.get(stream) if stored is not None else None
        if stored is None or stored_stream is None or not 0 <= after <= stored_stream.last:
            return None
        if after < stored_stream.dropped:
            raise events_dropped_error(stream, after, stored_stream.dropped)
        last = stored_stream.last if most is None else min(stored_stream.last, after + most)
        events = [(number, stored.items[stream, number]) for number in range(after + 1, last + 1)]
        return Replay(events, stored_stream.ended, stored_stream.about)

    async def last(self, session: str, stream: str) -> int | None:
        """See `Events.last`."""
        self._expire()
        stored = self._sessions.get(session)
        stored_stream = stored.streams.get(stream) if stored is not None else None
        return None if stored_stream is None else stored_stream.last

    # --- writing -----------------------------------------------------------------------------------------------

    def _open_stream(self, session: str, stream: str) -> _MemoryStream | None:
        stored = self._sessions.get(session)
        stored_stream = stored.streams.get(stream) if stored is not None else None
        return None if stored_stream is None or stored_stream.ended else stored_stream

    def _touch_session(self, session: str) -> _MemorySession:
        """Return the session, which is created if needed, and renew it."""
        stored = self._sessions.get(session)
        if stored is None:
            stored = self._sessions[session] = _MemorySession()
        stored.renewed = self._clock()
        self._sessions.move_to_end(session)
        if stored.items:
            self._accounts[stored.account].sessions.move_to_end(session)
        return stored

    def _move_to_account(self, session: str, stored: _MemorySession, account: str) -> None:
        if stored.account != account:
            size = stored.bytes
            self._leave_account(session, stored)
            stored.account = account
            if size:
                self._add_to_account(session, stored, size)

    def _add_to_account(self, session: str, stored: _MemorySession, size: int) -> None:
        account = self._accounts.setdefault(stored.account, _Account())
        account.sessions[session] = stored
        account.bytes += size

    def _leave_account(self, session: str, stored: _MemorySession) -> None:
        """Remove a session with all its bytes from its account."""
        account = self._accounts.get(stored.account)
        if account is not None and account.sessions.pop(session, None) is not None:
            account.bytes -= stored.bytes
            if not account.sessions:
                del self._accounts[stored.account]

    def _add_event(self, session: str, stored: _MemorySession, key: tuple[str, int], message: bytes, cost: int) -> None:
        stored.items[key] = message
        self._add_to_account(session, stored, cost)
        stored.bytes += cost
        self.bytes += cost

    def _end(self, session: str, stored: _MemorySession, stream: str, ending: _MemoryStream) -> None:
        ending.ended = True
        self._ended[session, stream] = self._clock()
        self._add_event(session, stored, (stream, ending.last + 1), b"", stream_cost(ending.about))

    # --- expiry and eviction -----------------------------------------------------------------------------------

    def _expire(self) -> None:
        """Drop expired streams and sessions."""
        now = self._clock()
        while self._ended and next(iter(self._ended.values())) <= now - self._limits.http.events_seconds:
            self._drop_stream(*next(iter(self._ended)))
        while self._sessions:
            session, stored = next(iter(self._sessions.items()))
            if stored.renewed > now - self._limits.http.session_kept_seconds:
                break
            self._forget(session)

    def _evict(self, session: str, stored: _MemorySession) -> None:
        """Drop the oldest events beyond the limits."""
        while stored.bytes > self._limits.http.events_bytes:
            self._evict_oldest(session, stored)
        while self.bytes > self._limits.http.events_total_bytes:
            largest, _ = max(self._accounts.items(), key=lambda item: (item[1].bytes, item[0]))
            session, stored = next(iter(self._accounts[largest].sessions.items()))
            while stored.items and self.bytes > self._limits.http.events_total_bytes:
                self._evict_oldest(session, stored)

    def _evict_oldest(self, session: str, stored: _MemorySession) -> None:
        name, number = next(iter(stored.items))
        stream = stored.streams[name]
        if number > stream.last:
            self._drop_stream(session, name)
            return
        self._drop_event(session, stored, name, number)
        stream.dropped = number

    def _drop_stream(self, session: str, name: str) -> None:
        """Drop a stream that has ended, with its events."""
        del self._ended[session, name]
        stored = self._sessions[session]
        stream = stored.streams.pop(name)
        for number in range(stream.dropped + 1, stream.last + 1):
            self._drop_event(session, stored, name, number)
        del stored.items[name, stream.last + 1]
        self._release(session, stored, stream_cost(stream.about))

    def _drop_event(self, session: str, stored: _MemorySession, name: str, number: int) -> None:
        self._release(session, stored, event_cost(stored.items.pop((name, number))))

    def _release(self, session: str, stored: _MemorySession, cost: int) -> None:
        if not stored.items:
            self._leave_account(session, stored)
        else:
            self._accounts[stored.account].bytes -= cost
        stored.bytes -= cost
        self.bytes -= cost

    def _forget(self, session: str) -> None:
        stored = self._sessions.pop(session, None)
        if stored is None:
            return
        self._leave_account(session, stored)
        self.bytes -= stored.bytes
        for name in stored.streams:
            self._ended.pop((session, name), None)
