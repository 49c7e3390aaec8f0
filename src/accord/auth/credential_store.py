"""Logins and client registrations in one SQLite file, which is also the lock between processes.

The file belongs to its owner only (mode 0600). It is in the user's data folder, or in `ACCORD_CREDENTIALS`.

One process renews a login at a time: it holds a lease of the login, which expires if the process ends. The others wait
and read the renewed login. Requests to MCP servers need no lease.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from accord.auth.discovery import Discovery
from accord.auth.registration import ClientRegistration
from accord.auth.tokens import Tokens
from accord.errors import StoreError
from accord.store.database_thread import DatabaseThread

Record = TypeVar("Record")

_LEASE_SECONDS = 60.0
"""After this time, a lease whose process does not renew it is free."""
_POLL_SECONDS = 0.05
_BUSY_SECONDS = 10.0
_VERSION = 1

_TABLES = (
    "CREATE TABLE logins (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID",
    """CREATE TABLE registrations (issuer TEXT, identity TEXT, record BLOB NOT NULL, PRIMARY KEY (issuer, identity))
    WITHOUT ROWID""",
    "CREATE TABLE leases (name TEXT PRIMARY KEY, owner TEXT NOT NULL, ends REAL NOT NULL) WITHOUT ROWID",
    f"PRAGMA user_version={_VERSION}",
)


class Login(msgspec.Struct, frozen=True):
    """A login at one MCP server: its authorization server, the client there, and the tokens."""

    discovery: Discovery
    client: ClientRegistration
    tokens: Tokens
    assume_pkce: bool = False
    """Whether the user has chosen S256 without a statement of the authorization server."""
    chosen_issuer: bool = False
    """Whether the user has chosen the issuer."""


_decode_login = msgspec.json.Decoder(Login).decode
_decode_registration = msgspec.json.Decoder(ClientRegistration).decode


def default_path() -> Path:
    """Return the file of the user's logins."""
    chosen = os.environ.get("ACCORD_CREDENTIALS")
    if chosen:
        return Path(chosen)
    from platformdirs import user_data_path

    return user_data_path("accord") / "credentials.db"


