"""A SQLite file that belongs to its owner only, opened for a `DatabaseThread`."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from accord.errors import StoreError
from accord.store.database_thread import create_private_file

_BUSY_SECONDS = 10.0


def open_private_database(
    path: Path, what: str, tables: Sequence[str], version: int, *, cure: str = "choose another file"
) -> sqlite3.Connection:
    """Open the file, private from its creation on, and create `tables` in a new one. `:memory:` has no file.

    `what` names the contents in errors ("logins"), and `cure` says what to do if there can be no file. Raises
    `StoreError` for a file that cannot be created, that others can read, or that is of another `version` or program;
    and `sqlite3.Error`.
    """
    if str(path) != ":memory:":
        ensure_private_file(path, what, cure)
    db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        db.execute("PRAGMA secure_delete=ON")  # deleted secrets do not remain in the file
        db.execute("BEGIN IMMEDIATE")
        found = int(db.execute("PRAGMA user_version").fetchone()[0])
        if found == 0 and not db.execute("SELECT 1 FROM sqlite_master").fetchone():
            for statement in tables:
                db.execute(statement)
            db.execute(f"PRAGMA user_version={version}")
        elif found != version or not _has_tables(db, tables):
            raise StoreError(f"{path} has no {what} of this version of accord: move it away, or {cure}")
        db.execute("COMMIT")
    except BaseException:
        db.close()
        raise
    return db


def _has_tables(db: sqlite3.Connection, tables: Sequence[str]) -> bool:
    """Return whether a file has these tables: many programs use the same numbers of versions."""
    found = {" ".join(sql.split()) for (sql,) in db.execute("SELECT sql FROM sqlite_master WHERE type = 'table'")}
    return found.issuperset(" ".join(each.split()) for each in tables if each.startswith("CREATE TABLE "))


def ensure_private_file(path: Path, what: str, cure: str) -> None:
    """Create a file, and its folder, for its owner only, unless it exists. Raises `StoreError` as above."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        is_new = create_private_file(path)
        mode = 0 if is_new or os.name != "posix" else path.stat().st_mode & 0o077
    except OSError as exc:
        raise StoreError(f"{what} cannot be stored in {path}: {exc.strerror}; {cure}") from exc
    if mode:
        raise StoreError(
            f"{path} can be read by others (mode {mode:03o} for them): run chmod 600 {path}, "
            "and renew its secrets if others use this machine"
        )
