"""Logins and client registrations in one SQLite file, which is also the lock between processes.

The file belongs to its owner only (mode 0600). It is in the user's data folder, or in `ACCORD_CREDENTIALS`. With
`accord[keyring]`, and a keyring that works, the secrets are there, and the file has the rest.

One process renews a login at a time: it holds a lease of the login, which expires if the process ends. The others wait
and read the renewed login. Requests to MCP servers need no lease.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec

from accord.auth.login import Login, LoginSecrets
from accord.auth.registration import ClientRegistration
from accord.auth.secret_keyring import SecretKeyring, system_keyring
from accord.errors import StoreError
from accord.store.database_thread import DatabaseThread
from accord.store.private_database import open_private_database

log: logging.Logger = logging.getLogger("accord")

Record = TypeVar("Record")

_LEASE_SECONDS = 30.0
"""After this time, a lease whose process does not renew it is free. A client waits longer for its connection
(`ClientLimits.connect_seconds`): after a process was killed, the next one waits, and does not fail."""
_POLL_SECONDS = 0.05
_VERSION = 1

_TABLES = (
    "CREATE TABLE logins (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID",
    """CREATE TABLE registrations (issuer TEXT, identity TEXT, record BLOB NOT NULL, PRIMARY KEY (issuer, identity))
    WITHOUT ROWID""",
    "CREATE TABLE leases (name TEXT PRIMARY KEY, owner TEXT NOT NULL, ends REAL NOT NULL) WITHOUT ROWID",
)

_RELEASE = "DELETE FROM leases WHERE name = ? AND owner = ?"

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

    `keyring` is whether secrets are stored in the keyring of the system instead, if there is one and `accord[keyring]`
    is installed. `clock` returns seconds since 1970. Its methods raise `StoreError`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        keyring: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = default_path() if path is None else Path(path)
        self._keyring: SecretKeyring | None = None
        self._looks_for_keyring = keyring and str(self._path) != ":memory:"
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

    async def __aenter__(self) -> CredentialStore:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- logins ------------------------------------------------------------------------------------------------

    async def load(self, name: str) -> Login | None:
        """Return the login of this name, or None. A record of another version of accord counts as none."""
        return (await self._load(name))[1]

    async def _load(self, name: str) -> tuple[bytes, Login | None]:
        """Return the record of a login, and the login."""
        record = await self._record(name)
        login = _readable(record, _decode_login)
        if login is None or not login.is_in_keyring:
            return record, login
        keyring = await self._system_keyring()
        if keyring is None:
            raise StoreError(
                f"the login at {name} is in the keyring, which is not available: install accord[keyring], or "
                f"log in again: accord login {name}"
            )
        found = await keyring.load(self._entry(name))
        # A login that was stored in half: its secrets are there, and the record is the one of before.
        is_of_another = found is not None and found.issuer not in ("", login.discovery.issuer)
        return record, None if found is None or is_of_another else login.with_secrets(found)

    async def _record(self, name: str) -> bytes:
        def read(db: sqlite3.Connection) -> bytes:
            row = db.execute("SELECT record FROM logins WHERE name = ?", (name,)).fetchone()
            return b"" if row is None else bytes(row[0])

        return await self._thread.run(read)

    async def save(self, name: str, login: Login) -> None:
        """Store a login, and replace the previous one of this name."""
        record = await self._store_secrets(name, login)
        await self._thread.run(lambda db: _execute(db, "INSERT OR REPLACE INTO logins VALUES (?, ?)", name, record))

    async def delete(self, name: str) -> None:
        """Delete a login. The keyring may have secrets of it that were renewed since, and stored in the file."""
        await self._thread.run(lambda db: _execute(db, "DELETE FROM logins WHERE name = ?", name))
        keyring = await self._system_keyring()
        if keyring is not None:
            await keyring.delete(self._entry(name))

    async def delete_refresh_token(self, name: str, refused: str) -> None:
        """Delete the refresh token of a login if it still is `refused`: another process may have renewed it."""
        before, login = await self._load(name)
        if login is None or login.tokens.refresh_token != refused:
            return
        tokens = msgspec.structs.replace(login.tokens, refresh_token=None)
        after = await self._store_secrets(name, msgspec.structs.replace(login, tokens=tokens))
        statement = "UPDATE logins SET record = ? WHERE name = ? AND record = ?"
        await self._thread.run(lambda db: _execute(db, statement, after, name, before))

    async def logins(self) -> dict[str, Login]:
        """Return all logins by name. Secrets in the keyring are left out."""

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

        client = await self._thread.run(read)
        if client is None or client.client_secret != "":
            return client
        keyring = await self._system_keyring()
        found = None if keyring is None else await keyring.load(self._entry(f"{identity} at {issuer}"))
        return None if found is None else msgspec.structs.replace(client, client_secret=found.client_secret)

    async def save_registration(self, identity: str, client: ClientRegistration) -> None:
        """Store a registration."""
        secrets = LoginSecrets(client_secret=client.client_secret)
        if client.client_secret is not None and await self._saved(f"{identity} at {client.issuer}", secrets):
            client = msgspec.structs.replace(client, client_secret="")
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

    # --- keyring -----------------------------------------------------------------------------------------------

    async def _system_keyring(self) -> SecretKeyring | None:
        if self._looks_for_keyring:
            self._looks_for_keyring, self._keyring = False, await system_keyring()
        return self._keyring

    async def _store_secrets(self, name: str, login: Login) -> bytes:
        """Store the secrets of a login in the keyring; return the record for the file, which has them if that fails."""
        stored = login.without_secrets() if await self._saved(name, login.secrets) else login
        return msgspec.json.encode(stored)

    async def _saved(self, name: str, secrets: LoginSecrets) -> bool:
        """Store secrets in the keyring; return whether they are there."""
        keyring = await self._system_keyring()
        if keyring is None:
            return False
        try:
            await keyring.save(self._entry(name), secrets)
        except StoreError as exc:
            log.warning("accord: %s; the secrets of %s are stored in %s", exc, name, self._path)
            return False
        return True

    def _entry(self, name: str) -> str:
        """Return the name in the keyring: two files may have logins of the same name."""
        return f"{name} in {self._path.absolute()}"

    # --- leases ------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def lease(self, name: str) -> AsyncIterator[None]:
        """Hold the lease of a login while its tokens are renewed: only one process at a time does so."""
        owner = secrets.token_hex(8)
        renewing: asyncio.Task[None] | None = None
        try:
            while not await self._thread.run(lambda db: self._take_lease(db, name, owner)):  # noqa: ASYNC110
                await asyncio.sleep(_POLL_SECONDS)  # another process releases it
            renewing = asyncio.get_running_loop().create_task(self._renew_lease(name, owner))
            yield
        finally:
            if renewing is not None:
                renewing.cancel()
            with suppress(StoreError):  # such as of a full disk: the lease then expires
                await asyncio.shield(self._thread.run(lambda db: _execute(db, _RELEASE, name, owner)))

    def _take_lease(self, db: sqlite3.Connection, name: str, owner: str) -> bool:
        now = self._clock()
        row = db.execute("SELECT owner, ends FROM leases WHERE name = ?", (name,)).fetchone()
        # The clock may be set back while a lease is held, but a lease that ends in a year is none.
        if row is not None and row[0] != owner and now < row[1] <= now + 2 * _LEASE_SECONDS:
            return False
        _execute(db, "INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", name, owner, now + _LEASE_SECONDS)
        return True

    async def _renew_lease(self, name: str, owner: str) -> None:
        while True:
            await asyncio.sleep(_LEASE_SECONDS / 4)
            await self._thread.run(lambda db: self._take_lease(db, name, owner))

    # --- file --------------------------------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        """Open the file. Raises `StoreError` or `sqlite3.Error`."""
        cure = "choose a file: ACCORD_CREDENTIALS=..."
        return open_private_database(self._path, "logins", _TABLES, _VERSION, cure=cure)

    def _explain(self, exc: sqlite3.Error) -> str:
        return f"logins could not be read from or stored in {self._path}: {exc}"


def _execute(db: sqlite3.Connection, statement: str, *parameters: object) -> None:
    db.execute(statement, parameters)


def _readable(data: bytes, decode: Callable[[bytes], Record]) -> Record | None:
    try:
        return decode(data)
    except msgspec.DecodeError:
        return None
