"""A relay between a client and a right web server, which sees bytes only: for what no web server in a process does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias
from urllib.parse import urlsplit


class Connection:
    """One of them. `seen` is what its client has sent since the web server last said anything."""

    def __init__(self, number: int, writer: asyncio.StreamWriter) -> None:
        self.number: int = number
        """How many were open when it came, with itself."""
        self.seen: bytes = b""
        self._writer = writer

    def say(self, data: bytes) -> None:
        """Say this in place of the web server."""
        self._writer.write(data)


Treat: TypeAlias = Callable[[Connection, bytes], bytes | None]
"""What the web server gets for each piece of bytes that comes; None: nothing, now and from then on."""


@contextlib.asynccontextmanager
async def fronted(url: str, treat: Treat | None) -> AsyncIterator[str]:
    """The URL of a relay to `url`, where there is something to change; else the same URL."""
    if treat is None:
        yield url
        return
    front = _Front(urlsplit(url).port or 0, treat)
    server = await asyncio.start_server(front.serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await front.close()


class _Front:
    def __init__(self, port: int, treat: Treat) -> None:
        self._port = port
        self._treat = treat
        self._open: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._relay(Connection(len(self._open), writer), reader, writer)
        finally:
            self._open.discard(task)
            writer.close()

    async def close(self) -> None:
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open)

    async def _relay(self, connection: Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, there = await asyncio.open_connection("127.0.0.1", self._port)
        back = asyncio.create_task(self._back(connection, behind, writer))
        try:
            while data := await reader.read(1 << 16):
                connection.seen += data
                passed = self._treat(connection, data)
                if passed is None:
                    await asyncio.Event().wait()
                there.write(passed or b"")
                await there.drain()
        finally:
            back.cancel()
            there.close()

    async def _back(self, connection: Connection, behind: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await behind.read(1 << 16):
                connection.seen = b""
                writer.write(data)
                await writer.drain()
        writer.close()
