"""An audit log in SQLite: the same entries as in JSON lines, in a table by number.

The file is used in one way only: rows are appended to one table, and nothing is deleted. So its bytes follow from the
entries, and `sqlite_layout` can check every one of them. For that, each entry has the version of SQLite that wrote it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from accord.errors import StoreError
from accord.host.audit.anchor import Anchor
from accord.host.audit.chain import BrokenEntry, Link, Record, new_entry, new_header, read_link
from accord.store.database_thread import create_private_file

PAGE_BYTES = 4_096
APPLICATION = 0x41434155  # "ACAU"
VERSION: int = sqlite3.sqlite_version_info[0] * 1_000_000 + sqlite3.sqlite_version_info[1] * 1_000
VERSION += sqlite3.sqlite_version_info[2]
"""The version of SQLite as its files have it."""
TABLES = (
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, entry BLOB NOT NULL)",
    f"PRAGMA application_id={APPLICATION}",
    "PRAGMA user_version=1",
)
INSERT = "INSERT INTO entries VALUES (?, ?)"
_LATEST = "SELECT entry FROM entries ORDER BY number DESC LIMIT 1"
_BUSY_SECONDS = 10.0


class SQLiteFile:
    """The log in the file `path`. The methods block, and raise `StoreError`; one thread at a time may call them."""

    def __init__(self, path: Path, anchor: Anchor | None, clock: Callable[[], float]) -> None:
        self._path = path
        self._anchor = anchor
        self._clock = clock
        self._db: sqlite3.Connection | None = None
        self._place = (0, 0)
        self._last = Link(0, "", "", {})
        self._id = ""

    def open(self) -> None:
        """Open the file, and create it if there is none."""
        self._last = Link(0, "", "", {})
        try:
            create_private_file(self._path)
            self._place = _place(self._path)
            self._db = connect(self._path)
            self._db.execute("BEGIN IMMEDIATE")
            if not self._db.execute("SELECT 1 FROM sqlite_master").fetchone():
                self._begin(self._db)
            else:
                self._check_kind(self._db)
                header = self._link(self._db.execute("SELECT entry FROM entries WHERE number = 0").fetchone())
                self._id = str(header.content.get("id"))
                self._read_latest(self._db)
            self._db.execute("COMMIT")
            self._write_anchor()
        except BaseException as exc:
            self.close()
            if isinstance(exc, OSError | sqlite3.Error):
                raise self._error(exc) from exc
            raise

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def append(self, records: Sequence[Record]) -> list[str]:
        """Append entries, and return their hashes once they are on the disk."""
        if self._db is None:
            raise StoreError(f"the audit log {self._path} is not open")
        try:
            if _place(self._path) != self._place:
                raise StoreError(f"{self._path} is another file than the one that was opened; open the log again")
            self._db.execute("BEGIN IMMEDIATE")
            try:
                last = self._read_latest(self._db)
                hashes = []
                for now, event in records:
                    line = new_entry(last, now, event, sqlite=VERSION)
                    last = read_link(line)
                    self._db.execute(INSERT, (last.number, line))
                    hashes.append(last.hash)
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
        except (OSError, sqlite3.Error) as exc:
            raise self._error(exc) from exc
        self._last = last
        self._write_anchor()
        return hashes

    def _begin(self, db: sqlite3.Connection) -> None:
        if self._anchor is not None and self._anchor.read() is not None:
            raise StoreError(
                f"{self._path} is empty, but the anchor {self._anchor.path} knows of entries; choose another anchor"
            )
        for statement in TABLES:
            db.execute(statement)
        header = new_header(self._clock(), sqlite=VERSION)
        db.execute(INSERT, (0, header))
        self._last = read_link(header)
        self._id = str(self._last.content["id"])

    def _check_kind(self, db: sqlite3.Connection) -> None:
        if db.execute("PRAGMA application_id").fetchone() != (APPLICATION,):
            raise StoreError(f"{self._path} is not an audit log; choose another file")

    def _read_latest(self, db: sqlite3.Connection) -> Link:
        latest = self._link(db.execute(_LATEST).fetchone())
        if latest.number < self._last.number:
            raise StoreError(f"{self._path} is shorter than before: entries were removed")
        self._last = latest
        if self._anchor is not None:
            self._anchor.check(self._path, self._id, latest)
        return latest

    def _link(self, row: tuple[object] | None) -> Link:
        try:
            if row is None or not isinstance(row[0], bytes):
                raise BrokenEntry("an entry is missing")
            return read_link(row[0])
        except BrokenEntry as exc:
            cure = f"see what happened: accord audit verify {self._path}"
            raise StoreError(f"{self._path} is not an audit log, or was changed: {exc}; {cure}") from exc

    def _write_anchor(self) -> None:
        if self._anchor is not None:
            self._anchor.write(self._id, self._last)

    def _error(self, exc: Exception) -> StoreError:
        return StoreError(f"the audit log {self._path} cannot be used: {getattr(exc, 'strerror', None) or exc}")


def _place(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def connect(path: Path) -> sqlite3.Connection:
    """Open the file so that a commit survives a loss of power, and its bytes follow from its entries."""
    db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        db.execute(f"PRAGMA page_size={PAGE_BYTES}")
        db.execute("PRAGMA synchronous=EXTRA")
        db.execute("PRAGMA trusted_schema=OFF")
    except BaseException:
        db.close()
        raise
    return db
