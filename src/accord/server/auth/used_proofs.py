"""`UsedProofs`: the proofs of possession that were used before, each of which is accepted once (RFC 9449, 11.1).

A proof is stored for at least `PROOF_SECONDS`, after which it is not valid any more. Each key has a limit of its own,
so that a client with many proofs does not displace those of others. Beyond the limit, the older proofs of the key are
dropped, and proofs as old as they are refused.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b

PROOF_SECONDS = 120.0
"""The time between the first and the last moment at which a proof may be accepted."""
PROOFS_PER_KEY = 16_384
"""Proofs of one key after which the older half of them is dropped."""
PROOFS = 131_072
"""All proofs, beyond which the older half of those of keys with more than the average are dropped."""
KEYS = 32_768
"""Limit of keys; the least recently used ones are dropped."""


class _KeyProofs:
    """The proofs of one key, in two generations."""

    __slots__ = ("began", "floor", "newest", "older", "older_newest", "recent", "used")

    def __init__(self, now: float) -> None:
        self.recent: set[int] = set()
        self.older: set[int] = set()
        self.newest = self.older_newest = self.floor = float("-inf")
        self.began = self.used = now

    def rotate(self, now: float) -> int:
        """Drop the older generation; return the number of its proofs."""
        dropped = len(self.older)
        self.older, self.older_newest = self.recent, self.newest
        self.recent, self.newest, self.began = set(), float("-inf"), now
        return dropped

    def rotate_early(self, now: float) -> int:
        """Drop proofs that may still be valid: none that is as old as they are is accepted any more."""
        self.floor = max(self.floor, self.older_newest)
        return self.rotate(now)


class UsedProofs:
    """The proofs of all keys. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._keys: OrderedDict[str, _KeyProofs] = OrderedDict()
        self._size = 0
        self._shrink_at = PROOFS

    def __len__(self) -> int:
        return self._size

    def add(self, thumbprint: str, id: str, issued_at: float) -> bool:
        """Remember a proof of a key by its `jti`; return whether it is accepted: it is new, and not too old."""
        now = self._clock()
        self._forget(now)
        proofs = self._keys.get(thumbprint)
        if proofs is None:
            proofs = self._keys[thumbprint] = _KeyProofs(now)
        digest = int.from_bytes(blake2b(id.encode(), digest_size=8).digest())
        if issued_at <= proofs.floor or digest in proofs.recent or digest in proofs.older:
            return False
        if now - proofs.began >= PROOF_SECONDS:
            self._size -= proofs.rotate(now)
        elif len(proofs.recent) >= PROOFS_PER_KEY:
            self._size -= proofs.rotate_early(now)
        proofs.recent.add(digest)
        proofs.newest, proofs.used = max(proofs.newest, issued_at), now
        self._keys.move_to_end(thumbprint)
        self._size += 1
        if self._size > self._shrink_at:
            self._shrink(now)
        return True

    def _forget(self, now: float) -> None:
        """Drop the keys whose proofs have all become invalid, and those beyond the limit."""
        while self._keys:
            thumbprint, proofs = next(iter(self._keys.items()))
            if now - proofs.used < PROOF_SECONDS and len(self._keys) < KEYS:
                return
            del self._keys[thumbprint]
            self._size -= len(proofs.recent) + len(proofs.older)

    def _shrink(self, now: float) -> None:
        average = self._size / len(self._keys)
        for proofs in self._keys.values():
            if len(proofs.recent) + len(proofs.older) >= average:
                self._size -= proofs.rotate_early(now)
        self._shrink_at = max(PROOFS, self._size + PROOFS // 8)
