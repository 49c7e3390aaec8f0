"""Authorizations in progress: each is stored once, and taken once."""

from __future__ import annotations

import sqlite3
from typing import TypeVar

import msgspec

from accord.server.auth.proxy.authorization import PENDING_SECONDS
from accord.server.auth.proxy.database import digest_of, drop_expired, drop_oldest, drop_part
from accord.server.auth.proxy.sealing import Sealer, UnsealError

Record = TypeVar("Record")

PENDING = 10_000
"""Limit of authorizations in progress; beyond it, the oldest ones of the addresses that have the most are dropped."""
PENDING_PER_ADDRESS = 500
"""Limit of authorizations in progress of one address; its oldest is dropped."""


def save_pending(
    db: sqlite3.Connection, sealer: Sealer, secret: str, record: msgspec.Struct, account: str, now: float
) -> None:
    """Store a record under the digest of a random secret, and drop others beyond the limits."""
    drop_expired(db, "pending", now)
    drop_oldest(db, "pending", "TRUE", account, PENDING_PER_ADDRESS)
    if db.execute("SELECT COUNT(*) FROM pending").fetchone()[0] >= PENDING:
        drop_part(db, "pending", "TRUE", PENDING)
    id = digest_of(secret)
    sealed = sealer.seal(msgspec.json.encode(record), id)
    db.execute("INSERT INTO pending VALUES (?, ?, ?, ?)", (id, sealed, account, now + PENDING_SECONDS))


def take_pending(
    db: sqlite3.Connection, sealer: Sealer, secret: str, type: type[Record], now: float, *, seconds: float = 0
) -> Record | None:
    """Return a record and delete it, or let it expire in `seconds`; None if there is none of this type, or it has
    expired.
    """
    id = digest_of(secret)
    row = db.execute(
        "UPDATE pending SET expires = MIN(expires, ?) WHERE id = ? AND expires > ? RETURNING sealed",
        (now + seconds, id, now),
    ).fetchone()
    if not seconds:
        db.execute("DELETE FROM pending WHERE id = ?", (id,))
    if row is None:
        return None
    try:
        return msgspec.json.decode(sealer.open(row[0], id), type=type)
    except (UnsealError, msgspec.DecodeError):
        return None
