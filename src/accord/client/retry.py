"""What holds when a request is sent more than once: whether it may be, where to, and in what time.

How long to wait before a server that died is started again: exponential backoff, with full jitter.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable

import msgspec

from accord.errors import AccordError, ConnectionLost, OutcomeUnknown, SessionEnded
from accord.transport.connection import Connection


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


MayRetry = Callable[[], Awaitable[bool]]
"""Whether a request may be sent again though it may have taken effect."""


class StickyConnection:
    """The connection that answered a request. While it is set, the request goes there and nowhere else: what one
    server has handed out is not told to another, which may be a different one.
    """

    __slots__ = ("connection",)

    def __init__(self) -> None:
        self.connection: Connection | None = None


class StickyConnectionLost(ConnectionLost):
    """The connection that a request had to stay on is gone; it may begin again from the start, on the next."""


async def is_retry_allowed(may_repeat: MayRetry, seconds: float | None) -> bool:
    """Whether a request may be sent again; what is not known in time is a no."""
    try:
        async with asyncio.timeout(seconds):
            return await may_repeat()
    except TimeoutError:
        return False


def outcome_unknown(method: str, lost: ConnectionLost) -> OutcomeUnknown:
    """The error for a request that was in flight and may not be repeated."""
    return OutcomeUnknown(
        f"{method} may or may not have taken effect, and was not sent again: {lost}",
        exit_code=lost.exit_code,
        stderr=lost.stderr,
    )


def retries_exhausted(method: str, times: int, lost: ConnectionLost) -> ConnectionLost:
    """The error for a request that was sent so often, and is not sent again."""
    return ConnectionLost(
        f"{method} was sent {times} times, and each time the connection ended: {lost}",
        exit_code=lost.exit_code,
        stderr=lost.stderr,
    )


def connection_loss(connection: Connection, error: AccordError) -> ConnectionLost:
    """How a connection ended, of which `error` may tell no more than that it is closed."""
    return error if isinstance(error, ConnectionLost) else connection.transport.lost()


async def wait_before_retry(
    connection: Connection, lost: ConnectionLost, backoff: Backoff, seconds: float | None
) -> None:
    """Wait until it is worth asking again: for the end of a connection whose session has ended, at most `seconds`, or a
    while where only that one request has failed.
    """
    if connection.ended.is_set():
        return
    if not isinstance(lost, SessionEnded):
        await asyncio.sleep(backoff.after(0) or 0)
        return
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(connection.ended.wait(), seconds)


class TimeBudget:
    """What is left of the time of one request."""

    def __init__(self, total: float | None) -> None:
        self._end = None if total is None else _now() + total  # most requests have all the time they need

    @property
    def left(self) -> float | None:
        """Seconds; never none at all, so that whoever waits for them says that time is over."""
        return None if self._end is None else max(0.001, self._end - _now())

    def at_most(self, other: float | None) -> float | None:
        """What is left, or `other` if that is less."""
        times = [each for each in (self.left, other) if each is not None]
        return min(times, default=None)


def _now() -> float:
    return asyncio.get_running_loop().time()
