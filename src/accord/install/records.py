"""The entries that accord has installed, in one SQLite file of the user: for `--undo` and `--list`.

A record has the entry as it was written and each change of the text, so that an undo restores every byte and removes
nothing that accord did not write. The file belongs to its owner only, because replaced text may contain secrets. It is
also the lock between processes that install at the same time.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from accord.errors import StoreError
from accord.install.splice import Splice
from accord.store.database_thread import create_private_file

_VERSION = 1
_BUSY_SECONDS = 10.0


class InstallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One installed server."""

    host: str
    file: str
    name: str
    project: str | None = None
    """The folder of the project whose file it is; None for a file of the user."""
    written: list[dict[str, Any]]
    """The entries as they were written, the last one last: several if it was installed again."""
    inputs: list[str] = []
    """The ids of the questions that were added with it."""
    replaced: list[Any] = []
    """What the first one replaced: one value, or none."""
    splices: list[Splice] = []
    """The changes of the text, in order."""
    new_file: bool = False
    """Whether the file was created."""

    def after(self, earlier: InstallRecord | None) -> InstallRecord:
        """Return the record of this installation and an earlier one of the same server, which it changed."""
        if earlier is None or not self.replaced or self.replaced[0] not in earlier.written:
            return self
        return msgspec.structs.replace(
            earlier,
            written=earlier.written + self.written,
            inputs=list(dict.fromkeys(earlier.inputs + self.inputs)),
            splices=earlier.splices + self.splices,
        )

    def __repr__(self) -> str:
        return f"InstallRecord({self.host!r}, {self.file!r}, {self.name!r}, ...)"  # the rest may contain secrets


def default_path() -> Path:
    """Return the file of the user's records: in the user's data folder, or in `ACCORD_INSTALLS`."""
    chosen = os.environ.get("ACCORD_INSTALLS")
    if chosen:
        return Path(chosen)
    from platformdirs import user_data_path

    return user_data_path("accord") / "installs.db"


class InstallRecords:
    """The records in the file `path`; by default that of the user. The methods raise `StoreError`."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or default_path()

    def all(self) -> list[InstallRecord]:
        """Return all records, in the order of installation. A program that never installed leaves no file."""
        if not self._path.exists():
            return []
        with self.transaction() as records:
            return records.all()

    @contextmanager
    def transaction(self) -> Iterator[RecordTransaction]:
        """Hold the lock; changes are stored at the end, unless an exception is raised."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            create_private_file(self._path)
            with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)) as db:
                db.execute("BEGIN IMMEDIATE")
                _create_table(db)
                yield RecordTransaction(db)
                db.execute("COMMIT")
        except (sqlite3.Error, OSError, msgspec.MsgspecError, UnicodeError) as exc:
            raise StoreError(f"the records of `accord install` in {self._path} cannot be used: {exc}") from exc


class RecordTransaction:
    """The records while the lock is held."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def all(self) -> list[InstallRecord]:
        """Return all records, in the order of installation."""
        rows = self._db.execute("SELECT record FROM installs ORDER BY id")
        return [msgspec.json.decode(row[0], type=InstallRecord) for row in rows]

    def get(self, file: Path, name: str) -> InstallRecord | None:
        """Return the record of a server in a file; None if accord did not install it."""
        row = self._db.execute("SELECT record FROM installs WHERE file = ? AND name = ?", (_key(file), name)).fetchone()
        return None if row is None else msgspec.json.decode(row[0], type=InstallRecord)

    def put(self, record: InstallRecord) -> None:
        """Store a record, and replace the one of the same file and name."""
        self.delete(Path(record.file), record.name)
        values = (_key(Path(record.file)), record.name, msgspec.json.encode(record))
        self._db.execute("INSERT INTO installs (file, name, record) VALUES (?, ?, ?)", values)

    def delete(self, file: Path, name: str) -> None:
        """Delete the record of a server in a file, if there is one."""
        self._db.execute("DELETE FROM installs WHERE file = ? AND name = ?", (_key(file), name))


def _key(file: Path) -> str:
    return os.path.abspath(file)


def _create_table(db: sqlite3.Connection) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > _VERSION:
        raise sqlite3.DatabaseError("it is of a newer version of accord")
    if version == 0:
        db.execute("CREATE TABLE installs (id INTEGER PRIMARY KEY, file TEXT, name TEXT, record BLOB NOT NULL)")
        db.execute("CREATE UNIQUE INDEX installs_by_name ON installs (file, name)")
        db.execute(f"PRAGMA user_version={_VERSION}")
