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
from accord.store.database_thread import DatabaseThread
from accord.store.file import add_checksum
from accord.store.private_database import open_private_database
from accord.store.tasks import MAX_INPUTS, TaskInput, TaskRecord, too_many_inputs, unreadable_record

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

_RECORD = "id, owner, account, expires, runner, record"

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


class SQLiteTasks:
    """`Tasks` in the file `path`; several processes of one machine may share it. Records are on the disk when `create`
    and `save` return. `clock` returns seconds since 1970.
    """

    survives = True

    def __init__(self, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.time) -> None:
        self._path = Path(path)
        self._clock = clock
        self._thread = DatabaseThread(self._connect, self._explain)
        self._locks: dict[str, sqlite3.Connection] = {}

    def __repr__(self) -> str:
        return f"SQLiteTasks({str(self._path)!r})"

    def _connect(self) -> sqlite3.Connection:
        db = open_private_database(self._path, "tasks", _TABLES, _VERSION, cure="choose another file for SQLiteTasks")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("CREATE INDEX IF NOT EXISTS inputs_by_task ON inputs (task)")  # which older files do not have
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
            await self._thread.stop()
            raise

    async def close(self, runner: str) -> None:
        """See `Tasks.close`."""
        with suppress(StoreError):
            await self._thread.run(lambda _: self._release(runner))
        await self._thread.stop()

    def _lock_path(self, runner: str) -> Path:
        return self._path.with_name(f"{self._path.name}-runner-{runner}")

    def _enter(self, db: sqlite3.Connection, runner: str) -> None:
        """Lock the file of a runner, and remove those of runners that were killed: in one transaction of the database,
        so that no other process has created its file and not yet locked it.
        """
        self._hold(runner)
        self._drop_expired(db)
        prefix = self._lock_path("").name
        for path in self._path.parent.glob(f"{escape(prefix)}*"):
            if not path.name.endswith(("-journal", "-wal", "-shm")):
                self._has_ended(path.name.removeprefix(prefix))

    def _hold(self, runner: str) -> None:
        """Lock the file of a runner, with a transaction that stays open."""
        lock = open_private_database(self._lock_path(runner), "runners of tasks", (), _VERSION)
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
        packed, runner = _pack(record), None if record.ended else record.runner

        def work(db: sqlite3.Connection) -> None:
            db.execute(
                "INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?)",
                (record.id, record.owner, record.account, runner, record.expires_at, packed),
            )

        await self._thread.run(work)

    async def save(self, record: TaskRecord) -> None:
        """See `Tasks.save`."""
        packed, runner = _pack(record), None if record.ended else record.runner

        def work(db: sqlite3.Connection) -> None:
            changed = db.execute(
                "UPDATE tasks SET record = ?, expires = ?, runner = ? WHERE id = ? AND runner = ?",
                (packed, record.expires_at, runner, record.id, record.runner),
            )
            if runner is None and changed.rowcount:
                db.execute("DELETE FROM inputs WHERE task = ?", (record.id,))

        await self._thread.run(work)

    async def load(self, id: str) -> TaskRecord | None:
        """See `Tasks.load`."""
        query = f"SELECT {_RECORD} FROM tasks WHERE id = ? AND expires > ?"
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
        query = f"SELECT {_RECORD} FROM tasks WHERE owner = ? AND id > ? AND expires > ? ORDER BY id LIMIT ?"
        values = owner, after, self._clock(), most
        return await self._thread.run(lambda db: self._read(db, db.execute(query, values)))

    async def adopt(self, runner: str) -> Sequence[TaskRecord]:
        """See `Tasks.adopt`."""

        def work(db: sqlite3.Connection) -> list[TaskRecord]:
            runners = db.execute("SELECT DISTINCT runner FROM tasks WHERE runner IS NOT NULL").fetchall()
            adopted = []
            for ended in [each for (each,) in runners if each != runner and self._has_ended(each)]:
                rows = db.execute(f"SELECT {_RECORD} FROM tasks WHERE runner = ?", (ended,))
                for record in self._read(db, rows, has_ended=True):
                    if not record.ended:
                        record.runner = runner
                        adopted.append(record)
                        change = "UPDATE tasks SET runner = ?, record = ? WHERE id = ?"
                        db.execute(change, (runner, _pack(record), record.id))
            return adopted

        return await self._thread.run(work)

    # --- inputs ------------------------------------------------------------------------------------------------

    async def send(self, input: TaskInput) -> None:
        """See `Tasks.send`."""

        def work(db: sqlite3.Connection) -> None:
            if not db.execute("SELECT 1 FROM tasks WHERE id = ? AND runner IS NOT NULL", (input.id,)).fetchone():
                return
            if db.execute("SELECT count(*) FROM inputs WHERE task = ?", (input.id,)).fetchone()[0] >= MAX_INPUTS:
                raise too_many_inputs()
            db.execute("INSERT INTO inputs (task, input) VALUES (?, ?)", (input.id, _pack(input)))

        await self._thread.run(work)

    async def take(self, runner: str) -> Sequence[TaskInput]:
        """See `Tasks.take`."""

        def work(db: sqlite3.Connection) -> list[TaskInput]:
            rows = db.execute(
                "SELECT number, id, input FROM inputs JOIN tasks ON task = id WHERE runner = ? ORDER BY number",
                (runner,),
            ).fetchall()
            db.executemany("DELETE FROM inputs WHERE number = ?", [(number,) for number, _, _ in rows])
            return [input for _, id, packed in rows for input in self._read_input(id, packed)]

        return await self._thread.run(work)

    def _read_input(self, id: str, packed: bytes) -> list[TaskInput]:
        """Return an input, or nothing if it cannot be read."""
        try:
            return [_decode_input(_content(id, packed))]
        except _UNREADABLE as exc:
            log.error("accord: an answer for a task in %s cannot be read, and is dropped: %s", self._path, exc)
            return []
