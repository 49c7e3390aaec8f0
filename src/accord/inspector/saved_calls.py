"""Calls that the user saved under a name, in one SQLite file of the user, which others cannot read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from accord.errors import StoreError
from accord.inspector.calls import CallRequest
from accord.store.database_thread import DatabaseThread
from accord.store.private_database import open_private_database

T = TypeVar("T")

_TABLES = ("CREATE TABLE calls (name TEXT PRIMARY KEY, request BLOB NOT NULL) WITHOUT ROWID",)
_VERSION = 1
_MOST = 500
_MOST_BYTES = 256 << 10


def default_path() -> Path:
    """Return the file of the user's saved calls."""
    from platformdirs import user_data_path

    return user_data_path("accord") / "inspector.db"


class SavedCall(msgspec.Struct, frozen=True):
    """A call and its name."""

    name: str
    request: CallRequest


class SavedCalls:
    """The saved calls in a file, by default that of the user. The file is created with the first call. The methods
    raise `StoreError`."""

    def __init__(self, path: Path | None = None) -> None:
        self.path: Path = default_path() if path is None else path
        self._thread = DatabaseThread(self._connect, self._explain)

    def _connect(self) -> sqlite3.Connection:
        return open_private_database(self.path, "saved calls", _TABLES, _VERSION)

    def _explain(self, exc: sqlite3.Error) -> str:
        return f"saved calls could not be read from or stored in {self.path}: {exc}"

    async def all(self) -> list[SavedCall]:
        """Return all saved calls, by name."""
        if not self.path.exists():
            return []
        rows = await self._run(lambda db: db.execute("SELECT * FROM calls ORDER BY name").fetchall())
        return [SavedCall(name, msgspec.json.decode(request, type=CallRequest)) for name, request in rows]

    async def save(self, name: str, request: CallRequest) -> None:
        """Save a call, in place of an earlier one of this name."""
        encoded = msgspec.json.encode(request)
        if len(encoded) > _MOST_BYTES:
            raise StoreError(f"the call has {len(encoded):,} bytes; at most {_MOST_BYTES:,} can be saved")

        def store(db: sqlite3.Connection) -> int:
            count = int(db.execute("SELECT count(*) FROM calls WHERE name != ?", (name,)).fetchone()[0])
            if count < _MOST:
                db.execute("INSERT OR REPLACE INTO calls VALUES (?, ?)", (name, encoded))
            return count

        if await self._run(store) >= _MOST:
            raise StoreError(f"there are {_MOST} saved calls; remove some")

    async def remove(self, name: str) -> None:
        """Remove a saved call."""
        if self.path.exists():
            await self._run(lambda db: db.execute("DELETE FROM calls WHERE name = ?", (name,)))

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        await self._thread.start()
        try:
            return await self._thread.run(work)
        finally:
            await self._thread.stop()
