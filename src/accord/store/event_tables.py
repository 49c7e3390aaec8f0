"""The SQL statements of `SQLiteEvents`: each method is the work of one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from accord.errors import StoreError
from accord.limits import Limits
from accord.locked_cache import safe_convert
from accord.store.base import (
    Replay,
    event_cost,
    events_dropped_error,
    stream_closed_error,
    stream_cost,
    stream_exists_text,
)
from accord.store.file import add_checksum, damaged_error, verify_checksum

_FIND = """
SELECT streams.id, sessions.id, about, last, dropped, ended IS NOT NULL
FROM sessions JOIN streams ON streams.session = sessions.id WHERE sessions.name = ? AND streams.name = ?
"""
_RENEW = """
INSERT INTO sessions (name, renewed, bytes) VALUES (?, ?, 0) ON CONFLICT (name) DO UPDATE SET renewed = excluded.renewed
"""
_INSERT_EVENT = "INSERT INTO events (session, stream, number, cost, message) VALUES (?, ?, ?, ?, ?)"
_READ = "SELECT number, message FROM events WHERE stream = ? AND number > ? ORDER BY number LIMIT ?"
_ADD_BYTES = "UPDATE sessions SET bytes = bytes + ? WHERE id = ?"
_ADD_BYTES_AND_RENEW = "UPDATE sessions SET bytes = bytes + ?, renewed = ? WHERE id = ?"
_HAS_EXPIRED = (
    "SELECT EXISTS (SELECT 1 FROM streams WHERE ended <= ?) OR EXISTS (SELECT 1 FROM sessions WHERE renewed <= ?)"
)
_BYTES = "SELECT sessions.bytes, total.bytes FROM sessions, total WHERE id = ?"
_OLDEST_EVENTS = "SELECT id, stream, number, cost, message IS NULL FROM events WHERE session = ? ORDER BY id"
_OLDEST_SESSION = """
SELECT id FROM sessions WHERE bytes > 0 AND account = (SELECT name FROM accounts ORDER BY bytes DESC, name DESC LIMIT 1)
ORDER BY renewed, id LIMIT 1
"""


class _StreamRow(msgspec.Struct, frozen=True, array_like=True):
    """A row of `_FIND`, in its order."""

    id: int
    session: int
    about: bytes
    last: int
    dropped: int
    ended: int
    """1 if it has ended, else 0."""


class EventTables:
    """Sessions, streams and events in tables. Methods raise `sqlite3.Error` and the errors of `Events`."""

    def __init__(self, path: Path, limits: Limits, clock: Callable[[], float]) -> None:
        self._path = path
        self._limits = limits
        self._clock = clock

    def save(self, db: sqlite3.Connection, session: str, record: bytes) -> None:
        """See `Events.save`."""
        self._expire(db)
        id = self._touch_session(db, session)
        db.execute("UPDATE sessions SET record = ? WHERE id = ?", (add_checksum(record, "session", session), id))

    def load(self, db: sqlite3.Connection, session: str) -> bytes | None:
        """See `Events.load`."""
        self._expire(db)
        row = db.execute("SELECT record FROM sessions WHERE name = ?", (session,)).fetchone()
        return None if row is None or row[0] is None else verify_checksum(self._path, row[0], "session", session)

    def forget(self, db: sqlite3.Connection, session: str) -> None:
        """See `Events.forget`."""
        for (id,) in db.execute("SELECT id FROM sessions WHERE name = ?", (session,)).fetchall():
            _drop_session(db, id)

    def begin(self, db: sqlite3.Connection, session: str, stream: str, about: bytes, account: str = "") -> None:
        """See `Events.begin`."""
        self._expire(db)
        if self._find(db, session, stream) is not None:
            raise StoreError(stream_exists_text(stream))
        id = self._touch_session(db, session)
        db.execute("UPDATE sessions SET account = ? WHERE id = ? AND account <> ?", (account, id, account))
        row = (id, stream, add_checksum(about, "stream", session, stream))
        db.execute("INSERT INTO streams (session, name, about, last, dropped) VALUES (?, ?, ?, 0, 0)", row)

    def append(self, db: sqlite3.Connection, session: str, stream: str, messages: Sequence[bytes], ends: bool) -> int:
        """See `Events.append`."""
        self._expire(db)
        row = self._find(db, session, stream)
        if row is None or row.ended:
            raise stream_closed_error(stream)
        self._insert_events(db, row, session, stream, messages, ends)
        return row.last + 1

    def end(self, db: sqlite3.Connection, session: str, stream: str) -> None:
        """See `Events.end`."""
        self._expire(db)
        row = self._find(db, session, stream)
        if row is not None and not row.ended:
            self._insert_events(db, row, session, stream, (), True)

    def read(
        self, db: sqlite3.Connection, session: str, stream: str, after: int, most: int | None = None
    ) -> Replay | None:
        """See `Events.read`."""
        self._expire(db)
        stream_row = self._find(db, session, stream)
        if stream_row is None or not 0 <= after <= stream_row.last:
            return None
        if after < stream_row.dropped:
            raise events_dropped_error(stream, after, stream_row.dropped)
        rows = db.execute(_READ, (stream_row.id, after, -1 if most is None else most)).fetchall()
        end = stream_row.last + stream_row.ended  # the number of the last row
        last = end if most is None else min(end, after + most)
        messages = [(number, message) for number, message in rows if message is not None]
        is_whole = [number for number, _ in rows] == list(range(after + 1, last + 1))
        if not is_whole or len(messages) != min(last, stream_row.last) - after:
            raise damaged_error(self._path, f"events of stream {stream!r} are missing")
        events = [
            (number, verify_checksum(self._path, message, "event", session, stream, number))
            for number, message in messages
        ]
        return Replay(events, bool(stream_row.ended), stream_row.about)

    def last(self, db: sqlite3.Connection, session: str, stream: str) -> int | None:
        """See `Events.last`."""
        self._expire(db)
        row = self._find(db, session, stream)
        return None if row is None else row.last

    # --- rows --------------------------------------------------------------------------------------------------

    def _find(self, db: sqlite3.Connection, session: str, stream: str) -> _StreamRow | None:
        row = db.execute(_FIND, (session, stream)).fetchone()
        if row is None:
            return None
        try:
            stream_row: _StreamRow = safe_convert(row, _StreamRow)
        except msgspec.ValidationError as exc:
            raise damaged_error(self._path, f"what was kept of stream {stream!r} has changed") from exc
        return msgspec.structs.replace(
            stream_row, about=verify_checksum(self._path, stream_row.about, "stream", session, stream)
        )

    def _touch_session(self, db: sqlite3.Connection, session: str) -> int:
        """Return the id of the session, which is created if needed, and renew it."""
        db.execute(_RENEW, (session, self._clock()))
        return int(db.execute("SELECT id FROM sessions WHERE name = ?", (session,)).fetchone()[0])

    def _insert_events(
        self,
        db: sqlite3.Connection,
        stream_row: _StreamRow,
        session: str,
        stream: str,
        messages: Sequence[bytes],
        ends: bool,
    ) -> None:
        """Insert the next events of a stream, and with `ends` its end."""
        now = self._clock()
        last = stream_row.last + len(messages)
        rows: list[tuple[int, int, int, int, bytes | None]] = [
            (
                stream_row.session,
                stream_row.id,
                number,
                event_cost(message),
                add_checksum(message, "event", session, stream, number),
            )
            for number, message in enumerate(messages, stream_row.last + 1)
        ]
        if ends:
            rows.append((stream_row.session, stream_row.id, last + 1, stream_cost(stream_row.about), None))
        db.executemany(_INSERT_EVENT, rows)
        db.execute("UPDATE streams SET last = ?, ended = ? WHERE id = ?", (last, now if ends else None, stream_row.id))
        db.execute(_ADD_BYTES_AND_RENEW, (sum(row[3] for row in rows), now, stream_row.session))
        self._evict(db, stream_row.session)

    # --- expiry and eviction -----------------------------------------------------------------------------------

    def _expire(self, db: sqlite3.Connection) -> None:
        """Delete expired streams and sessions."""
        now = self._clock()
        ended, renewed = now - self._limits.http.events_seconds, now - self._limits.http.session_kept_seconds
        if not db.execute(_HAS_EXPIRED, (ended, renewed)).fetchone()[0]:
            return
        for stream, session in db.execute("SELECT id, session FROM streams WHERE ended <= ?", (ended,)).fetchall():
            _drop_stream(db, stream, session)
        for (session,) in db.execute("SELECT id FROM sessions WHERE renewed <= ?", (renewed,)).fetchall():
            _drop_session(db, session)

    def _evict(self, db: sqlite3.Connection, session: int) -> None:
        """Delete the oldest events beyond the limits."""
        size, total = db.execute(_BYTES, (session,)).fetchone()
        if size > self._limits.http.events_bytes:
            total -= self._evict_oldest(db, session, size - self._limits.http.events_bytes)
        while total > self._limits.http.events_total_bytes:
            oldest = _scalar(db, _OLDEST_SESSION)
            total -= self._evict_oldest(db, oldest, total - self._limits.http.events_total_bytes)

    def _evict_oldest(self, db: sqlite3.Connection, session: int, excess: int) -> int:
        """Delete events of a session until `excess` bytes are freed, or all; return the number of freed bytes."""
        freed = newest = 0
        events: dict[int, int] = {}
        streams: list[tuple[int]] = []
        for id, stream, number, cost, is_end in db.execute(_OLDEST_EVENTS, (session,)):
            freed, newest = freed + cost, id
            if is_end:
                streams.append((stream,))
            else:
                events[stream] = number
            if freed >= excess:
                break
        if not freed:
            raise damaged_error(self._path, "the bytes of its events do not add up")
        db.execute("DELETE FROM events WHERE session = ? AND id <= ?", (session, newest))
        db.executemany("UPDATE streams SET dropped = ? WHERE id = ?", [(last, id) for id, last in events.items()])
        db.executemany("DELETE FROM streams WHERE id = ?", streams)
        db.execute(_ADD_BYTES, (-freed, session))
        return freed


def _drop_stream(db: sqlite3.Connection, stream: int, session: int) -> None:
    """Delete a stream with its events."""
    freed = _scalar(db, "SELECT coalesce(sum(cost), 0) FROM events WHERE stream = ?", stream)
    db.execute("DELETE FROM events WHERE stream = ?", (stream,))
    db.execute("DELETE FROM streams WHERE id = ?", (stream,))
    db.execute(_ADD_BYTES, (-freed, session))


def _drop_session(db: sqlite3.Connection, session: int) -> None:
    for table, key in (("events", "session"), ("streams", "session"), ("sessions", "id")):
        db.execute(f"DELETE FROM {table} WHERE {key} = ?", (session,))


def _scalar(db: sqlite3.Connection, query: str, *values: int) -> int:
    row = db.execute(query, values).fetchone()
    return int(row[0]) if row else 0
