"""The rules for sending a request again: whether it is allowed, to which connection, and in what time.

The pause before a server is started again: exponential backoff with full jitter.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from collections.abc import Awaitable, Callable

import msgspec

from accord.errors import AccordError, ConnectionLost, OutcomeUnknown, SessionEnded
from accord.transport.connection import Connection


class Reconnect(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of reconnection; times in seconds.

    The pause before an attempt is random, between zero and a bound that begins with `first_seconds` and doubles up to
    `most_seconds`. The client gives up after `attempts` failures in a row; a connection that has lived for
    `settled_seconds` resets the count.
    """

    attempts: int = 8
    first_seconds: float = 0.1
    most_seconds: float = 30
    settled_seconds: float = 60


class Backoff:
    """The pauses between attempts. `pick(0, bound)` returns a random number between the two."""

    def __init__(self, reconnect: Reconnect, pick: Callable[[float, float], float] = random.uniform) -> None:
        self._reconnect = reconnect
        self._pick = pick
        self._row = 0

    def after(self, lived: float) -> float | None:
        """Return the pause after a connection of `lived` seconds (0: it never opened), or None to give up."""
        if lived >= self._reconnect.settled_seconds:
            self._row = 0
        if self._row >= self._reconnect.attempts:
            return None
        bound = min(self._reconnect.most_seconds, self._reconnect.first_seconds * 2.0 ** min(self._row, 64))
        self._row += 1
        return self._pick(0, bound)


MayRetry = Callable[[], Awaitable[bool]]
"""Returns whether a request may be sent again though it may have taken effect."""


class StickyConnection:
    """The connection that a request is bound to, because its server state is meaningless to any other server."""

    __slots__ = ("connection",)

    def __init__(self) -> None:
        self.connection: Connection | None = None


class StickyConnectionLost(ConnectionLost):
    """The connection that a request is bound to is lost; the request may start again on another one."""


async def is_retry_allowed(may_repeat: MayRetry, seconds: float | None) -> bool:
    """Return whether a request may be sent again; False if that is not known in time."""
    try:
        async with asyncio.timeout(seconds):
            return await may_repeat()
    except TimeoutError:
        return False


def outcome_unknown(method: str, lost: ConnectionLost) -> OutcomeUnknown:
    """Return the error for a request that was in flight and may not be repeated."""
    return OutcomeUnknown(
        f"{method} may or may not have taken effect, and was not sent again: {lost}",
        exit_code=lost.exit_code,
        stderr=lost.stderr,
    )


def retries_exhausted(method: str, times: int, lost: ConnectionLost) -> ConnectionLost:
    """Return the error for a request that was sent the maximum number of times."""
    return ConnectionLost(
        f"{method} was sent {times} times, and each time the connection ended: {lost}",
        exit_code=lost.exit_code,
        stderr=lost.stderr,
    )


def connection_loss(connection: Connection, error: AccordError) -> ConnectionLost:
    """Return how a connection ended, because `error` may only say that it is closed."""
    return error if isinstance(error, ConnectionLost) else connection.transport.lost()


async def wait_before_retry(
    connection: Connection, lost: ConnectionLost, backoff: Backoff, seconds: float | None
) -> None:
    """Wait before a request is sent again: for the end of a connection whose session has ended, at most `seconds`, or
    for the backoff if only the request failed.
    """
    if connection.ended.is_set():
        return
    if not isinstance(lost, SessionEnded):
        await asyncio.sleep(backoff.after(0) or 0)
        return
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(connection.ended.wait(), seconds)


class TimeBudget:
    """The remaining time of one request. While it is suspended, no time passes."""

    def __init__(self, total: float | None) -> None:
        self._end = None if total is None else _now() + total  # most requests have no total timeout
        self._suspended_at = 0.0

    def suspend(self) -> None:
        """Stop the time."""
        self._suspended_at = _now()

    def resume(self) -> None:
        """Let the time pass again."""
        if self._end is not None:
            self._end += _now() - self._suspended_at

    @property
    def left(self) -> float | None:
        """Return the remaining seconds in whole milliseconds, at least one, so that the operation itself raises its
        timeout.
        """
        return None if self._end is None else max(1, math.ceil((self._end - _now()) * 1000)) / 1000

    def at_most(self, other: float | None) -> float | None:
        """Return the remaining seconds, or `other` if it is less."""
        candidates = [seconds for seconds in (self.left, other) if seconds is not None]
        return min(candidates, default=None)


def _now() -> float:
    return asyncio.get_running_loop().time()
