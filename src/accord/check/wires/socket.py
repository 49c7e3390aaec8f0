"""One connection to a web server, on which anything can be written: requests in pieces, broken off, or none at all."""

from __future__ import annotations

import asyncio
from urllib.parse import SplitResult, urlsplit

from accord.errors import ConnectError, describe

_CONNECT_SECONDS = 10
_MOST = 1 << 20
"""Bytes that are read at once."""
_PORTS = {"http": 80, "https": 443}


class Socket:
    """A connection; `Socket.open(url)` makes one. What is written to one that is gone is lost without a word."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, url: str) -> Socket:
        """Connect to the host of a URL, by TLS for https. Raises `ConnectError`."""
        parts = urlsplit(url)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    parts.hostname, parts.port or _PORTS[parts.scheme], ssl=parts.scheme == "https" or None
                )
        except (OSError, TimeoutError) as exc:
            raise ConnectError(f"{_host(parts)}: {describe(exc)}") from exc
        return cls(reader, writer)

    def write(self, data: bytes) -> None:
        """Send these bytes as they are."""
        if not self._writer.is_closing():
            self._writer.write(data)

    async def flushed(self, seconds: float) -> None:
        """Wait until all is sent, or the server reads no more, or the time is over."""
        try:
            async with asyncio.timeout(seconds):
                await self._writer.drain()
        except (OSError, TimeoutError):
            return

    async def read(self, seconds: float, *, until: bytes = b"", times: int = 1) -> bytes:
        """What comes, until it has that so many times, or the server closes, or the time is over."""
        found = b""
        try:
            async with asyncio.timeout(seconds):
                while not until or found.count(until) < times:
                    more = await self._reader.read(1 << 16)
                    if not more:
                        break
                    found += more
                    if len(found) > _MOST:
                        break
        except (OSError, TimeoutError):
            return found
        return found

    def leave(self) -> None:
        """Be gone, without a word."""
        self._writer.transport.abort()


def head(method: str, url: str, headers: dict[str, str]) -> bytes:
    """The head of a request, up to and with the empty line."""
    lines = [f"{method} {target(urlsplit(url))} HTTP/1.1", f"Host: {_host(urlsplit(url))}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def _host(parts: SplitResult) -> str:
    """Host and port, without a name and a password."""
    return parts.netloc.rpartition("@")[2]


def target(parts: SplitResult) -> str:
    """Path and query, as a request line has them."""
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
