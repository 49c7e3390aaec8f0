"""The file of `SQLiteEvents`: created private, checked before use, and refused if damaged or of another program.

`loses_transactions` detects damage in the journal (WAL) that a killed process leaves beside its SQLite file.

SQLite takes the first frame with a wrong checksum for the end of the journal, which is right if a process was killed
during a write. If a bit has changed, SQLite would silently drop the acknowledged transactions after it. The two cases
differ: a transaction that others follow was on the disk before these began.

Damage in the last transaction cannot be distinguished from an unfinished write.
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from pathlib import Path

from accord.errors import StoreError
from accord.store.database_thread import create_private_file, switch_to_wal

_HEADER = 32
_FRAME = 24
_MASK = 0xFFFFFFFF

Sums = tuple[int, int]


def loses_transactions(journal: bytes) -> bool:
    """Return whether SQLite would skip a transaction of this journal that others follow."""
    if len(journal) < _HEADER:
        return False
    magic, page = struct.unpack_from(">I4xI", journal)
    order = ">" if magic & 1 else "<"
    salts = journal[16:24]
    sums = _sums(order, journal[:24], (0, 0))
    if not page or sums != struct.unpack_from(">II", journal, 24):
        return False  # the header of a journal that was about to restart: all earlier transactions are in the file
    intact, lost = True, False
    for at in range(_HEADER, len(journal) - _FRAME - page + 1, _FRAME + page):
        same = journal[at + 8 : at + 16] == salts  # other frames are left from before the restart of the journal
        if intact and same:
            sums = _sums(order, journal[at + _FRAME : at + _FRAME + page], _sums(order, journal[at : at + 8], sums))
        intact = intact and same and sums == struct.unpack_from(">II", journal, at + 16)
        if same and lost:
            return True
        is_commit = journal[at + 4 : at + 8] != b"\0\0\0\0"
        lost = lost or (same and not intact and is_commit)
    return False


def _sums(order: str, data: bytes, sums: Sums) -> Sums:
    """Return the running checksum of SQLite's journals."""
    first, second = sums
    for one, other in struct.iter_unpack(f"{order}II", data):
        first = (first + one + second) & _MASK
        second = (second + other + first) & _MASK
    return first, second


_APPLICATION = 0x41434352  # "ACCR"
_VERSION = 2
_BUSY_SECONDS = 5.0
_SECTOR = 512  # a page is a multiple of it
_CHECKPOINT_PAGES = 250  # 1 MB: the journal is read again after a kill

_ACCOUNT_SHRINKS = "UPDATE accounts SET bytes = bytes - old.bytes WHERE name = old.account;"

_TABLES = (
    """CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, record BLOB, renewed REAL NOT NULL, bytes INTEGER NOT NULL,
    account TEXT NOT NULL DEFAULT '')""",
    "CREATE INDEX sessions_by_age ON sessions (renewed)",
    "CREATE INDEX sessions_with_events ON sessions (account, renewed) WHERE bytes > 0",
    """CREATE TABLE streams (
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL, name TEXT NOT NULL, about BLOB NOT NULL,
    last INTEGER NOT NULL, dropped INTEGER NOT NULL, ended REAL, UNIQUE (session, name))""",
    "CREATE INDEX streams_by_end ON streams (ended) WHERE ended IS NOT NULL",
    # a stream that has ended has one more row, without a message: its end, which is deleted last
    """CREATE TABLE events (
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL, stream INTEGER NOT NULL, number INTEGER NOT NULL,
    cost INTEGER NOT NULL, message BLOB)""",
    "CREATE UNIQUE INDEX events_by_number ON events (stream, number)",
    "CREATE INDEX events_by_age ON events (session, id)",
    "CREATE TABLE total (bytes INTEGER NOT NULL)",
    "INSERT INTO total VALUES (0)",
    "CREATE TABLE accounts (name TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE INDEX accounts_by_bytes ON accounts (bytes)",
    f"""CREATE TRIGGER total_changes AFTER UPDATE OF bytes, account ON sessions
    WHEN new.bytes <> old.bytes OR new.account <> old.account BEGIN
    UPDATE total SET bytes = bytes + new.bytes - old.bytes;
    {_ACCOUNT_SHRINKS}
    INSERT INTO accounts VALUES (new.account, new.bytes) ON CONFLICT (name)
    DO UPDATE SET bytes = bytes + excluded.bytes;
    DELETE FROM accounts WHERE bytes = 0; END""",
    f"""CREATE TRIGGER total_shrinks AFTER DELETE ON sessions BEGIN
    UPDATE total SET bytes = bytes - old.bytes;
    {_ACCOUNT_SHRINKS}
    DELETE FROM accounts WHERE bytes = 0; END""",
    f"PRAGMA application_id={_APPLICATION}",
    f"PRAGMA user_version={_VERSION}",
)


