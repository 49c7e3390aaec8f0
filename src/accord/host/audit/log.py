"""The audit log of a host: append-only, with a hash chain.

    async with AuditLog("audit.jsonl", anchor="/mnt/other/audit.anchor") as audit:
        await audit.append(AuditEvent(kind="sending", call="17", server="files", tool="read_text"))

`append` returns after the entry is on the disk. The host awaits it before it sends the message that the entry
describes, and sends nothing if it raises.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol

from accord.errors import StoreError
from accord.host.audit.anchor import Anchor
from accord.host.audit.chain import Record
from accord.host.audit.event import AuditEvent, encode_event
from accord.host.audit.json_lines import JSONLinesFile
from accord.host.audit.sqlite_file import SQLiteFile

_MAX_BATCH = 500
"""Limit of the entries that are written at once."""


class AuditFile(Protocol):
    """A file of entries. The methods block, and raise `StoreError`."""

    def open(self) -> None:
        """Open the file, and create it if there is none."""

    def append(self, records: Sequence[Record]) -> list[str]:
        """Append entries, and return their hashes once they are on the disk."""
        ...

    def close(self) -> None:
        """Close the file."""


def is_database(path: Path) -> bool:
    """Return whether a log is in SQLite, by the end of its name."""
    return path.suffix.lower() in (".db", ".sqlite", ".sqlite3")


Waiting = tuple[Record, asyncio.Future[str]]


class AuditLog:
    """The log in the file `path`; several processes may append to it. A file whose name ends with `.db`, `.sqlite`
    or `.sqlite3` is a database; others have JSON lines.

    `anchor` is a file for the latest hash, which shows later that the end of the log was cut off. `clock` returns
    seconds since 1970. The methods raise `StoreError`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        anchor: str | os.PathLike[str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path: Path = Path(path)
        self.anchor: Path | None = None if anchor is None else Path(anchor)
        self._clock = clock
        kind = SQLiteFile if is_database(self.path) else JSONLinesFile
        self._file: AuditFile = kind(self.path, None if anchor is None else Anchor(Path(anchor)), clock)
        self._waiting: list[Waiting] = []
        self._writer: asyncio.Task[None] | None = None
        self._open = False

    async def open(self) -> None:
        """Open the file, and create it if there is none."""
        await asyncio.to_thread(self._file.open)
        self._open = True

    async def close(self) -> None:
        """Write what waits, and close the file."""
        self._open = False
        if self._writer is not None:
            await self._writer
        await asyncio.to_thread(self._file.close)

    async def __aenter__(self) -> AuditLog:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def append(self, event: AuditEvent) -> str:
        """Append an event, and return the hash of its entry once it is on the disk.

        Events that arrive while others are written are written together after them. The entry is also written if this
        call is cancelled.
        """
        if not self._open:
            raise StoreError(f"the audit log {self.path} is not open")
        try:
            encoded = encode_event(event)
        except (ValueError, TypeError, RecursionError) as exc:  # such as deep nesting
            raise StoreError(f"the event of call {event.call!r:.100} cannot be written: {exc}") from exc
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_retrieve)
        self._waiting.append(((self._clock(), encoded), future))
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_waiting())
        return await asyncio.shield(future)

    async def _write_waiting(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_MAX_BATCH], self._waiting[_MAX_BATCH:]
                await self._write(batch)
        finally:
            self._writer = None

    async def _write(self, batch: list[Waiting]) -> None:
        futures = [future for _, future in batch]
        try:
            hashes = await asyncio.to_thread(self._file.append, [record for record, _ in batch])
        except BaseException as exc:  # also a cancellation at the end of the loop
            error = exc if isinstance(exc, StoreError) else StoreError(f"the audit log {self.path} failed: {exc!r}")
            for future in futures:
                if not future.done():
                    future.set_exception(error)
            if not isinstance(exc, Exception):
                raise
            return
        for future, found in zip(futures, hashes, strict=True):
            if not future.done():
                future.set_result(found)


def _retrieve(future: asyncio.Future[str]) -> None:
    """Mark the error of an entry as seen: the caller may have been cancelled."""
    if not future.cancelled():
        future.exception()
