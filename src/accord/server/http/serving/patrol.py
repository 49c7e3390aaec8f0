"""The deadlines of connections: one look at all of them now and then, so that a request costs nothing.

A client that does not finish the head of its request holds a connection for ever, and so does one that does not take
its answer. A look remembers what each connection waits for; one found waiting for the same in look after look is cut.
The deadline of a body is the application's, and that of an idle connection uvicorn's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from accord.limits import Limits
from accord.server.http.serving.refusals import refusal

_LONGEST = 2.0
"""Seconds between two looks, at most."""


class Watched(Protocol):
    """What uvicorn's two protocols, on httptools and on h11, have in common."""

    cycle: Any
    scope: Any
    transport: asyncio.Transport
    timeout_keep_alive_task: asyncio.TimerHandle | None


class _Wait(NamedTuple):
    since: float
    unsent: int
    """Bytes of an answer that the client has not taken; 0 where the head of a request is waited for."""
    cycle: object
    """The request before, which tells one wait for a head from the next."""


class Patrol:
    """Looks at `connections`, by the deadlines of `limits`, until it is stopped."""

    def __init__(self, connections: Iterable[Watched], limits: Limits) -> None:
        self._connections = connections
        self._head = limits.http_head_seconds
        self._unread = limits.http_unread_seconds
        self._every = min(_LONGEST, self._head / 8, self._unread / 8)
        self._waits: dict[Watched, _Wait] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Look every now and then; on the loop that runs."""
        self._timer = asyncio.get_running_loop().call_later(self._every, self._again)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _again(self) -> None:
        self.start()
        self.look(time.monotonic())

    def look(self, now: float) -> None:
        """One look, at the monotonic time `now`."""
        waits: dict[Watched, _Wait] = {}
        for connection in list(self._connections):
            wait = self._wait(connection, now)
            if wait is None:
                continue
            if now - wait.since < (self._unread if wait.unsent else self._head):
                waits[connection] = wait
            else:
                _cut(connection, wait)
        self._waits = waits

    def _wait(self, connection: Watched, now: float) -> _Wait | None:
        """What it waits for, and since when; None if that is nothing with a deadline here."""
        unsent = unsent_bytes(connection.transport)
        if not unsent and not _awaits_head(connection):
            return None
        before = self._waits.get(connection)
        if before is None or before.cycle is not connection.cycle or not _no_progress(before.unsent, unsent):
            return _Wait(now, unsent, connection.cycle)
        return before if unsent == before.unsent else before._replace(unsent=unsent)


def _no_progress(before: int, unsent: int) -> bool:
    """Nothing was taken since the look before; or no answer waits, now as then."""
    return 0 < before <= unsent or before == unsent == 0


def _awaits_head(connection: Watched) -> bool:
    """Between two requests, or before the first, and not idle: the idle have uvicorn's own timer."""
    cycle = connection.cycle
    return (cycle is None or cycle.response_complete) and connection.timeout_keep_alive_task is None


def _cut(connection: Watched, wait: _Wait) -> None:
    transport = connection.transport
    if wait.unsent or transport.is_closing():
        transport.abort()
        return
    if connection.scope is not None:  # one that never said a word is not told either: it may be kept for later
        transport.write(refusal(408, "the head of the request did not come in time"))
    transport.close()


def unsent_bytes(transport: asyncio.Transport) -> int:
    """Bytes that the client has not taken yet."""
    try:
        return transport.get_write_buffer_size()
    except RuntimeError:  # uvloop: it is closed
        return 0