def connect(path: Path) -> sqlite3.Connection:
    """Open the file, and create it if needed. Raises `StoreError` or `sqlite3.Error` if it cannot be used."""
    _create_private(path)
    _check_before_open(path)
    db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        _create_tables(path, db)
        _set_pragmas(db)
        _check_integrity(path, db)
    except BaseException:
        db.close()
        raise
    return db


def explain(path: Path, exc: sqlite3.Error) -> str:
    """Return the text for an error of SQLite, with what to do."""
    code = getattr(exc, "sqlite_errorcode", 0) & 0xFF
    return f"events could not be kept in or read from {path}: {exc}; {_ADVICE.get(code, 'see that it is usable')}"


_ADVICE = {
    sqlite3.SQLITE_FULL: "make room on the disk",
    sqlite3.SQLITE_BUSY: "another process holds it",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: move it away, or bring back a copy",
    sqlite3.SQLITE_NOTADB: "the file is damaged or something else: move it away, or bring back a copy",
    sqlite3.SQLITE_CANTOPEN: "see that its folder is there and can be written to",
    sqlite3.SQLITE_READONLY: "see that the file and its folder can be written to",
}


def damaged_error(path: Path, what: str) -> StoreError:
    """Return the error for a file whose data is not valid."""
    return StoreError(f"{path} is damaged: {what}; move it away, or bring back a copy")


def add_checksum(data: bytes, *place: object) -> bytes:
    """Return `data` with a checksum over the data and its place, because SQLite has no checksums."""
    return zlib.crc32(data, zlib.crc32(repr(place).encode())).to_bytes(4, "big") + data


def verify_checksum(path: Path, stored: object, *place: object) -> bytes:
    """Return the data of `stored` without its checksum. Raises `StoreError` if it has changed, or was stored in another
    place."""
    if isinstance(stored, bytes) and add_checksum(stored[4:], *place) == stored:
        return stored[4:]
    raise damaged_error(path, f"what was kept of a {place[0]} has changed")


def _foreign_error(path: Path) -> StoreError:
    return StoreError(
        f"{path} is damaged, or not a store of events of this version of accord; move it away, or give another path"
    )


def _create_private(path: Path) -> None:
    """Create the file if needed: messages to clients are private."""
    try:
        create_private_file(path)
    except OSError as exc:
        raise StoreError(f"events cannot be stored in {path}: {exc.strerror}; give a writable path") from exc


def _check_before_open(path: Path) -> None:
    """Check the file before SQLite opens it, because SQLite repairs silently."""
    journals = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
    if path.stat().st_size % _SECTOR and not any(journal.exists() for journal in journals):
        raise _foreign_error(path)  # it ends in the middle of a page
    # Twice: another process may restart the journal during the read.
    if all(journals[0].exists() and loses_transactions(journals[0].read_bytes()) for _ in range(2)):
        raise damaged_error(journals[0], "what was kept in it would be lost")


def _create_tables(path: Path, db: sqlite3.Connection) -> None:
    """Create the tables in an empty file. A file of another program is not written to, nor switched to WAL."""
    db.execute("BEGIN IMMEDIATE")
    marks = _pragma(db, "application_id"), _pragma(db, "user_version")
    if marks == (0, 0) and not db.execute("SELECT 1 FROM sqlite_master").fetchone():
        for statement in _TABLES:
            db.execute(statement)
    elif marks != (_APPLICATION, _VERSION):
        raise _foreign_error(path)
    db.execute("COMMIT")


def _set_pragmas(db: sqlite3.Connection) -> None:
    switch_to_wal(db, _BUSY_SECONDS)
    db.execute("PRAGMA synchronous=FULL")  # acknowledged events also survive a loss of power
    db.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")


def _check_integrity(path: Path, db: sqlite3.Connection) -> None:
    report = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    if report != "ok":
        raise damaged_error(path, report.replace("\n", " "))


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])
