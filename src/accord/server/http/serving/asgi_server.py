"""An ASGI application on sockets. Connections have deadlines and a cap, and the end comes in steps: nothing new, what
runs, what is left.

How many connections this process may have: each is a file descriptor, and a server needs others.
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
from accord.server.http.serving.refusals import ConnectionLimitProtocol, unsent_bytes
from accord.server.http.serving.timeouts import ConnectionTimeouts
from accord.wire.http1.connection import ConnectionBudget

try:
    import resource
except ImportError:  # Windows, where the number is not bounded in this way
    resource = None  # type: ignore[assignment]

_ENOUGH = 65_536


def raise_descriptor_limit() -> None:
    """Take what the system grants: many shells begin a process at 1,024, for programs that call `select`."""
    if resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            with suppress(OSError, ValueError):  # less is granted than was said: as it was
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connection_cap(limits: Limits) -> int:
    """`limits.http.connections`, or what leaves some descriptors: handlers open files, too."""
    if resource is None:
        return limits.http.connections
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        limits.http.connections
        if soft == resource.RLIM_INFINITY
        else min(limits.http.connections, soft - min(soft // 2, 256))
    )


_BACKLOG = 2048
"""Connections that the system keeps until they are taken."""

_ACCEPT_BATCH = 16
"""Connections that asyncio takes in one turn of the loop. Before any of them is refused it takes all of them, and goes
on, with a log entry each, where there are no descriptors left."""

_FLUSH_POLL_SECONDS = 0.01
"""Seconds between two looks whether the last answers are on their way."""


class ASGIServer:
    """An application that is served, from `start` to `finish`."""

    def __init__(self, app: Application, limits: Limits) -> None:
        self._app = app
        self._budget = budget_of(limits)
        self._cap = connection_cap(limits)
        self._tasks: set[asyncio.Task[None]] = set()
        self._listeners: list[asyncio.Server] = []
        self.connections: Connections[HTTPProtocol] = Connections(limits, self._cap)
        """Those that are open."""
        self._timeouts = ConnectionTimeouts(self.connections, limits)

    async def start(self, sockets: Sequence[socket]) -> None:
        """Take connections from these sockets, which are bound."""
        loop = asyncio.get_running_loop()
        for each in sockets:
            self._listeners.append(await loop.create_server(self._connection, sock=each, backlog=_ACCEPT_BATCH))
            each.listen(_BACKLOG)
        self._timeouts.start()

    def stop_accepting(self) -> None:
        """Take no connection any more, and close those on which nothing runs."""
        for listener in self._listeners:
            listener.close()
        for connection in list(self.connections):
            connection.shutdown()

    async def finish(self, seconds: float) -> None:
        """Let answers that are written reach their clients, then cut what is left; both within `seconds`."""
        self.stop_accepting()
        deadline = time.monotonic() + seconds / 2
        while self._unsent() and time.monotonic() < deadline:  # noqa: ASYNC110 - nothing tells when a buffer is empty
            await asyncio.sleep(_FLUSH_POLL_SECONDS)
        self._timeouts.stop()
        for connection in list(self.connections):
            connection.transport.abort()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds / 2)

    def _unsent(self) -> bool:
        return any(unsent_bytes(connection.transport) for connection in self.connections)

    def _connection(self) -> asyncio.Protocol:
        if len(self.connections) >= self._cap:
            return ConnectionLimitProtocol()
        loop = asyncio.get_running_loop()
        return HTTPProtocol(self._app, self._budget, self.connections, self._tasks, loop)


_SLACK = 64 << 10
"""Bytes of a body beyond its bound: the application, which reads them before, says better what is wrong."""


def budget_of(limits: Limits) -> ConnectionBudget:
    """What one connection may hold."""
    return ConnectionBudget(
        head_bytes=limits.http.head_bytes, fields=limits.http.head_fields, body_bytes=limits.http.body_bytes + _SLACK
    )
