"""How often something may happen: so many a second, and so many at once.

One number is remembered: when the next would be due if all kept an even pace (the generic cell rate algorithm). What
comes before it is due is let through while it is early by no more than a burst. `Pace` is the arithmetic, for those
who keep the number themselves; `RateLimiter` keeps it. Neither has a clock: times are seconds of the caller's, from any
start.

Requests in flight that several sessions have together, and the bound on them.
"""

from __future__ import annotations

from math import inf

from accord.errors import InternalError

_ROUNDING_TOLERANCE = 0.01
"""The part of an interval by which anything may be early: rounding shall not take the last one out of a burst."""


class Pace:
    """`per_second` on average, `burst` at once (by default one second's worth, at least 1).

    `per_second=None` is no bound, and 0 is never. Raises `ValueError` for a negative rate or a burst below 1.
    """

    __slots__ = ("_early", "_exact", "_interval")

    def __init__(self, per_second: float | None, burst: float | None = None) -> None:
        if burst is None:
            burst = max(1, per_second or 1)
        if not (per_second is None or per_second >= 0) or not burst >= 1:
            raise ValueError(f"a rate must be 0 or more and a burst 1 or more, not {per_second} and {burst}")
        if per_second is None or per_second == inf:
            self._interval, self._exact, self._early = 0.0, inf, inf
        elif per_second == 0:
            self._interval, self._exact, self._early = inf, -inf, -inf
        else:
            self._interval = 1 / per_second
            self._exact = (burst - 1) * self._interval
            self._early = self._exact + _ROUNDING_TOLERANCE * self._interval

    @property
    def longest(self) -> float:
        """Seconds from now until the next is due, at most, whatever has happened."""
        return self._early + self._interval

    def step(self, due: float, now: float) -> float | None:
        """When the next is due after one more at `now`, if one was due at `due`; None when it may not happen yet.

        `due` is `-inf` at the start.
        """
        if due < now:
            due = now
        return None if due - now > self._early else due + self._interval

    def wait(self, due: float, now: float) -> float:
        """Seconds from `now` until one more may happen: 0 when it may, `inf` when it never will."""
        early = max(due, now) - now
        return 0 if early <= self._early else early - self._exact


class RateLimiter:
    """A bound on how often something may happen, and what it remembers. Arguments are those of `Pace`."""

    __slots__ = ("_due", "_pace")

    def __init__(self, per_second: float | None, burst: float | None = None) -> None:
        self._pace = Pace(per_second, burst)
        self._due = -inf

    def allow(self, now: float) -> bool:
        """Whether it may happen now; if so, it is counted."""
        due = self._pace.step(self._due, now)
        if due is None:
            return False
        self._due = due
        return True

    def delay(self, now: float) -> float:
        """Seconds until `allow` will allow the next: 0 when it does now, `inf` when it never will."""
        return self._pace.wait(self._due, now)


MANY = 256
"""Requests in flight from which on a part is refused more where the whole has too many: those with few go on."""


FEW_BATCH_BYTES = 1 << 20
"""Bytes of answers in batches up to which a part is refused nothing where the whole has too many."""


class RequestLoad:
    """The requests in flight of all sessions that share it: at most `most`, and no more than `whole` has room for.

    The answers that wait for the rest of their batch have at most `batch_bytes`.
    """

    __slots__ = ("__weakref__", "batch_bytes", "held_bytes", "most", "running", "whole")

    def __init__(self, most: int, batch_bytes: int, whole: RequestLoad | None = None) -> None:
        self.most: int = most
        self.batch_bytes: int = batch_bytes
        self.whole: RequestLoad | None = whole
        self.running: int = 0
        """Requests in flight."""
        self.held_bytes: int = 0
        """Bytes of answers that wait for the rest of their batch."""

    def check(self) -> None:
        """Raise `InternalError` where there is no room for one request more."""
        whole = self.whole
        if self.running >= self.most:
            whose = "yours" if whole is None else "this address"
            raise InternalError(f"too many requests in flight of {whose}: the limit is {self.most:,}")
        if whole is not None and self.running >= MANY and whole.running >= whole.most:
            raise InternalError("too many requests in flight of all clients together; try again later")

    def add(self, count: int) -> None:
        """Count requests that begin, or with a negative number those that end."""
        self.running += count
        if self.whole is not None:
            self.whole.running += count

    def check_batch_bytes(self, size: int) -> None:
        """Raise `InternalError` where there is no room for one answer more that waits for the rest of its batch."""
        whole, held = self.whole, self.held_bytes + size
        if held > self.batch_bytes:
            raise InternalError(f"the answers in batches are over {self.batch_bytes:,} bytes; ask one by one")
        if whole is not None and held > FEW_BATCH_BYTES and whole.held_bytes + size > whole.batch_bytes:
            raise InternalError("the answers in batches of all clients together are too large; ask one by one")

    def add_batch_bytes(self, size: int) -> None:
        """Count bytes of answers that wait for the rest of their batch, or with a negative number those that leave."""
        self.held_bytes += size
        if self.whole is not None:
            self.whole.held_bytes += size
