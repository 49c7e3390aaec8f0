"""An ASGI application on sockets: uvicorn's protocols, without uvicorn's server.

That one looks ten times a second whether it should end, ends with -15 at SIGTERM, and waits for ever for an open
stream. Here connections have deadlines and a cap, and the end comes in steps: nothing new, what runs, what is left.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from socket import socket
from typing import TYPE_CHECKING, Any, cast

from uvicorn import Config
from uvicorn.server import ServerState

from accord.limits import Limits
from accord.server.http.serving.descriptors import connection_cap
from accord.server.http.serving.patrol import Patrol, unsent_bytes
from accord.server.http.serving.refusals import Busy

try:
    from accord.server.http.serving.protocol import BoundedProtocol
except ModuleNotFoundError:  # no httptools: h11 is slower, and bounds the head of a request by itself
    BoundedProtocol = None  # type: ignore[assignment, misc]

if TYPE_CHECKING:
    from uvicorn._types import ASGIApplication

LOGGER: logging.Logger = logging.getLogger("accord.http")
"""Where what an application raises is told."""

_BACKLOG = 2048
"""Connections that the system keeps until they are taken."""

_AT_A_TIME = 16
"""Connections that asyncio takes in one turn of the loop. Before any of them is refused it takes all of them, and goes
on, with a log entry each, where there are no descriptors left."""

_FLUSHING = 0.01
"""Seconds between two looks whether the last answers are on their way."""


class Listening:
    """An application that is served, from `start` to `finish`."""

    def __init__(self, app: ASGIApplication, limits: Limits) -> None:
        self._limits = limits
        self._cap = connection_cap(limits)
        self._config = _config(app, limits)
        self._state = ServerState()
        self._patrol = Patrol(cast(Any, self._state.connections), limits)
        self._listeners: list[asyncio.Server] = []

    async def start(self, sockets: Sequence[socket]) -> None:
        """Take connections from these sockets, which are bound."""
        self._config.load()
        loop = asyncio.get_running_loop()
        for each in sockets:
            self._listeners.append(await loop.create_server(self._connection, sock=each, backlog=_AT_A_TIME))
            each.listen(_BACKLOG)
        self._patrol.start()

    def refuse_new(self) -> None:
        """Take no connection any more, and close those on which nothing runs."""
        for listener in self._listeners:
            listener.close()
        for connection in list(self._state.connections):
            connection.shutdown()

    async def finish(self, seconds: float) -> None:
        """Let answers that are written reach their clients, then cut what is left; both within `seconds`."""
        self.refuse_new()
        deadline = time.monotonic() + seconds / 2
        while self._unsent() and time.monotonic() < deadline:  # noqa: ASYNC110 - nothing tells when a buffer is empty
            await asyncio.sleep(_FLUSHING)
        self._patrol.stop()
        for connection in list(self._state.connections):
            connection.transport.abort()
        tasks = [task for task in self._state.tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds / 2)

    def _unsent(self) -> bool:
        return any(unsent_bytes(connection.transport) for connection in self._state.connections)

    def _connection(self) -> asyncio.Protocol:
        if len(self._state.connections) >= self._cap:
            return Busy()
        options: dict[str, Any] = {"config": self._config, "server_state": self._state, "app_state": {}}
        connection: Any
        if BoundedProtocol is not None:
            connection = BoundedProtocol(head_bytes=self._limits.http_head_bytes, **options)
        else:
            from uvicorn.protocols.http.h11_impl import H11Protocol

            connection = H11Protocol(**options)
        connection.logger, connection.access_log = LOGGER, False
        return cast(asyncio.Protocol, connection)


def _config(app: ASGIApplication, limits: Limits) -> Config:
    return Config(
        app,
        interface="asgi3",
        lifespan="off",
        ws="none",
        log_config=None,
        proxy_headers=False,  # `public_url` says what a proxy would; its headers can be forged
        server_header=False,
        date_header=False,
        timeout_keep_alive=cast(int, limits.http_idle_seconds),  # it only goes to `call_later`
        h11_max_incomplete_event_size=limits.http_head_bytes,
    )


def _worth_telling(record: logging.LogRecord) -> bool:
    """Not what a client got wrong, which it is told itself, nor that a request was cancelled at the end."""
    cancelled = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)
    return record.levelno >= logging.ERROR and not cancelled


LOGGER.addFilter(_worth_telling)
