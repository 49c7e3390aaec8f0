"""Timeouts of connections, checked for all of them at intervals, so that a request costs nothing.

They apply to clients that do not finish the head of a request, do not read the response, or are idle. Each check
records what a connection waits for; a connection that waits for the same thing for too long is closed. The timeout of a
body is the application's.
"""

from __future__ import annotations

import asyncio
import select
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from accord.limits import Limits
from accord.server.http.serving.refusals import refusal, unsent_bytes
from accord.wire.http1.connection import DRAINING, HEAD, HTTPConnection

_LONGEST = 2.0
"""The most seconds between checks."""

_HANGUP: int = getattr(select, "POLLRDHUP", 0)
"""Linux: the event of a peer that has closed its side while earlier bytes are unread; elsewhere it is POLLHUP."""

_UNSENT, _IDLE, _HEAD = "unsent", "idle", "head"


class MonitoredConnection(Protocol):
    """The part of a connection that is checked."""

    http: HTTPConnection
    transport: asyncio.Transport


class _WaitState(NamedTuple):
    since: float
    kind: str
    unsent: int
    """Bytes of the response that the client has not read."""
    requests: int
    """The number of earlier requests, which distinguishes one wait for a head from the next."""


class ConnectionTimeouts:
    """Checks `connections` at intervals, by the timeouts of `limits`, until it is stopped."""

    def __init__(self, connections: Iterable[MonitoredConnection], limits: Limits) -> None:
        self._connections = connections
        self._seconds = {
            _UNSENT: limits.http.unread_seconds,
            _IDLE: limits.http.idle_seconds,
            _HEAD: limits.http.head_seconds,
        }
        self._every = min(_LONGEST, *(seconds / 8 for seconds in self._seconds.values()))
        self._waits: dict[MonitoredConnection, _WaitState] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._checked_at: float | None = None
        self._elapsed: float = 0
        """Seconds in which the loop could read from clients: all timeouts count in these."""

    def start(self) -> None:
        """Start the checks, on the running loop."""
        self._timer = asyncio.get_running_loop().call_later(self._every, self._check_again)

    def stop(self) -> None:
        """Stop the checks."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_again(self) -> None:
        self.start()
        self.check(time.monotonic())

    def check(self, now: float) -> None:
        """Check all connections, at the monotonic time `now`.

        A pause in which the loop did not run, and so read nothing, counts as two intervals at most: bytes that clients
        sent meanwhile are read before their timeouts expire.
        """
        if self._checked_at is not None:
            self._elapsed += min(now - self._checked_at, 2 * self._every)
        self._checked_at, now = now, self._elapsed
        for connection in _find_disconnected(self._connections):
            connection.transport.abort()
        waits: dict[MonitoredConnection, _WaitState] = {}
        for connection in list(self._connections):
            wait = self._wait_state(connection, now)
            if wait is None:
                continue
            if now - wait.since < self._seconds[wait.kind]:
                waits[connection] = wait
            else:
                _close(connection, wait)
        self._waits = waits

    def _wait_state(self, connection: MonitoredConnection, now: float) -> _WaitState | None:
        """Return what a connection waits for, and since when; None if no timeout applies."""
        unsent = unsent_bytes(connection.transport)
        kind = _UNSENT if unsent else _kind(connection.http)
        if kind is None:
            return None
        requests = connection.http.requests
        previous = self._waits.get(connection)
        if previous is None or (previous.kind, previous.requests) != (kind, requests) or unsent < previous.unsent:
            return _WaitState(now, kind, unsent, requests)
        return previous if unsent == previous.unsent else previous._replace(unsent=unsent)


def _find_disconnected(connections: Iterable[MonitoredConnection]) -> Iterator[MonitoredConnection]:
    """Yield connections whose clients have disconnected while reading is paused, because of bytes after
    their request.
    """
    paused = {
        connection.transport.get_extra_info("socket").fileno(): connection
        for connection in connections
        if connection.http.writable and not connection.http.reading and not connection.transport.is_closing()
    }
    if not paused or not hasattr(select, "poll"):  # Windows has no `poll`
        return
    poll = select.poll()
    for descriptor in paused:
        poll.register(descriptor, _HANGUP)
    for descriptor, _ in poll.poll(0):
        yield paused[descriptor]


def _kind(http: HTTPConnection) -> str | None:
    if http.idle:
        return _IDLE
    return _HEAD if http.state in (HEAD, DRAINING) else None


def _close(connection: MonitoredConnection, wait: _WaitState) -> None:
    transport = connection.transport
    if wait.unsent or transport.is_closing():
        transport.abort()
        return
    if connection.http.state == HEAD and connection.http.unparsed:  # on others no request has begun
        transport.write(refusal(408, "the head of the request did not come in time (HTTPLimits.head_seconds)"))
    transport.close()
