"""An ASGI server on sockets, with timeouts and limits for connections.

Shutdown has steps: refuse new connections, wait for running requests, and close the rest. The number of connections
depends on the process's limit of file descriptors, since each takes one and handlers need others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from socket import socket

from accord.limits import Limits
from accord.server.http.serving.connections import Connections
from accord.server.http.serving.protocol import Application, HTTPProtocol
from accord.server.http.serving.refusals import unsent_bytes
from accord.server.http.serving.timeouts import ConnectionTimeouts
from accord.wire.http1.connection import ConnectionBudget

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

_ENOUGH = 65_536


def raise_descriptor_limit() -> None:
    """Raise the soft limit of file descriptors: many shells set 1,024, for programs that use `select`."""
    if resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            with suppress(OSError, ValueError):  # the system may grant less; then the limit stays
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connection_cap(limits: Limits) -> int:
    """Return `limits.http.connections`, or fewer to leave file descriptors for handlers."""
    if resource is None:
        return limits.http.connections
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        limits.http.connections
        if soft == resource.RLIM_INFINITY
        else min(limits.http.connections, soft - min(soft // 2, 256))
    )


_BACKLOG = 2048
"""The listen backlog of the system."""

_ACCEPT_BATCH = 16
"""The backlog for asyncio: the connections that it accepts in one turn of the loop. It accepts all of them before one
is refused, and if file descriptors run out, it continues with a log entry for each.
"""

_FLUSH_POLL_SECONDS = 0.01
"""Seconds between checks whether the last responses were sent."""


class ASGIServer:
    """A server of an ASGI application, from `start` to `finish`."""

    def __init__(self, app: Application, limits: Limits) -> None:
        self._app = app
        self._budget = budget_of(limits)
        self._tasks: set[asyncio.Task[None]] = set()
        self._listeners: list[asyncio.Server] = []
        self.connections: Connections[HTTPProtocol] = Connections(limits, connection_cap(limits))
        """The open connections."""
        self._timeouts = ConnectionTimeouts(self.connections, limits)

    async def start(self, sockets: Sequence[socket]) -> None:
        """Accept connections from these bound sockets."""
        loop = asyncio.get_running_loop()
        for each in sockets:
            self._listeners.append(await loop.create_server(self._connection, sock=each, backlog=_ACCEPT_BATCH))
            each.listen(_BACKLOG)
        self._timeouts.start()

    def stop_accepting(self) -> None:
        """Accept no more connections, and close idle ones."""
        for listener in self._listeners:
            listener.close()
        for connection in list(self.connections):
            connection.shutdown()

    async def finish(self, seconds: float) -> None:
        """Wait until the responses are written and sent, then close the rest; both within `seconds`."""
        self.stop_accepting()
        deadline = time.monotonic() + seconds / 2
        if answering := self._other_tasks():
            await asyncio.wait(answering, timeout=seconds / 2)
        while self._has_unsent() and time.monotonic() < deadline:  # noqa: ASYNC110 - no event reports an empty buffer
            await asyncio.sleep(_FLUSH_POLL_SECONDS)
        self._timeouts.stop()
        for connection in list(self.connections):
            connection.transport.abort()
        left = self._other_tasks()
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=seconds / 2)

    def _other_tasks(self) -> list[asyncio.Task[None]]:
        return [task for task in self._tasks if task is not asyncio.current_task()]

    def _has_unsent(self) -> bool:
        return any(unsent_bytes(connection.transport) for connection in self.connections)

    def _connection(self) -> HTTPProtocol:
        loop = asyncio.get_running_loop()
        return HTTPProtocol(self._app, self._budget, self.connections, self._tasks, loop)


_SLACK = 64 << 10
"""Bytes of a body beyond its limit: the application, which reads the body first, has the better error message."""


def budget_of(limits: Limits) -> ConnectionBudget:
    """Return the limits of one connection."""
    return ConnectionBudget(
        head_bytes=limits.http.head_bytes, fields=limits.http.head_fields, body_bytes=limits.http.body_bytes + _SLACK
    )
