"""How long to wait before a server that died is started again: exponential backoff, with full jitter."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec


class Reconnect(msgspec.Struct, frozen=True, kw_only=True):
    """How a client opens its connection again when it dies; times in seconds.

    The pause before an attempt is random, between nothing and a bound that begins with `first_seconds` and doubles
    up to `most_seconds`. After `attempts` in a row the client gives up; a connection that has lived for
    `settled_seconds` ends the row.
    """

    attempts: int = 8
    first_seconds: float = 0.1
    most_seconds: float = 30
    settled_seconds: float = 60


class Backoff:
    """How long to wait before the next attempt. `pick(0, bound)` gives a number between the two."""

    def __init__(self, reconnect: Reconnect, pick: Callable[[float, float], float] = random.uniform) -> None:
        self._reconnect = reconnect
        self._pick = pick
        self._row = 0

    def after(self, lived: float) -> float | None:
        """Seconds to wait, after a connection that lived for `lived` seconds (0: it never opened); None: give up."""
        if lived >= self._reconnect.settled_seconds:
            self._row = 0
        if self._row >= self._reconnect.attempts:
            return None
        bound = min(self._reconnect.most_seconds, self._reconnect.first_seconds * 2.0 ** min(self._row, 64))
        self._row += 1
        return self._pick(0, bound)
