"""Tasks in an SQLite file: they survive the end of the process, also if it is killed.

A runner holds a lock on a file of its own beside the database, which the operating system releases when the process
ends in any way. So another process knows exactly which runners have ended.
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from glob import escape
from pathlib import Path
from typing import Any

import msgspec

from accord.errors import StoreError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages.bounds import largest_share
from accord.store.database_thread import DatabaseThread, switch_to_wal
from accord.store.file import add_checksum
from accord.store.private_database import open_private_database
from accord.store.tasks import (
    MAX_INPUTS,
    RECORD_BYTES,
    TaskInput,
    TaskRecord,
    no_room,
    too_many_inputs,
    unreadable_record,
)

log: logging.Logger = logging.getLogger("accord.server")

_VERSION = 1

_TABLES = (
    """CREATE TABLE tasks (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, account TEXT NOT NULL, runner TEXT, expires REAL NOT NULL,
    record BLOB NOT NULL) WITHOUT ROWID""",
    "CREATE INDEX tasks_by_owner ON tasks (owner, id)",
    "CREATE INDEX tasks_by_account ON tasks (account)",
    "CREATE INDEX tasks_by_runner ON tasks (runner) WHERE runner IS NOT NULL",
    "CREATE INDEX tasks_by_age ON tasks (expires)",
    "CREATE TABLE inputs (number INTEGER PRIMARY KEY, task TEXT NOT NULL, input BLOB NOT NULL)",
)

_CONTENTS = (
    "CREATE TABLE IF NOT EXISTS contents (task TEXT NOT NULL UNIQUE, record BLOB NOT NULL)",
    """CREATE TRIGGER IF NOT EXISTS content_of_changed AFTER UPDATE OF record ON tasks
    BEGIN DELETE FROM contents WHERE task = old.id; END""",
    """CREATE TRIGGER IF NOT EXISTS content_of_dropped AFTER DELETE ON tasks
    BEGIN DELETE FROM contents WHERE task = old.id; END""",
)
"""Large records, of which `tasks` has only the head. To find a row of a table without row ids, SQLite reads others from
their first to their last byte, and a list of tasks would read all results.
"""

_LARGE_BYTES = 4 << 10
"""Records from this size on are in `contents`."""

_ROWS = """SELECT id, owner, account, expires, runner, coalesce(contents.record, tasks.record)
    FROM tasks LEFT JOIN contents ON task = id WHERE"""

_SIZE = "coalesce(length(contents.record), length(tasks.record))"

_USED = f"""SELECT coalesce(sum(size), 0), coalesce(sum(size * (account = ?)), 0) FROM (
    SELECT account, {_SIZE} + {RECORD_BYTES} AS size FROM tasks LEFT JOIN contents ON task = id
    UNION ALL SELECT account, length(input) + {RECORD_BYTES} FROM inputs JOIN tasks ON task = id)"""
"""The bytes of all accounts, and of one."""

_AT_MOST = f"""SELECT (page_count - freelist_count) * page_size
    + {RECORD_BYTES} * ((SELECT count(*) FROM tasks) + (SELECT count(*) FROM inputs))
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size"""
"""No fewer than the bytes of all accounts, without reading all records."""

_RUNNER = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The name of a runner, which is part of the name of a file."""

_UNREADABLE = (msgspec.MsgspecError, TypeError, ValueError, RecursionError)

_CHECKED = b"\xc1"
"""The first byte of a stored value with a checksum: MessagePack never uses it, so that older values have another."""

_encode = msgspec.msgpack.encode
_decode_record = msgspec.msgpack.Decoder(TaskRecord).decode
_decode_input = msgspec.msgpack.Decoder(TaskInput).decode


def _pack(value: TaskRecord | TaskInput) -> bytes:
    """Return a value with a checksum: a changed bit in a result would otherwise be part of a valid answer."""
    return _CHECKED + add_checksum(_encode(value), value.id)


