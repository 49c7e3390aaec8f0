"""Rate limits: a number of events per second, and a burst.

The only state is the time at which the next event would be due at an even pace (the generic cell rate algorithm). An
earlier event is allowed while it is early by no more than a burst. `Pace` is the arithmetic, for callers that keep the
state themselves; `RateLimiter` keeps it. Neither has a clock: times are the caller's, in seconds from any start.

`RequestLoad` counts and limits the requests in flight that several sessions have together.
"""

from __future__ import annotations

from math import inf

from accord.errors import InternalError, RateLimited
from accord.messages.bounds import largest_share

_ROUNDING_TOLERANCE = 0.01
"""The part of an interval by which an event may always be early, so that rounding does not shorten a burst."""


class Pace:
    """`per_second` on average, `burst` at once (by default one second's worth, at least 1).

    `per_second=None` means no limit, and 0 means never. Raises `ValueError` for a negative rate or a burst below 1.
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
        """Return the longest time until the next event is due, in seconds, after any sequence of events."""
        return self._early + self._interval

    def step(self, due: float, now: float) -> float | None:
        """Return when the next event is due after one at `now`, if one was due at `due`; None if it may not happen yet.

        `due` is `-inf` at the start.
        """
        if due < now:
            due = now
        return None if due - now > self._early else due + self._interval

    def wait(self, due: float, now: float) -> float:
        """Return the seconds from `now` until an event is allowed: 0 if it is allowed now, `inf` if never."""
        early = max(due, now) - now
        return 0 if early <= self._early else early - self._exact


class RateLimiter:
    """A rate limit with its state. The arguments are those of `Pace`."""

    __slots__ = ("_due", "_pace")

    def __init__(self, per_second: float | None, burst: float | None = None) -> None:
        self._pace = Pace(per_second, burst)
        self._due = -inf

    def allow(self, now: float) -> bool:
        """Return whether an event is allowed now; if so, it is counted."""
        due = self._pace.step(self._due, now)
        if due is None:
            return False
        self._due = due
        return True

    def delay(self, now: float) -> float:
        """Return the seconds until `allow` returns True: 0 if it would now, `inf` if never."""
        return self._pace.wait(self._due, now)

    def refusal(self, now: float, what: str) -> RateLimited:
        """Return the error for an event that is not allowed: `what` is wrong, and when to try again, if ever."""
        return rate_limited(what, self.delay(now))


def rate_limited(what: str, seconds: float) -> RateLimited:
    """Return the error for an event that is not allowed: `what` is wrong, and after how many seconds to try again
    (`inf`: never).
    """
    if seconds == inf:
        return RateLimited(what)
    return RateLimited(f"{what}; try again in {seconds:.3f} s", retry_after=seconds)


MANY = 256
"""Number of requests in flight from which on a part is refused if the whole is over its limit; parts with fewer
continue."""

FEW = 8
"""`MANY` if the whole is over twice its limit: one client may have very many parts."""


class RequestLoad:
    """The requests in flight of all sessions that share it: at most `most`, and at most what `whole` allows.

    The responses that wait for the rest of their batch have at most `batch_bytes`.
    """

    __slots__ = ("__weakref__", "batch_bytes", "held_bytes", "most", "running", "whole")

    def __init__(self, most: int, batch_bytes: int, whole: RequestLoad | None = None) -> None:
        self.most: int = most
        self.batch_bytes: int = batch_bytes
        self.whole: RequestLoad | None = whole
        self.running: int = 0
        """Requests in flight."""
        self.held_bytes: int = 0
        """Bytes of responses that wait for the rest of their batch."""

    def check(self) -> None:
        """Raise `InternalError` if a further request would exceed the limit."""
        whole = self.whole
        if self.running >= self.most:
            whose = "yours" if whole is None else "this address"
            what = f"too many requests in flight of {whose}: the limit is {self.most:,}"
            raise InternalError(f"{what} (HTTPLimits.requests_per_address)")
        if whole is None or whole.running < whole.most:
            return
        if self.running >= (MANY if whole.running < 2 * whole.most else FEW):
            raise InternalError(
                "too many requests in flight of all clients together (HTTPLimits.requests); try again later"
            )

    def add(self, count: int) -> None:
        """Count requests that begin, or with a negative number those that end."""
        self.running += count
        if self.whole is not None:
            self.whole.running += count

    def check_batch_bytes(self, size: int) -> None:
        """Raise `InternalError` if a further response that waits for its batch would exceed the limit."""
        whole, held = self.whole, self.held_bytes + size
        if held > self.batch_bytes:
            raise InternalError(
                f"the answers in batches are over {self.batch_bytes:,} bytes (HTTPLimits.bodies_bytes); ask one by one"
            )
        if whole is not None and held > largest_share(whole.held_bytes + size, whole.batch_bytes):
            raise InternalError(
                "the answers in batches of all clients together are too large (HTTPLimits.bodies_bytes); ask one by one"
            )

    def add_batch_bytes(self, size: int) -> None:
        """Count bytes of responses that wait for their batch, or with a negative number those that are sent."""
        self.held_bytes += size
        if self.whole is not None:
            self.whole.held_bytes += size
