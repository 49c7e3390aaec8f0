"""The approvals of the user, in one SQLite file of the user: commands, definitions, grants.

The file is `host.db` in the user's data folder, or the file in `ACCORD_HOST_STATE`. Several processes may use it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec

from accord.store.database_thread import DatabaseThread
from accord.store.private_database import open_private_database

_VERSION = 1
_TABLES = (
    "CREATE TABLE commands (server TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE pins (server TEXT, kind TEXT, name TEXT, digest TEXT NOT NULL, definition BLOB NOT NULL,
    at REAL NOT NULL, PRIMARY KEY (server, kind, name)) WITHOUT ROWID""",
    "CREATE TABLE grants (id TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID",
    """CREATE TABLE approved_calls (principal TEXT, server TEXT, tool TEXT, arguments BLOB NOT NULL,
    PRIMARY KEY (principal, server, tool)) WITHOUT ROWID""",
)
MAX_ARGUMENTS = 100_000
"""Bytes up to which the arguments of the last approved call are to be stored."""

Record = TypeVar("Record")


def default_path() -> Path:
    """Return the file of the user's approvals."""
    chosen = os.environ.get("ACCORD_HOST_STATE")
    if chosen:
        return Path(chosen)
    from platformdirs import user_data_path

    return user_data_path("accord") / "host.db"


class Pin(msgspec.Struct, frozen=True):
    """An approved definition: its digest, the definition as JSON, and the time (seconds since 1970)."""

    kind: str
    """"tool", "prompt", "resource template", or "instructions"."""
    name: str
    digest: str
    definition: bytes
    at: float


class HostState:
    """The approvals in the file `path`, by default that of the user; `:memory:` has no file.

    `server` is the key of a configured server: the file of its configuration and its name. The methods raise
    `StoreError`.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path: Path = default_path() if path is None else Path(path)
        self._thread = DatabaseThread(self._connect, self._explain)

    def _connect(self) -> sqlite3.Connection:
        cure = "choose a file: ACCORD_HOST_STATE=..."
        return open_private_database(self.path, "approvals", _TABLES, _VERSION, cure=cure)

    def _explain(self, exc: sqlite3.Error) -> str:
        return f"approvals could not be read from or stored in {self.path}: {exc}"

    async def __aenter__(self) -> HostState:
        await self._thread.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._thread.stop()

    # --- commands ----------------------------------------------------------------------------------------------

    async def command(self, server: str) -> str | None:
        """Return the digest of the command that was approved for a server, or None."""
        query = "SELECT digest FROM commands WHERE server = ?"
        row = await self._thread.run(lambda db: db.execute(query, (server,)).fetchone())
        return None if row is None else str(row[0])

    async def approve_command(self, server: str, digest: str) -> None:
        """Store the approval of a command, in place of an earlier one."""
        await self._execute("INSERT OR REPLACE INTO commands VALUES (?, ?)", server, digest)

    # --- definitions -------------------------------------------------------------------------------------------

    async def pins(self, server: str) -> dict[tuple[str, str], Pin]:
        """Return the approved definitions of a server, by kind and name."""
        query = "SELECT kind, name, digest, definition, at FROM pins WHERE server = ? ORDER BY kind, name"
        rows = await self._thread.run(lambda db: db.execute(query, (server,)).fetchall())
        return {(row[0], row[1]): Pin(*row) for row in rows}

    async def pinned_servers(self) -> list[str]:
        """Return the keys of the servers that have approved definitions."""
        query = "SELECT DISTINCT server FROM pins ORDER BY server"
        return await self._thread.run(lambda db: [str(row[0]) for row in db.execute(query).fetchall()])

    async def approve_definitions(self, server: str, pins: Iterable[Pin]) -> None:
        """Store approved definitions, in place of earlier ones of the same kind and name."""
        rows = [(server, pin.kind, pin.name, pin.digest, pin.definition, pin.at) for pin in pins]
        statement = "INSERT OR REPLACE INTO pins VALUES (?, ?, ?, ?, ?, ?)"
        await self._thread.run(lambda db: db.executemany(statement, rows))

    # --- grants ------------------------------------------------------------------------------------------------

    async def grants(self, decode: Callable[[bytes], Record]) -> list[Record]:
        """Return the stored grants."""
        rows = await self._thread.run(lambda db: db.execute("SELECT record FROM grants ORDER BY id").fetchall())
        return [decode(row[0]) for row in rows]

    async def add_grant(self, id: str, record: bytes) -> None:
        """Store a grant."""
        await self._execute("INSERT OR REPLACE INTO grants VALUES (?, ?)", id, record)

    async def revoke_grant(self, id: str) -> bool:
        """Delete a grant; return whether there was one."""
        statement = "DELETE FROM grants WHERE id = ?"
        return await self._thread.run(lambda db: db.execute(statement, (id,)).rowcount > 0)

    # --- calls -------------------------------------------------------------------------------------------------

    async def last_arguments(self, principal: str, server: str, tool: str) -> bytes | None:
        """Return the arguments of the principal's last approved call of a tool as JSON, or None."""
        query = "SELECT arguments FROM approved_calls WHERE principal = ? AND server = ? AND tool = ?"
        row = await self._thread.run(lambda db: db.execute(query, (principal, server, tool)).fetchone())
        return None if row is None else bytes(row[0])

    async def set_last_arguments(self, principal: str, server: str, tool: str, arguments: bytes) -> None:
        """Store the arguments of an approved call, to show the difference at the next one."""
        statement = "INSERT OR REPLACE INTO approved_calls VALUES (?, ?, ?, ?)"
        await self._execute(statement, principal, server, tool, arguments)

    async def _execute(self, statement: str, *parameters: object) -> None:
        await self._thread.run(lambda db: db.execute(statement, parameters))
