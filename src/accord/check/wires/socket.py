"""One connection to a web server, on which anything can be written: requests in pieces, broken off, or none at all.

What passes is kept, both ways, as evidence: the bytes as they are, but for the values of headers that may be secret.
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
"""Bytes that are read at once."""
_EVIDENCE = 8
"""Entries that are shown: the first, and the last ones."""
_PORTS = {"http": 80, "https": 443}

_SAFE_HEADERS = rb"mcp-(?!session-id)[^:\n]*|accept|content-[^:\n]*|transfer-encoding|connection|host|x-filler"
_REQUEST_SECRETS = re.compile(rb"(?im)^(?!(?:" + _SAFE_HEADERS + rb"):)([\w!#$%&'*+.^`|~-]+:) ?[^\r\n]*")
"""A header of ours that may hold a secret: any but those."""
_RESPONSE_SECRETS = re.compile(rb"(?im)^((?:set-cookie|mcp-session-id):) ?[^\r\n]*")
_QUERY = re.compile(rb"^([A-Z]+ [^ ?\r\n]*\?)[^ \r\n]*")


class Socket:
    """A connection; `Socket.open(url)` makes one. What is written to one that is gone is lost without a word."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._entries: list[LogEntry] = []
        self.closed: bool = False
        """Whether the server closed it."""

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

    async def write(self, data: bytes, seconds: float) -> None:
        """Send these bytes as they are, until all is sent, or the server reads no more, or the time is over."""
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
        """What comes, until it has that so many times, or the server closes, or the time is over."""
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
            self._add_received(found, f"nothing more came in {seconds:g} s")
        except OSError as exc:
            self.closed = True
            self._add_received(found, f"the server closed the connection: {describe(exc)}")
        else:
            self._add_received(found, "the server closed the connection" if self.closed else "")
        return found

    def abort(self) -> None:
        """Be gone, without a word."""
        if not self._writer.is_closing():
            self._add_entry(REMARK, b"we close the connection")
            self._writer.transport.abort()

    def evidence(self) -> tuple[str, ...]:
        """What passed, as lines; of many, the first and the last."""
        lines = [entry.line() for entry in self._entries]
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
    """The head of a request, up to and with the empty line."""
    lines = [f"{method} {_target(urlsplit(url))} HTTP/1.1", f"Host: {_host(urlsplit(url))}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def _host(parts: SplitResult) -> str:
    """Host and port, without a name and a password."""
    return parts.netloc.rpartition("@")[2]


def _target(parts: SplitResult) -> str:
    """Path and query, as a request line has them."""
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
