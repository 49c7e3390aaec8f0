"""`TokenCache`: the principals of tokens that were verified before."""

from __future__ import annotations

import os
import time
from hashlib import blake2b

from accord.server.core.principal import LEEWAY_SECONDS, Principal

TOKENS = 10_000
"""Limit of cached tokens."""
TOKENS_BYTES = 10 << 20
"""Limit of the claims of cached tokens, in bytes."""


class TokenCache:
    """Principals by the digest of their token, under a random key of this process; the first ones are dropped when the
    cache is full. An entry ends with its token.
    """

    __slots__ = ("_digest", "_entries", "_size")

    def __init__(self) -> None:
        self._digest = blake2b(key=os.urandom(32), digest_size=20)
        self._entries: dict[bytes, tuple[Principal, float, int]] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._entries)

    def digest(self, token: bytes) -> bytes:
        """Return the key of a token."""
        digest = self._digest.copy()
        digest.update(token)
        return digest.digest()

    def get(self, key: bytes) -> Principal | None:
        """Return the principal of a token, or None if it is not cached or not accepted any more."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if time.time() < entry[1]:
            return entry[0]
        self.drop(key)
        return None

    def put(self, key: bytes, principal: Principal, size: int, until: float | None = None) -> None:
        """Cache a principal, whose claims have `size` bytes, until its token is not accepted any more, and not beyond
        the time `until`.
        """
        expiry = (principal.expires_at or 0.0) + LEEWAY_SECONDS if until is None else until
        self.drop(key)
        self._entries[key] = (principal, expiry, size)
        self._size += size
        while len(self._entries) > TOKENS or self._size > TOKENS_BYTES:
            self.drop(next(iter(self._entries)))

    def clear(self) -> None:
        """Drop all entries."""
        self._entries.clear()
        self._size = 0

    def drop(self, key: bytes) -> None:
        """Drop the entry of a token, if there is one."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size -= entry[2]
