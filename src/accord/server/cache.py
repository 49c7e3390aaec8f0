"""How long a client may keep what it was told (2026-07-28, server, Caching)."""

from __future__ import annotations

from math import isfinite
from typing import Literal

import msgspec


class CacheHint(msgspec.Struct, frozen=True, kw_only=True):
    """`ttl`: seconds for which a result counts as fresh; 0 means that it is to be asked for each time.

    `scope`: "public" for what is the same for every user, so that shared caches may hand it to others; "private" for
    anything else. Raises `ValueError` for a time that is negative or no number.
    """

    ttl: float = 0
    scope: Literal["public", "private"] = "private"

    def __post_init__(self) -> None:
        if not (self.ttl >= 0 and isfinite(self.ttl)):
            raise ValueError(f"ttl is a number of seconds, 0 or more, not {self.ttl}")
        if self.scope not in ("public", "private"):
            raise ValueError(f'scope is "public" or "private", not {self.scope!r}')

    @property
    def ttl_ms(self) -> int:
        """The time in milliseconds, as it travels."""
        return round(self.ttl * 1000)


NO_CACHE = CacheHint()
"""What holds where nothing is said: "default of `0` (immediately stale)"."""
