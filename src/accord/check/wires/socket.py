"""A raw connection to a web server: requests in parts, incomplete or invalid.

All bytes of both sides are evidence, except the values of headers that may be secret.
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from accord.check.probes.message_log import REMARK, LogEntry
from accord.errors import ConnectError, describe
from accord.wire.transcript import RECEIVED, SENT

_CONNECT_SECONDS = 10
_MOST = 1 << 20
"""Maximum number of bytes of one read."""
_EVIDENCE = 8
"""Maximum number of entries that are shown: the first, and the last ones."""
_PORTS = {"http": 80, "https": 443}

_SAFE_HEADERS = rb"mcp-(?!session-id)[^:\n]*|accept|content-[^:\n]*|transfer-encoding|connection|host|x-filler"
_REQUEST_SECRETS = re.compile(rb"(?im)^(?!(?:" + _SAFE_HEADERS + rb"):)([\w!#$%&'*+.^`|~-]+:) ?[^\r\n]*")
"""Matches a header that may have a secret: all except these."""
_RESPONSE_SECRETS = re.compile(rb"(?im)^((?:set-cookie|mcp-session-id):) ?[^\r\n]*")
_QUERY = re.compile(rb"^([A-Z]+ [^ ?\r\n]*\?)[^ \r\n]*")


class Socket:
    """A connection, opened by `Socket.open(url)`. Writes to a closed connection are ignored."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._entries: list[LogEntry] = []
        self.closed: bool = False
        """Whether the server closed it."""

    @classmethod
    async def open(cls, url: str) -> Socket:
        """Connect to the host of a URL, with TLS for https. Raises `ConnectError`."""
        parts = urlsplit(url)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    parts.hostname, parts.port or _PORTS[parts.scheme], ssl=parts.scheme == "https" or None
                )
        except (OSError, TimeoutError) as exc:
            raise ConnectError(f"{_host(parts)}: {describe(exc)}") from exc
        return cls(reader, writer)

    async def write(self, data: bytes, seconds: float) -> None:
        """Send bytes, until all are sent, the server stops reading, or the timeout."""
        self._add_entry(SENT, _QUERY.sub(rb"\1...", _REQUEST_SECRETS.sub(rb"\1 ...", data)))
        if self._writer.is_closing():
            return
        self._writer.write(data)
        try:
            async with asyncio.timeout(seconds):
                await self._writer.drain()
        except (OSError, TimeoutError):
            return

    async def read(self, seconds: float, *, until: bytes = b"", times: int = 1) -> bytes:
        """Read until the bytes occur a number of times, the server closes, or the timeout."""
        found = b""
        try:
            async with asyncio.timeout(seconds):
                while not until or found.count(until) < times:
                    more = await self._reader.read(1 << 16)
                    self.closed = not more
                    found += more
                    if self.closed or len(found) > _MOST:
                        break
        except TimeoutError:
            self._add_received(found, f"no more bytes in {seconds:g} s")
        except OSError as exc:
            self.closed = True
            self._add_received(found, f"the server closed the connection: {describe(exc)}")
        else:
            self._add_received(found, "the server closed the connection" if self.closed else "")
        return found

    def abort(self) -> None:
        """Close the connection without a shutdown."""
        if not self._writer.is_closing():
            self._add_entry(REMARK, b"we close the connection")
            self._writer.transport.abort()

    def evidence(self) -> tuple[str, ...]:
        """Return all bytes as lines; of many, the first and the last ones."""
        lines: list[str] = [entry.line() for entry in self._entries]
        left_out = len(lines) - _EVIDENCE
        if left_out > 0:
            lines[1 : left_out + 1] = [f"# and {left_out:,} more"]
        return tuple(lines)

    def _add_received(self, found: bytes, remark: str) -> None:
        if found:
            self._add_entry(RECEIVED, _RESPONSE_SECRETS.sub(rb"\1 ...", found))
        if remark:
            self._add_entry(REMARK, remark.encode())

    def _add_entry(self, direction: Literal["→", "←", "#"], raw: bytes) -> None:
        self._entries.append(LogEntry(direction=direction, raw=raw, at=time.monotonic()))


def head(method: str, url: str, headers: dict[str, str]) -> bytes:
    """Return the head of a request, with the empty line."""
    lines = [f"{method} {_target(urlsplit(url))} HTTP/1.1", f"Host: {_host(urlsplit(url))}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def _host(parts: SplitResult) -> str:
    """Return host and port, without credentials."""
    return parts.netloc.rpartition("@")[2]


def _target(parts: SplitResult) -> str:
    """Return path and query, as in a request line."""
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
