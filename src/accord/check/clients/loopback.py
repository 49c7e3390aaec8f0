"""A listening port on this machine, with a task for each connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

_LINE_BYTES = 64 << 10
_CONNECTIONS = 200
"""Maximum number of connections, so that a client cannot use up all file descriptors."""

ConnectionHandler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class LoopbackListener:
    """Listens from `open` to `close`; `serve` handles each connection, which is closed after it. Connections beyond
    the limit are closed immediately.
    """

    def __init__(self, serve: ConnectionHandler, line_bytes: int = _LINE_BYTES) -> None:
        self._serve = serve
        self._line_bytes = line_bytes
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Future[None]] = set()
        self.port: int = 0

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._on_connection, "127.0.0.1", 0, limit=self._line_bytes)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self, linger: float = 0.0) -> None:
        """Close the port, and after `linger` seconds all connections."""
        if self._server is not None:
            self._server.close()
        if self._tasks and linger:
            await asyncio.wait(self._tasks, timeout=linger)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= _CONNECTIONS:
            writer.close()
            return
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
