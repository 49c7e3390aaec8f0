"""An audit log as JSON lines. Several processes may append to one file: each holds its lock while it writes.

A process that is killed while it writes may leave a last line without its end, of which no caller was told that it is
stored. The next writer removes it and adds an entry that says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from accord.errors import StoreError
from accord.file_replacement import flush_folder
from accord.host.audit.anchor import Anchor
from accord.host.audit.chain import (
    HEADER_START,
    MAX_ENTRY_BYTES,
    BrokenEntry,
    Link,
    Record,
    new_entry,
    new_header,
    read_link,
)
from accord.host.audit.file_lock import locked, sync


class JSONLinesFile:
    """The log in the file `path`. The methods block, and raise `StoreError`; one thread at a time may call them."""

    def __init__(self, path: Path, anchor: Anchor | None, clock: Callable[[], float]) -> None:
        self._path = path
        self._anchor = anchor
        self._clock = clock
        self._fd = -1
        self._size = 0
        """Where the last known entry ends, in bytes."""
        self._last = Link(0, "", "", {})
        self._id = ""

    def open(self) -> None:
        """Open the file, and create it if there is none."""
        self._size, self._id = 0, ""
        flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            self._fd = os.open(self._path, flags | os.O_CREAT, 0o600)
            with locked(self._fd):
                self._read_end()
        except BaseException as exc:
            self.close()
            if isinstance(exc, OSError):
                raise self._error(exc) from exc
            raise

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def append(self, records: Sequence[Record]) -> list[str]:
        """Append entries, and return their hashes once they are on the disk."""
        if self._fd < 0:
            raise StoreError(f"the audit log {self._path} is not open")
        try:
            with locked(self._fd):
                self._check_place()
                if os.fstat(self._fd).st_size != self._size:
                    self._read_end()  # another process has appended entries
                self._check_anchor()
                return self._write_entries(records)
        except OSError as exc:
            raise self._error(exc) from exc

    def _check_place(self) -> None:
        mine, there = os.fstat(self._fd), os.stat(self._path)
        if (mine.st_dev, mine.st_ino) != (there.st_dev, there.st_ino):
            raise StoreError(f"{self._path} is another file than the one that was opened; open the log again")

    def _check_anchor(self) -> None:
        if self._anchor is not None:
            self._anchor.check(self._path, self._id, self._last)

    def _write_entries(self, records: Sequence[Record]) -> list[str]:
        lines, hashes, last = [], [], self._last
        for now, event in records:
            line = new_entry(last, now, event)
            last = read_link(line)
            lines.append(line + b"\n")
            hashes.append(last.hash)
        self._write(b"".join(lines))
        self._last = last
        if self._anchor is not None:
            self._anchor.write(self._id, last)
        return hashes

    def _write(self, data: bytes) -> None:
        """Write all of the data, or nothing."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
            sync(self._fd)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise
        self._size += len(data)

    def _read_end(self) -> None:
        """Find the last entry; begin a new log in an empty file."""
        size = os.fstat(self._fd).st_size
        if size < self._size:
            raise StoreError(f"{self._path} is shorter than before: entries were removed")
        tail = self._read(max(0, size - 2 * MAX_ENTRY_BYTES), size)
        whole, line_break, rest = tail.rpartition(b"\n")
        if not line_break:
            self._begin(tail)
            return
        self._size = size - len(rest)
        self._last = self._link(whole.rpartition(b"\n")[2])
        self._id = self._id or str(self._link(self._read(0, MAX_ENTRY_BYTES).partition(b"\n")[0]).content.get("id"))
        self._check_anchor()
        if rest:
            self._recover(len(rest))

    def _begin(self, rest: bytes) -> None:
        """Write the header of a new log; `rest` is the beginning of one whose process was killed."""
        if not HEADER_START.startswith(rest[: len(HEADER_START)]):
            raise StoreError(f"{self._path} is not an audit log; choose another file")
        if self._anchor is not None and self._anchor.read() is not None:
            raise StoreError(
                f"{self._path} is empty, but the anchor {self._anchor.path} knows of entries; choose another anchor"
            )
        os.ftruncate(self._fd, 0)
        self._size = 0
        header = new_header(self._clock())
        self._write(header + b"\n")
        flush_folder(self._path.parent)
        self._last = read_link(header)
        self._id = str(self._last.content["id"])
        if self._anchor is not None:
            self._anchor.write(self._id, self._last)

    def _recover(self, incomplete: int) -> None:
        os.ftruncate(self._fd, self._size)
        note = {"kind": "recovery", "detail": f"{incomplete} bytes of an incomplete entry were removed"}
        self._write_entries([(self._clock(), msgspec.json.encode(note))])

    def _link(self, line: bytes) -> Link:
        try:
            return read_link(line)
        except BrokenEntry as exc:
            cure = f"see what happened: accord audit verify {self._path}"
            raise StoreError(f"{self._path} is not an audit log, or was changed: {exc}; {cure}") from exc

    def _read(self, start: int, end: int) -> bytes:
        with open(self._path, "rb") as file:
            file.seek(start)
            return file.read(end - start)

    def _error(self, exc: OSError) -> StoreError:
        return StoreError(f"the audit log {self._path} cannot be used: {exc.strerror or exc}")
