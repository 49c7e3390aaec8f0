"""The database of an `OAuthProxy`: clients, authorizations in progress, codes, grants and tokens in one SQLite file.

The file belongs to its owner only (mode 0600). Tokens and codes are stored as digests; what has to be read again is
sealed. Several processes of one machine may share the file.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypeVar
from weakref import WeakSet

from accord.errors import StoreError
from accord.server.auth.proxy.sealing import Sealer, UnsealError, load_key_file
from accord.store.database_thread import DatabaseThread, switch_to_wal
from accord.store.private_database import ensure_private_file

T = TypeVar("T")

_APPLICATION = 0x41434F50  # "ACOP"
_VERSION = 1
_BUSY_SECONDS = 10.0
_CHECK = b"accord oauth proxy"

_TABLES = (
    "CREATE TABLE key_check (sealed BLOB NOT NULL)",
    """CREATE TABLE clients (id TEXT PRIMARY KEY, record BLOB NOT NULL, account TEXT NOT NULL, used INTEGER NOT NULL,
    expires REAL NOT NULL) WITHOUT ROWID""",
    "CREATE INDEX clients_by_account ON clients (used, account, expires)",
    "CREATE INDEX clients_by_age ON clients (expires)",
    """CREATE TABLE pending (id BLOB PRIMARY KEY, sealed BLOB NOT NULL, account TEXT NOT NULL, expires REAL NOT NULL)
    WITHOUT ROWID""",
    "CREATE INDEX pending_by_account ON pending (account, expires)",
    "CREATE INDEX pending_by_age ON pending (expires)",
    """CREATE TABLE grants (id BLOB PRIMARY KEY, client TEXT NOT NULL, principal TEXT NOT NULL, record BLOB NOT NULL,
    upstream BLOB NOT NULL, renewing REAL NOT NULL DEFAULT 0, expires REAL NOT NULL) WITHOUT ROWID""",
    "CREATE INDEX grants_by_principal ON grants (principal, expires)",
    "CREATE INDEX grants_by_client ON grants (client)",
    "CREATE INDEX grants_by_age ON grants (expires)",
    """CREATE TABLE codes (digest BLOB PRIMARY KEY, grant_id BLOB NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
    record BLOB NOT NULL, used INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID""",
    "CREATE INDEX codes_by_grant ON codes (grant_id)",
    """CREATE TABLE tokens (digest BLOB PRIMARY KEY, grant_id BLOB NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
    kind TEXT NOT NULL, expires REAL NOT NULL, superseded REAL, successor BLOB) WITHOUT ROWID""",
    "CREATE INDEX tokens_by_grant ON tokens (grant_id, kind, expires)",
    f"PRAGMA application_id={_APPLICATION}",
    f"PRAGMA user_version={_VERSION}",
)


def digest_of(secret: str) -> bytes:
    """Return the digest of a random token, code or state, which is all that is stored of it."""
    return sha256(secret.encode(errors="replace")).digest()


class ProxyDatabase:
    """The database in the file `path`; `:memory:` is one without a file. Without `secrets`, the key is in a file beside
    it. Its methods raise `StoreError`.
    """

    def __init__(self, path: Path, secrets: Sequence[bytes] | None) -> None:
        self._path = path
        self._secrets = secrets
        self._thread = DatabaseThread(self._connect, self._explain)
        self._loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
        self.sealer: Sealer | None = None
        """Present once the database is open."""

    def __repr__(self) -> str:
        return f"ProxyDatabase({str(self._path)!r})"

    async def run(self, work: Callable[[sqlite3.Connection, Sealer], T]) -> T:
        """Run `work` in a transaction, and open the database for this event loop if necessary."""
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            await self._thread.start()
            if loop in self._loops:  # another task has opened it meanwhile
                await self._thread.stop()
            self._loops.add(loop)
        return await self._thread.run(lambda db: work(db, self._opened_sealer()))

    async def close(self) -> None:
        """Close the database, once every event loop that uses it has closed it."""
        loop = asyncio.get_running_loop()
        if loop in self._loops:
            self._loops.discard(loop)
            await self._thread.stop()

    def _opened_sealer(self) -> Sealer:
        assert self.sealer is not None
        return self.sealer

    # --- in the thread -----------------------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        """Open the file, private from its creation on. Raises `StoreError` or `sqlite3.Error`."""
        is_file = str(self._path) != ":memory:"
        if is_file:
            ensure_private_file(self._path, "logins", "choose a file: database=...")
        self.sealer = self._make_sealer(is_file)
        db = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            db.execute("PRAGMA secure_delete=ON")  # deleted records do not remain in the file
            db.execute("PRAGMA foreign_keys=ON")
            self._create_tables(db, self.sealer)
            switch_to_wal(db, _BUSY_SECONDS)  # a file of another program is not switched
            db.execute("PRAGMA synchronous=FULL")  # a rotated token must not come back after a loss of power
        except BaseException:
            db.close()
            raise
        return db

    def _make_sealer(self, is_file: bool) -> Sealer:
        if self._secrets is not None:
            return Sealer(self._secrets)
        return Sealer([load_key_file(self._path.with_name(f"{self._path.name}.key")) if is_file else os.urandom(32)])

    def _create_tables(self, db: sqlite3.Connection, sealer: Sealer) -> None:
        db.execute("BEGIN IMMEDIATE")
        marks = tuple(int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version"))
        if marks == (0, 0) and not db.execute("SELECT 1 FROM sqlite_master").fetchone():
            for statement in _TABLES:
                db.execute(statement)
            db.execute("INSERT INTO key_check VALUES (?)", (sealer.seal(_CHECK, b"key_check"),))
        elif marks != (_APPLICATION, _VERSION):
            raise StoreError(f"{self._path} is no database of an OAuth proxy of this version of accord; move it away")
        try:
            sealer.open(db.execute("SELECT sealed FROM key_check").fetchone()[0], b"key_check")
        except UnsealError:
            raise StoreError(
                f"{self._path} was sealed with another key: give that key (key=), or move the file away; "
                "then all users log in again"
            ) from None
        db.execute("UPDATE key_check SET sealed = ?", (sealer.seal(_CHECK, b"key_check"),))
        db.execute("COMMIT")

    def _explain(self, exc: sqlite3.Error) -> str:
        return f"logins could not be read from or stored in {self._path}: {exc}"


# --- bounded tables --------------------------------------------------------------------------------------------------

_EXPIRED = 100
"""The most expired rows that are deleted at once: the deletion of a whole table would delay all other work."""
_PARTS = 100
"""A full table loses one part in so many at once: finding the rows takes much longer than deleting them."""


def drop_expired(db: sqlite3.Connection, table: str, now: float) -> None:
    """Delete some expired rows of a table."""
    expired = f"SELECT id FROM {table} WHERE expires <= ? ORDER BY expires LIMIT {_EXPIRED}"
    db.execute(f"DELETE FROM {table} WHERE id IN ({expired})", (now,))


def drop_oldest(db: sqlite3.Connection, table: str, condition: str, account: str, limit: int) -> None:
    """Delete the oldest row of an account that has `limit` rows which meet a condition."""
    rows = f"FROM {table} WHERE {condition} AND account = ?"
    if db.execute(f"SELECT COUNT(*) {rows}", (account,)).fetchone()[0] >= limit:
        db.execute(f"DELETE FROM {table} WHERE id = (SELECT id {rows} ORDER BY expires LIMIT 1)", (account,))


def drop_part(db: sqlite3.Connection, table: str, condition: str, limit: int) -> bool:
    """Delete part of the rows that meet a condition, of a table with `limit` rows, each the oldest of the account that
    has the most; return whether there were any.
    """
    places = (
        "SELECT id, expires, ROW_NUMBER() OVER (PARTITION BY account ORDER BY expires DESC) AS place "
        f"FROM {table} WHERE {condition}"
    )
    first = f"SELECT id FROM ({places}) ORDER BY place DESC, expires LIMIT {share_of(limit)}"
    return db.execute(f"DELETE FROM {table} WHERE id IN ({first})").rowcount > 0


def share_of(limit: int) -> int:
    """Return how many rows a full table with this limit loses at once."""
    return max(1, limit // _PARTS)
