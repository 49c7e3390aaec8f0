"""The deadlines of connections: one look at all of them now and then, so that a request costs nothing.

A client that does not finish the head of its request holds a connection for ever, and so does one that does not take
its answer, and one that says nothing more. A look remembers what each connection waits for; one found waiting for the
same in look after look is closed. The deadline of a body is the application's.
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
"""Seconds between two looks, at most."""

_HANGUP: int = getattr(select, "POLLRDHUP", 0)
"""Linux: the event of a peer that has closed its side while bytes before that are unread; elsewhere it is POLLHUP."""

_UNSENT, _IDLE, _HEAD = "unsent", "idle", "head"


class MonitoredConnection(Protocol):
    """What is looked at of a connection."""

    http: HTTPConnection
    transport: asyncio.Transport


class _WaitState(NamedTuple):
    since: float
    kind: str
    unsent: int
    """Bytes of an answer that the client has not taken."""
    requests: int
    """Those before, which tell one wait for a head from the next."""


class ConnectionTimeouts:
    """Looks at `connections`, by the deadlines of `limits`, until it is stopped."""

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
        self._looked: float | None = None
        self._elapsed: float = 0
        """Seconds in which clients could be heard: all deadlines are counted in these."""

    def start(self) -> None:
        """Look every now and then; on the loop that runs."""
        self._timer = asyncio.get_running_loop().call_later(self._every, self._check_again)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_again(self) -> None:
        self.start()
        self.check(time.monotonic())

    def check(self, now: float) -> None:
        """One look, at the monotonic time `now`.

        A pause in which the loop did not run, and so read nothing, counts as two intervals at most: what clients sent
        meanwhile is read before their deadlines end.
        """
        if self._looked is not None:
            self._elapsed += min(now - self._looked, 2 * self._every)
        self._looked, now = now, self._elapsed
        for connection in _disconnected(self._connections):
            connection.transport.abort()
        waits: dict[MonitoredConnection, _WaitState] = {}
        for connection in list(self._connections):
            wait = self._wait(connection, now)
            if wait is None:
                continue
            if now - wait.since < self._seconds[wait.kind]:
                waits[connection] = wait
            else:
                _cut(connection, wait)
        self._waits = waits

    def _wait(self, connection: MonitoredConnection, now: float) -> _WaitState | None:
        """What it waits for, and since when; None if that is nothing with a deadline here."""
        unsent = unsent_bytes(connection.transport)
        kind = _UNSENT if unsent else _kind(connection.http)
        if kind is None:
            return None
        requests = connection.http.requests
        before = self._waits.get(connection)
        if before is None or (before.kind, before.requests) != (kind, requests) or unsent < before.unsent:
            return _WaitState(now, kind, unsent, requests)
        return before if unsent == before.unsent else before._replace(unsent=unsent)


def _disconnected(connections: Iterable[MonitoredConnection]) -> Iterator[MonitoredConnection]:
    """Yield the connections that are not read, because of what follows their request, and whose clients are gone."""
    paused = {
        connection.transport.get_extra_info("socket").fileno(): connection
        for connection in connections
        if connection.http.writable and not connection.http.reading and not connection.transport.is_closing()
    }
    if not paused or not hasattr(select, "poll"):  # Windows has none
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


def _cut(connection: MonitoredConnection, wait: _WaitState) -> None:
    transport = connection.transport
    if wait.unsent or transport.is_closing():
        transport.abort()
        return
    if connection.http.state == HEAD and connection.http.unparsed:  # others were told nothing, and expect nothing
        transport.write(refusal(408, "the head of the request did not come in time"))
    transport.close()
