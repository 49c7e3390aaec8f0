"""Events in an SQLite file: they survive the end of the process, also if it is killed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from accord.limits import DEFAULT_LIMITS, Limits
from accord.store import file
from accord.store.base import Replay
from accord.store.database_thread import DatabaseThread
from accord.store.event_tables import EventTables


class SQLiteEvents:
    """`Events` in the file `path`, limited by `limits`; several processes may share it.

    The messages of `append` are on the disk when it returns. `clock` returns seconds that are comparable after a
    restart.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        limits: Limits = DEFAULT_LIMITS,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        file_path = Path(path)
        self._tables = EventTables(file_path, limits, clock)
        self._thread = DatabaseThread(lambda: file.connect(file_path), lambda exc: file.explain(file_path, exc))

    async def open(self) -> None:
        """See `Events.open`."""
        await self._thread.start()

    async def close(self) -> None:
        """See `Events.close`."""
        await self._thread.stop()

    async def save(self, session: str, record: bytes) -> None:
        """See `Events.save`."""
        await self._thread.run(lambda db: self._tables.save(db, session, record))

    async def load(self, session: str) -> bytes | None:
        """See `Events.load`."""
        return await self._thread.run(lambda db: self._tables.load(db, session))

    async def forget(self, session: str) -> None:
        """See `Events.forget`."""
        await self._thread.run(lambda db: self._tables.forget(db, session))

    async def begin(self, session: str, stream: str, about: bytes, account: str = "") -> None:
        """See `Events.begin`."""
        await self._thread.run(lambda db: self._tables.begin(db, session, stream, about, account))

    async def append(self, session: str, stream: str, messages: Sequence[bytes], *, ends: bool = False) -> int:
        """See `Events.append`."""
        copied = list(messages)  # the caller's list may change before the thread reads it
        return await self._thread.run(lambda db: self._tables.append(db, session, stream, copied, ends))

    async def end(self, session: str, stream: str) -> None:
        """See `Events.end`."""
        await self._thread.run(lambda db: self._tables.end(db, session, stream))

    async def read(self, session: str, stream: str, after: int, most: int | None = None) -> Replay | None:
        """See `Events.read`."""
        return await self._thread.run(lambda db: self._tables.read(db, session, stream, after, most))

    async def last(self, session: str, stream: str) -> int | None:
        """See `Events.last`."""
        return await self._thread.run(lambda db: self._tables.last(db, session, stream))
