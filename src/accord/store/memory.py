"""Events in memory: they survive a broken connection, and end with the process."""

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
        """Events by stream and number, oldest first; a stream that has ended has one number more, which is its end."""
        self.bytes = 0


class _Account:
    __slots__ = ("bytes", "sessions")

    def __init__(self) -> None:
        self.bytes = 0
        self.sessions: OrderedDict[str, _MemorySession] = OrderedDict()
        """Those with events, the one not written to for longest comes first."""


class MemoryEvents:
    """`Events` within this process, bounded by `limits`; `clock` counts seconds and is never set back."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._sessions: OrderedDict[str, _MemorySession] = (
            OrderedDict()
        )  # the one not written to for longest comes first
        self._accounts: dict[str, _Account] = {}  # those with events
        self._ended: OrderedDict[tuple[str, str], float] = OrderedDict()  # when each stream ended
        self.bytes: int = 0
        """Bytes of all events, as they are counted."""

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do: what is kept stays until the process ends."""

    async def save(self, session: str, record: bytes) -> None:
        """See `Events.save`."""
        self._expire()
        self._touch_session(session).record = record

    async def load(self, session: str) -> bytes | None:
        """See `Events.load`."""
        self._expire()
        kept = self._sessions.get(session)
        return None if kept is None else kept.record

    async def forget(self, session: str) -> None:
        """See `Events.forget`."""
        self._forget(session)

    async def begin(self, session: str, stream: str, about: bytes, account: str = "") -> None:
        """See `Events.begin`."""
        self._expire()
        kept = self._sessions.get(session)
        if kept is not None and stream in kept.streams:
            raise StoreError(stream_exists_text(stream))
        kept = self._touch_session(session)
        kept.streams[stream] = _MemoryStream(about)
        self._move_to_account(session, kept, account)

    async def append(self, session: str, stream: str, messages: Sequence[bytes], *, ends: bool = False) -> int:
        """See `Events.append`."""
        self._expire()
        open_stream = self._open_stream(session, stream)
        if open_stream is None:
            raise stream_closed_error(stream)
        kept = self._touch_session(session)
        first = open_stream.last + 1
        for number, message in enumerate(messages, first):
            self._add_event(session, kept, (stream, number), message, event_cost(message))
        open_stream.last += len(messages)
        if ends:
            self._end(session, kept, stream, open_stream)
        self._evict(session, kept)
        return first

    async def end(self, session: str, stream: str) -> None:
        """See `Events.end`."""
        self._expire()
        open_stream = self._open_stream(session, stream)
        if open_stream is not None:
            kept = self._touch_session(session)
            self._end(session, kept, stream, open_stream)
            self._evict(session, kept)

    async def read(self, session: str, stream: str, after: int, most: int | None = None) -> Replay | None:
        """See `Events.read`."""
        self._expire()
        kept = self._sessions.get(session)
        found = kept.streams.get(stream) if kept is not None else None
        if kept is None or found is None or not 0 <= after <= found.last:
            return None
        if after < found.dropped:
            raise events_dropped_error(stream, after, found.dropped)
        last = found.last if most is None else min(found.last, after + most)
        events = [(number, kept.items[stream, number]) for number in range(after + 1, last + 1)]
        return Replay(events, found.ended, found.about)

    async def last(self, session: str, stream: str) -> int | None:
        """See `Events.last`."""
        self._expire()
        kept = self._sessions.get(session)
        found = kept.streams.get(stream) if kept is not None else None
        return None if found is None else found.last

    # --- what comes in -----------------------------------------------------------------------------------------

    def _open_stream(self, session: str, stream: str) -> _MemoryStream | None:
        kept = self._sessions.get(session)
        found = kept.streams.get(stream) if kept is not None else None
        return None if found is None or found.ended else found

    def _touch_session(self, session: str) -> _MemorySession:
        """The session that is being written to, made if need be."""
        kept = self._sessions.get(session)
        if kept is None:
            kept = self._sessions[session] = _MemorySession()
        kept.renewed = self._clock()
        self._sessions.move_to_end(session)
        if kept.items:
            self._accounts[kept.account].sessions.move_to_end(session)
        return kept

    def _move_to_account(self, session: str, kept: _MemorySession, account: str) -> None:
        if kept.account != account:
            size = kept.bytes
            self._leave_account(session, kept)
            kept.account = account
            if size:
                self._add_to_account(session, kept, size)

    def _add_to_account(self, session: str, kept: _MemorySession, size: int) -> None:
        account = self._accounts.setdefault(kept.account, _Account())
        account.sessions[session] = kept
        account.bytes += size

    def _leave_account(self, session: str, kept: _MemorySession) -> None:
        """All that a session has is no longer its account's."""
        account = self._accounts.get(kept.account)
        if account is not None and account.sessions.pop(session, None) is not None:
            account.bytes -= kept.bytes
            if not account.sessions:
                del self._accounts[kept.account]

    def _add_event(self, session: str, kept: _MemorySession, key: tuple[str, int], message: bytes, cost: int) -> None:
        kept.items[key] = message
        self._add_to_account(session, kept, cost)
        kept.bytes += cost
        self.bytes += cost

    def _end(self, session: str, kept: _MemorySession, stream: str, ending: _MemoryStream) -> None:
        ending.ended = True
        self._ended[session, stream] = self._clock()
        self._add_event(session, kept, (stream, ending.last + 1), b"", stream_cost(ending.about))

    # --- what is dropped ---------------------------------------------------------------------------------------

    def _expire(self) -> None:
        """Drop what is too old."""
        now = self._clock()
        while self._ended and next(iter(self._ended.values())) <= now - self._limits.events_seconds:
            self._drop_stream(*next(iter(self._ended)))
        while self._sessions:
            session, kept = next(iter(self._sessions.items()))
            if kept.renewed > now - self._limits.session_kept_seconds:
                break
            self._forget(session)

    def _evict(self, session: str, kept: _MemorySession) -> None:
        """Drop the oldest of what is too much."""
        while kept.bytes > self._limits.events_bytes:
            self._evict_oldest(session, kept)
        while self.bytes > self._limits.events_total_bytes:
            most, _ = max(self._accounts.items(), key=lambda item: (item[1].bytes, item[0]))
            session, kept = next(iter(self._accounts[most].sessions.items()))
            while kept.items and self.bytes > self._limits.events_total_bytes:
                self._evict_oldest(session, kept)

    def _evict_oldest(self, session: str, kept: _MemorySession) -> None:
        name, number = next(iter(kept.items))
        stream = kept.streams[name]
        if number > stream.last:
            self._drop_stream(session, name)
            return
        self._drop_event(session, kept, name, number)
        stream.dropped = number

    def _drop_stream(self, session: str, name: str) -> None:
        """Drop a stream that has ended, with its events."""
        del self._ended[session, name]
        kept = self._sessions[session]
        stream = kept.streams.pop(name)
        for number in range(stream.dropped + 1, stream.last + 1):
            self._drop_event(session, kept, name, number)
        del kept.items[name, stream.last + 1]
        self._release(session, kept, stream_cost(stream.about))

    def _drop_event(self, session: str, kept: _MemorySession, name: str, number: int) -> None:
        self._release(session, kept, event_cost(kept.items.pop((name, number))))

    def _release(self, session: str, kept: _MemorySession, cost: int) -> None:
        if not kept.items:
            self._leave_account(session, kept)
        else:
            self._accounts[kept.account].bytes -= cost
        kept.bytes -= cost
        self.bytes -= cost

    def _forget(self, session: str) -> None:
        kept = self._sessions.pop(session, None)
        if kept is None:
            return
        self._leave_account(session, kept)
        self.bytes -= kept.bytes
        for name in kept.streams:
            self._ended.pop((session, name), None)