class CredentialStore:
    """The store of logins in the file `path`; by default that of the user. `:memory:` is a store without a file.

    `clock` returns seconds since 1970. Its methods raise `StoreError`.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._path = default_path() if path is None else Path(path)
        self._clock = clock
        self._thread = DatabaseThread(self._connect, self._explain)

    @property
    def exists(self) -> bool:
        """Whether there may be a login: a program that never logged in leaves no file."""
        return str(self._path) == ":memory:" or self._path.exists()

    async def open(self) -> None:
        """Open the file, and create it if necessary."""
        await self._thread.start()

    async def close(self) -> None:
        """Close the file, once it was closed as often as it was opened."""
        await self._thread.stop()

    # --- logins ------------------------------------------------------------------------------------------------

    async def load(self, name: str) -> Login | None:
        """Return the login of this name, or None. A record of another version of accord counts as none."""

        def read(db: sqlite3.Connection) -> Login | None:
            row = db.execute("SELECT record FROM logins WHERE name = ?", (name,)).fetchone()
            return None if row is None else _readable(row[0], _decode_login)

        return await self._thread.run(read)

    async def save(self, name: str, login: Login) -> None:
        """Store a login, and replace the previous one of this name."""
        record = msgspec.json.encode(login)
        await self._thread.run(lambda db: _execute(db, "INSERT OR REPLACE INTO logins VALUES (?, ?)", name, record))

    async def delete(self, name: str) -> None:
        """Delete a login."""
        await self._thread.run(lambda db: _execute(db, "DELETE FROM logins WHERE name = ?", name))

    async def delete_refresh_token(self, name: str, refused: str) -> None:
        """Delete the refresh token of a login if it still is `refused`: another process may have renewed it."""

        def delete(db: sqlite3.Connection) -> None:
            row = db.execute("SELECT record FROM logins WHERE name = ?", (name,)).fetchone()
            login = None if row is None else _readable(row[0], _decode_login)
            if login is not None and login.tokens.refresh_token == refused:
                tokens = msgspec.structs.replace(login.tokens, refresh_token=None)
                record = msgspec.json.encode(msgspec.structs.replace(login, tokens=tokens))
                _execute(db, "UPDATE logins SET record = ? WHERE name = ?", record, name)

        await self._thread.run(delete)

    async def logins(self) -> dict[str, Login]:
        """Return all logins by name."""

        def read(db: sqlite3.Connection) -> dict[str, Login]:
            rows = db.execute("SELECT name, record FROM logins ORDER BY name").fetchall()
            found = {name: _readable(record, _decode_login) for name, record in rows}
            return {name: login for name, login in found.items() if login is not None}

        return await self._thread.run(read)

    # --- registrations -----------------------------------------------------------------------------------------

    async def load_registration(self, issuer: str, identity: str) -> ClientRegistration | None:
        """Return the client that registered itself at an issuer, or None."""

        def read(db: sqlite3.Connection) -> ClientRegistration | None:
            query = "SELECT record FROM registrations WHERE issuer = ? AND identity = ?"
            row = db.execute(query, (issuer, identity)).fetchone()
            return None if row is None else _readable(row[0], _decode_registration)

        return await self._thread.run(read)

    async def save_registration(self, identity: str, client: ClientRegistration) -> None:
        """Store a registration."""
        record = msgspec.json.encode(client)
        statement = "INSERT OR REPLACE INTO registrations VALUES (?, ?, ?)"
        await self._thread.run(lambda db: _execute(db, statement, client.issuer, identity, record))

    async def delete_registration(self, issuer: str, identity: str) -> None:
        """Delete a registration that the issuer does not know any more."""
        statement = "DELETE FROM registrations WHERE issuer = ? AND identity = ?"
        await self._thread.run(lambda db: _execute(db, statement, issuer, identity))

    async def issuers(self) -> list[str]:
        """Return the issuers with a registration."""
        query = "SELECT DISTINCT issuer FROM registrations"
        return await self._thread.run(lambda db: [row[0] for row in db.execute(query).fetchall()])

    # --- leases ------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def lease(self, name: str) -> AsyncIterator[None]:
        """Hold the lease of a login while its tokens are renewed: only one process at a time does so."""
        owner = secrets.token_hex(8)
        while not await self._thread.run(lambda db: self._take_lease(db, name, owner)):  # noqa: ASYNC110
            await asyncio.sleep(_POLL_SECONDS)  # another process releases it
        renewing = asyncio.get_running_loop().create_task(self._renew_lease(name, owner))
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.shield(
                self._thread.run(
                    lambda db: _execute(db, "DELETE FROM leases WHERE name = ? AND owner = ?", name, owner)
                )
            )

    def _take_lease(self, db: sqlite3.Connection, name: str, owner: str) -> bool:
        now = self._clock()
        row = db.execute("SELECT owner, ends FROM leases WHERE name = ?", (name,)).fetchone()
        if row is not None and row[0] != owner and now < row[1] <= now + _LEASE_SECONDS:
            return False
        _execute(db, "INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", name, owner, now + _LEASE_SECONDS)
        return True

    async def _renew_lease(self, name: str, owner: str) -> None:
        while True:
            await asyncio.sleep(_LEASE_SECONDS / 4)
            await self._thread.run(lambda db: self._take_lease(db, name, owner))

    # --- file --------------------------------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        """Open the file, private from its creation on. Raises `StoreError` or `sqlite3.Error`."""
        if str(self._path) != ":memory:":
            self._create_private()
        db = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            db.execute("PRAGMA secure_delete=ON")  # deleted tokens do not remain in the file
            db.execute("BEGIN IMMEDIATE")
            version = int(db.execute("PRAGMA user_version").fetchone()[0])
            if version == 0 and not db.execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in _TABLES:
                    db.execute(statement)
            elif version != _VERSION:
                raise StoreError(f"{self._path} is no store of logins of this version of accord; move it away")
            db.execute("COMMIT")
        except BaseException:
            db.close()
            raise
        return db

    def _create_private(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            if os.name == "posix" and (mode := self._path.stat().st_mode & 0o077):
                raise StoreError(
                    f"{self._path} can be read by others (mode {mode:03o} for them): run chmod 600 {self._path}, "
                    "and log in again if others use this machine"
                ) from None
        except OSError as exc:
            raise StoreError(
                f"logins cannot be stored in {self._path}: {exc.strerror}; choose a file: ACCORD_CREDENTIALS=..."
            ) from exc

    def _explain(self, exc: sqlite3.Error) -> str:
        return f"logins could not be read from or stored in {self._path}: {exc}"


def _execute(db: sqlite3.Connection, statement: str, *parameters: object) -> None:
    db.execute(statement, parameters)


def _readable(data: bytes, decode: Callable[[bytes], Record]) -> Record | None:
    try:
        return decode(data)
    except msgspec.DecodeError:
        return None
