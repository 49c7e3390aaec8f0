"""Tasks in an SQLite file: they survive the end of the process, also if it is killed.

A runner holds a lock on a file of its own beside the database, which the operating system releases when the process
ends in any way. So another process knows exactly which runners have ended.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from accord.errors import StoreError
from accord.store.database_thread import DatabaseThread
from accord.store.private_database import open_private_database
from accord.store.tasks import TaskInput, TaskRecord

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

_encode = msgspec.msgpack.encode
_decode_record = msgspec.msgpack.Decoder(TaskRecord).decode
_decode_input = msgspec.msgpack.Decoder(TaskInput).decode


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
        return db

    def _explain(self, exc: sqlite3.Error) -> str:
        return f"tasks could not be stored in or read from {self._path}: {exc}"

    # --- runners -----------------------------------------------------------------------------------------------

    async def open(self, runner: str) -> None:
        """See `Tasks.open`."""
        await self._thread.start()
        try:
            await self._thread.run(lambda _: self._hold(runner))
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
            path.with_name(path.name + suffix).unlink(missing_ok=True)

    def _has_ended(self, runner: str) -> bool:
        """Return whether no process holds the lock of a runner."""
        if runner in self._locks:
            return False
        path = self._lock_path(runner)
        if not path.exists():
            return True
        lock = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            return False
        finally:
            lock.close()
        self._remove_lock(runner)
        return True

    # --- records -----------------------------------------------------------------------------------------------

    async def create(self, record: TaskRecord) -> None:
        """See `Tasks.create`."""
        packed, runner = _encode(record), None if record.ended else record.runner

        def work(db: sqlite3.Connection) -> None:
            db.execute(
                "INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?)",
                (record.id, record.owner, record.account, runner, record.expires_at, packed),
            )

        await self._thread.run(work)

    async def save(self, record: TaskRecord) -> None:
        """See `Tasks.save`."""
        packed, runner = _encode(record), None if record.ended else record.runner

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
        query = "SELECT record FROM tasks WHERE id = ? AND expires > ?"
        row = await self._thread.run(lambda db: db.execute(query, (id, self._clock())).fetchone())
        return None if row is None else _decode_record(row[0])

    async def count(self, account: str) -> tuple[int, int]:
        """See `Tasks.count`."""
        query = "SELECT (SELECT count(*) FROM tasks WHERE account = ?), (SELECT count(*) FROM tasks)"

        def work(db: sqlite3.Connection) -> tuple[int, int]:
            db.execute("DELETE FROM tasks WHERE expires <= ?", (self._clock(),))
            own, total = db.execute(query, (account,)).fetchone()
            return int(own), int(total)

        return await self._thread.run(work)

    async def page(self, owner: str, after: str, most: int) -> Sequence[TaskRecord]:
        """See `Tasks.page`."""
        query = "SELECT record FROM tasks WHERE owner = ? AND id > ? AND expires > ? ORDER BY id LIMIT ?"
        rows = await self._thread.run(lambda db: db.execute(query, (owner, after, self._clock(), most)).fetchall())
        return [_decode_record(record) for (record,) in rows]

    async def adopt(self, runner: str) -> Sequence[TaskRecord]:
        """See `Tasks.adopt`."""

        def work(db: sqlite3.Connection) -> list[TaskRecord]:
            rows = db.execute("SELECT DISTINCT runner FROM tasks WHERE runner IS NOT NULL").fetchall()
            ended = [each for (each,) in rows if each != runner and self._has_ended(each)]
            adopted = []
            for each in ended:
                rows = db.execute("SELECT record FROM tasks WHERE runner = ?", (each,)).fetchall()
                for record in (_decode_record(packed) for (packed,) in rows):
                    record.runner = runner
                    db.execute(
                        "UPDATE tasks SET runner = ?, record = ? WHERE id = ?", (runner, _encode(record), record.id)
                    )
                    adopted.append(record)
            return adopted

        return await self._thread.run(work)

    # --- inputs ------------------------------------------------------------------------------------------------

    async def send(self, input: TaskInput) -> None:
        """See `Tasks.send`."""
        packed = _encode(input)
        await self._thread.run(
            lambda db: db.execute("INSERT INTO inputs (task, input) VALUES (?, ?)", (input.id, packed))
        )

    async def take(self, runner: str) -> Sequence[TaskInput]:
        """See `Tasks.take`."""

        def work(db: sqlite3.Connection) -> list[TaskInput]:
            rows = db.execute(
                "SELECT number, input FROM inputs JOIN tasks ON task = id WHERE runner = ? ORDER BY number", (runner,)
            ).fetchall()
            db.executemany("DELETE FROM inputs WHERE number = ?", [(number,) for number, _ in rows])
            return [_decode_input(input) for _, input in rows]

        return await self._thread.run(work)
