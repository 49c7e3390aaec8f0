"""What a rate limit remembers: the contract, and two who hold it, for one process and for all of a machine."""

from __future__ import annotations

import os
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Protocol

from accord.errors import DeclarationError
from accord.session.rate import Pace
from accord.store.database_thread import DatabaseThread

_BUSY_SECONDS = 5.0

_TABLE = "CREATE TABLE IF NOT EXISTS rates (name TEXT PRIMARY KEY, due REAL NOT NULL) WITHOUT ROWID"
_INDEX = "CREATE INDEX IF NOT EXISTS rates_by_due ON rates (due)"
_FORGET = "DELETE FROM rates WHERE due < ?"
_READ = "SELECT due FROM rates WHERE name = ?"
_WRITE = "INSERT INTO rates VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET due = excluded.due"


class RateStore(Protocol):
    """Counts by key. The public contract for stores of your own, which several processes may share."""

    async def take(self, key: str, pace: Pace) -> float:
        """Count one more, if the pace allows it now: 0; else the seconds until it does. May raise: the request that
        is counted fails with that.
        """
        ...


class MemoryRates:
    """A `RateStore` in the memory of this process, of at most `most` keys: the one heard of the longest ago goes first.

    `clock` gives seconds. Raises `DeclarationError` for a bound below 1.
    """

    def __init__(self, most: int = 10_000, *, clock: Callable[[], float] = time.monotonic) -> None:
        if most < 1:
            raise DeclarationError(f"most is 1 or more, not {most}")
        self._most = most
        self._clock = clock
        self._due: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._due)

    async def take(self, key: str, pace: Pace) -> float:
        """See `RateStore.take`."""
        now, due = self._clock(), self._due.pop(key, -inf)
        following = pace.step(due, now)
        self._due[key] = due if following is None else following
        if len(self._due) > self._most:
            self._due.popitem(last=False)
        return pace.wait(due, now) if following is None else 0


class SQLiteRates:
    """A `RateStore` in the file `path`, which all processes of a machine may share. It opens itself; `close` it.

    `clock` gives seconds that mean the same in all of them, and after a restart. Calls raise `StoreError` where the
    file cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.time) -> None:
        self._path = Path(path)
        self._clock = clock
        self._committer = DatabaseThread(self._connect, self._explain)
        self._opened = 0
        """How often: those who came together have each opened it."""

    async def take(self, key: str, pace: Pace) -> float:
        """See `RateStore.take`."""
        if not self._opened:
            await self._committer.start()
            self._opened += 1
        return await self._committer.run(lambda db: self._count(db, key, pace))

    async def close(self) -> None:
        """Finish what was asked so far, and let go of the file."""
        while self._opened:
            self._opened -= 1
            await self._committer.stop()

    def _count(self, db: sqlite3.Connection, key: str, pace: Pace) -> float:
        now = self._clock()
        db.execute(_FORGET, (now,))
        (due,) = db.execute(_READ, (key,)).fetchone() or (-inf,)
        due = min(due, now + pace.longest)  # the clock was set back: nobody waits until it comes there again
        following = pace.step(due, now)
        db.execute(_WRITE, (key, due if following is None else following))
        return pace.wait(due, now) if following is None else 0

    def _connect(self) -> sqlite3.Connection:
        with suppress(OSError):  # it is there; or it cannot be made, and then SQLite says why
            # The keys say who called what: the file is its owner's alone, and so are those that SQLite puts beside it.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        db = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=OFF", _TABLE, _INDEX):
            db.execute(statement)  # what a loss of power forgets is a rate
        return db

    def _explain(self, exc: sqlite3.Error) -> str:
        return f"rates could not be kept in {self._path}: {exc}; see that the file and its folder can be written to"
