"""Reads an audit log in SQLite, and checks that its file has no byte that does not follow from its entries.

SQLite has no checksums: a changed byte may be in a part of the file that is in use, and be read as another value, or in
a part that is not, and stay there unseen. `check_layout` writes the same entries to a new file and compares the two
byte by byte. Three fields of the header depend on the history of a file and are compared otherwise: the two counters of
changes must be equal, and the version of SQLite must be the one in the last entry.

The reader works on a copy of the file, and of the journal that a killed process left, and never changes the log.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from accord.host.audit.sqlite_file import APPLICATION, INSERT, TABLES

_BLOCK = 1 << 20
_COUNTERS = slice(24, 28), slice(92, 96)
_VERSION = slice(96, 100)
"""Places in the header of the file (SQLite, Database File Format, 1.3)."""


class DamagedLayout(Exception):
    """A file whose bytes are not as a log writes them."""


def copy_log(path: Path, folder: Path) -> Path:
    """Copy a log to a folder, as far as the system allows while no process writes to it."""
    copy = folder / "audit.db"
    journal = path.with_name(f"{path.name}-journal")
    with path.open("rb") as file:
        is_plain = file.read(20)[18:] == b"\1\1"  # not with a write-ahead log, which SQLite would create beside it
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)) as db:
        # A damaged file, and one with the journal of a killed process, cannot be read here; nobody writes to them.
        with suppress(sqlite3.Error, UnicodeError):
            if is_plain:
                db.execute("BEGIN")
                db.execute("SELECT 1 FROM sqlite_master").fetchone()  # from here on, no other process can commit
        shutil.copyfile(path, copy)
        if journal.exists():
            shutil.copyfile(journal, folder / "audit.db-journal")
    return copy


def read_entries(db: sqlite3.Connection) -> Iterator[tuple[int, bytes]]:
    """Return the number and the line of each row. Raises `DamagedLayout` or `sqlite3.Error`."""
    db.execute("PRAGMA trusted_schema=OFF")
    statements = [sql for (sql,) in db.execute("SELECT sql FROM sqlite_master")]
    if statements != [TABLES[0]] or db.execute("PRAGMA application_id").fetchone() != (APPLICATION,):
        raise DamagedLayout("its tables are not those of an audit log")
    for number, entry in db.execute("SELECT number, entry FROM entries ORDER BY number"):
        if type(number) is not int or not isinstance(entry, bytes):
            raise DamagedLayout(f"row {number!r:.100} is not an entry")
        yield number, entry


def check_layout(copy: Path, folder: Path, version: object) -> None:
    """Raise `DamagedLayout` unless the file has exactly the bytes that its entries need.

    `version` is that of the SQLite that wrote the last entry.
    """
    again = folder / "again.db"
    with closing(sqlite3.connect(copy)) as old, closing(sqlite3.connect(again, isolation_level=None)) as new:
        (page_bytes,) = old.execute("PRAGMA page_size").fetchone()
        for pragma in (f"page_size={page_bytes}", "journal_mode=OFF", "synchronous=OFF"):
            new.execute(f"PRAGMA {pragma}")
        new.execute("BEGIN")
        for statement in TABLES:
            new.execute(statement)
        new.executemany(INSERT, read_entries(old))
        new.execute("COMMIT")
    _compare(copy, again, version)


def _compare(copy: Path, again: Path, version: object) -> None:
    at = 0
    with copy.open("rb") as one, again.open("rb") as other:
        while True:
            mine, theirs = one.read(_BLOCK), other.read(_BLOCK)
            if at == 0:
                theirs = _with_history(theirs, mine, version)
            if mine != theirs:
                pairs = zip(mine, theirs, strict=False)
                first = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(mine), len(theirs)))
                raise DamagedLayout(f"the byte at {at + first:,} is not as it was written")
            if not mine:
                return
            at += len(mine)


def _with_history(new: bytes, old: bytes, version: object) -> bytes:
    """Return the bytes of a new file with the counters and the version of the old one, if these fit."""
    counter, valid_for = (old[place] for place in _COUNTERS)
    if counter != valid_for:
        raise DamagedLayout("the counters of its header differ")
    if int.from_bytes(old[_VERSION], "big") != version:
        raise DamagedLayout("the version in its header is not the one in its last entry")
    changed = bytearray(new)
    for place in (*_COUNTERS, _VERSION):
        changed[place] = old[place]
    return bytes(changed)