def _content(id: str, packed: bytes) -> bytes:
    """Return the MessagePack of a stored value. Raises `ValueError` if its checksum differs."""
    if packed[:1] != _CHECKED:
        return packed  # of an older version of accord
    content = packed[5:]
    if add_checksum(content, id) != packed[1:]:
        raise ValueError("its checksum differs")
    return content


def _split(record: TaskRecord) -> tuple[bytes, bytes | None]:
    """Return what `tasks` has of a record, and what `contents` has of it."""
    packed = _pack(record)
    return (packed, None) if len(packed) < _LARGE_BYTES else (_pack(record.head), packed)


def _write_content(db: sqlite3.Connection, id: str, content: bytes | None) -> None:
    """Store a large record, after its row in `tasks`, whose change drops the previous one."""
    if content is not None:
        db.execute("INSERT INTO contents VALUES (?, ?)", (id, content))


class SQLiteTasks:
    """`Tasks` in the file `path`; several processes of one machine may share it. Records are on the disk when `create`
    and `save` return. Of `limits`, `TaskLimits.kept_bytes` applies, to the file. `clock` returns seconds since 1970.
    """

    survives = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        limits: Limits = DEFAULT_LIMITS,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = Path(path)
        self._most = limits.tasks.kept_bytes
        self._clock = clock
        self._thread = DatabaseThread(self._connect, self._explain)
        self._locks: dict[str, sqlite3.Connection] = {}
        self._taken: dict[str, list[tuple[Any, ...]]] = {}
        """The rows that each runner has taken last."""

    def __repr__(self) -> str:
        return f"SQLiteTasks({str(self._path)!r})"

    def _connect(self) -> sqlite3.Connection:
        db = open_private_database(self._path, "tasks", _TABLES, _VERSION, cure="choose another file for SQLiteTasks")
        switch_to_wal(db)
        db.execute("PRAGMA synchronous=FULL")
        for statement in ("CREATE INDEX IF NOT EXISTS inputs_by_task ON inputs (task)", *_CONTENTS):
            db.execute(statement)  # which older files do not have
        return db

    def _explain(self, exc: sqlite3.Error) -> str:
        return f"tasks could not be stored in or read from {self._path}: {exc}"

    # --- runners -----------------------------------------------------------------------------------------------

    async def open(self, runner: str) -> None:
        """See `Tasks.open`."""
        await self._thread.start()
        try:
            await self._thread.run(lambda db: self._enter(db, runner))
        except BaseException:
            await self.close(runner)
            raise

    async def close(self, runner: str) -> None:
        """See `Tasks.close`."""
        self._taken.pop(runner, None)
        try:
            with suppress(StoreError):
                await self._thread.run(lambda _: None)  # after the calls that are pending
        finally:  # also where another process holds the database
            self._release(runner)
            await self._thread.stop()

    def _lock_path(self, runner: str) -> Path:
        return self._path.with_name(f"{self._path.name}-runner-{runner}")

    def _enter(self, db: sqlite3.Connection, runner: str) -> None:
        """Lock the file of a runner, and remove those of runners that were killed: in one transaction of the database,
        so that no other process has created its file and not yet locked it.
        """
        if runner not in self._locks:  # a transaction that was rolled back runs again
            self._hold(runner)
        self._drop_expired(db)
        prefix = self._lock_path("").name
        for path in self._path.parent.glob(f"{escape(prefix)}*"):
            if not path.name.endswith(("-journal", "-wal", "-shm")):
                self._has_ended(path.name.removeprefix(prefix))

    def _hold(self, runner: str) -> None:
        """Lock the file of a runner, with a transaction that stays open until `close` ends it in another thread."""
        path = self._lock_path(runner)
        open_private_database(path, "runners of tasks", (), _VERSION).close()
        lock = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        lock.execute("BEGIN EXCLUSIVE")
        self._locks[runner] = lock

    def _release(self, runner: str) -> None:
        lock = self._locks.pop(runner, None)
        if lock is not None:
            lock.close()
            self._remove_lock(runner)

    def _remove_lock(self, runner: str) -> None:
        path = self._lock_path(runner)
        for suffix in ("", "-journal", "-wal", "-shm"):
            with suppress(OSError):  # Windows, while another process has it open: the next one removes it
                path.with_name(path.name + suffix).unlink()

    def _has_ended(self, runner: object) -> bool:
        """Return whether no process holds the lock of a runner, and remove its file."""
        if runner in self._locks:
            return False
        if not isinstance(runner, str) or not _RUNNER.fullmatch(runner):
            return True  # no runner of accord
        path = self._lock_path(runner)
        if not path.exists():
            return True
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as lock:
            try:
                lock.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError:
                return False
            except sqlite3.DatabaseError:  # no database, so that nobody can have locked it
                pass
        self._remove_lock(runner)
        return True

    # --- records -----------------------------------------------------------------------------------------------

    async def create(self, record: TaskRecord) -> None:
        """See `Tasks.create`."""
        (row, content), runner = _split(record), None if record.ended else record.runner

        def work(db: sqlite3.Connection) -> None:
            self._check_room(db, record.account, len(content or row) + RECORD_BYTES)
            db.execute(
                "INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?)",
                (record.id, record.owner, record.account, runner, record.expires_at, row),
            )
            _write_content(db, record.id, content)

        await self._thread.run(work)

    async def save(self, record: TaskRecord) -> None:
        """See `Tasks.save`. The end of a task always has room, without a large result."""
        (row, content), runner = _split(record), None if record.ended else record.runner
        size = f"SELECT {_SIZE} FROM tasks LEFT JOIN contents ON task = id WHERE id = ?"

        def work(db: sqlite3.Connection) -> None:
            found = db.execute(size, (record.id,)).fetchone()
            growth = len(content or row) - found[0] if found is not None else 0
            if not record.ended or growth > RECORD_BYTES:
                self._check_room(db, record.account, growth)
            changed = db.execute(
                "UPDATE tasks SET record = ?, expires = ?, runner = ? WHERE id = ? AND runner = ?",
                (row, record.expires_at, runner, record.id, record.runner),
            )
            if not changed.rowcount:
                return
            _write_content(db, record.id, content)
            if runner is None:
                db.execute("DELETE FROM inputs WHERE task = ?", (record.id,))

        await self._thread.run(work)

    def _check_room(self, db: sqlite3.Connection, account: str, growth: int) -> None:
        """Raise `StoreFull` if an account may not have so many more bytes."""
        if growth <= 0 or db.execute(_AT_MOST).fetchone()[0] + growth <= self._most:
            return
        total, own = db.execute(_USED, (account,)).fetchone()
        if own + growth > largest_share(total + growth, self._most):
            raise no_room(self._most)

    async def load(self, id: str) -> TaskRecord | None:
        """See `Tasks.load`."""
        query = f"{_ROWS} id = ? AND expires > ?"
        found = await self._thread.run(lambda db: self._read(db, db.execute(query, (id, self._clock()))))
        return found[0] if found else None

    def _read(
        self, db: sqlite3.Connection, rows: Iterable[tuple[Any, ...]], *, has_ended: bool = False
    ) -> list[TaskRecord]:
        """Return the records in rows. One that cannot be read is replaced by one that has failed, if it has no runner,
        or the runner `has_ended`.
        """
        records = []
        for id, owner, account, expires, runner, packed in list(rows):
            try:
                record = _decode_record(_content(id, packed))
            except _UNREADABLE as exc:
                log.error("accord: the record of a task in %s cannot be read: %s", self._path, exc)
                record = unreadable_record(id, owner, account, self._clock(), expires)
                if runner is None or has_ended:
                    db.execute("UPDATE tasks SET record = ?, runner = NULL WHERE id = ?", (_pack(record), id))
            records.append(record)
        return records

    async def count(self, account: str) -> tuple[int, int]:
        """See `Tasks.count`."""
        query = "SELECT (SELECT count(*) FROM tasks WHERE account = ?), (SELECT count(*) FROM tasks)"

        def work(db: sqlite3.Connection) -> tuple[int, int]:
            self._drop_expired(db)
            own, total = db.execute(query, (account,)).fetchone()
            return int(own), int(total)

        return await self._thread.run(work)

    def _drop_expired(self, db: sqlite3.Connection) -> None:
        if db.execute("DELETE FROM tasks WHERE expires <= ?", (self._clock(),)).rowcount:
            db.execute("DELETE FROM inputs WHERE task NOT IN (SELECT id FROM tasks)")

    async def page(self, owner: str, after: str, most: int) -> Sequence[TaskRecord]:
        """See `Tasks.page`."""
        query = "SELECT id, record FROM tasks WHERE owner = ? AND id > ? AND expires > ? ORDER BY id LIMIT ?"
        values = owner, after, self._clock(), most

        def work(db: sqlite3.Connection) -> list[TaskRecord]:
            return [self._read_head(db, *row) for row in db.execute(query, values).fetchall()]

        return await self._thread.run(work)

    def _read_head(self, db: sqlite3.Connection, id: str, packed: bytes) -> TaskRecord:
        try:
            return _decode_record(_content(id, packed)).head
        except _UNREADABLE:
            (record,) = self._read(db, db.execute(f"{_ROWS} id = ?", (id,)))
            return record.head

    async def adopt(self, runner: str) -> Sequence[TaskRecord]:
        """See `Tasks.adopt`."""

        def work(db: sqlite3.Connection) -> list[TaskRecord]:
            runners = db.execute("SELECT DISTINCT runner FROM tasks WHERE runner IS NOT NULL").fetchall()
            adopted = []
            for ended in [each for (each,) in runners if each != runner and self._has_ended(each)]:
                rows = db.execute(f"{_ROWS} runner = ?", (ended,))
                for record in self._read(db, rows, has_ended=True):
                    if not record.ended:
                        record.runner = runner
                        adopted.append(record)
                        row, content = _split(record)
                        db.execute("UPDATE tasks SET runner = ?, record = ? WHERE id = ?", (runner, row, record.id))
                        _write_content(db, record.id, content)
            return adopted

        return await self._thread.run(work)

    # --- inputs ------------------------------------------------------------------------------------------------

    async def send(self, input: TaskInput) -> None:
        """See `Tasks.send`."""

        def work(db: sqlite3.Connection) -> None:
            query = "SELECT account FROM tasks WHERE id = ? AND runner IS NOT NULL"
            if (found := db.execute(query, (input.id,)).fetchone()) is None:
                return
            if db.execute("SELECT count(*) FROM inputs WHERE task = ?", (input.id,)).fetchone()[0] >= MAX_INPUTS:
                raise too_many_inputs()
            packed = _pack(input)
            self._check_room(db, found[0], len(packed) + RECORD_BYTES)
            db.execute("INSERT INTO inputs (task, input) VALUES (?, ?)", (input.id, packed))

        await self._thread.run(work)

    async def take(self, runner: str) -> Sequence[TaskInput]:
        """See `Tasks.take`. What a runner has taken stays in the file until it takes more: if it is killed before it
        has saved that, the next runner takes it.
        """
        taken = self._taken.get(runner, ())

        def work(db: sqlite3.Connection) -> tuple[list[tuple[Any, ...]], list[TaskInput]]:
            # a number is used again after the end of a task, which deletes its inputs
            db.executemany("DELETE FROM inputs WHERE number = ? AND task = ? AND input = ?", taken)
            rows = db.execute(
                "SELECT number, id, input FROM inputs JOIN tasks ON task = id WHERE runner = ? ORDER BY number",
                (runner,),
            ).fetchall()
            return rows, [input for _, id, packed in rows for input in self._read_input(id, packed)]

        rows, inputs = await self._thread.run(work)
        self._taken[runner] = rows  # not in `work`, whose transaction may be rolled back, and run again
        return inputs

    def _read_input(self, id: str, packed: bytes) -> list[TaskInput]:
        """Return an input, or nothing if it cannot be read."""
        try:
            return [_decode_input(_content(id, packed))]
        except _UNREADABLE as exc:
            log.error("accord: an answer for a task in %s cannot be read, and is dropped: %s", self._path, exc)
            return []
