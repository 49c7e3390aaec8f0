"""One HTTP request to a process on this machine, with a connection of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from accord.wire.http1.chunked import ChunkedReader
from accord.wire.http1.lines import UnacceptableRequest

Headers = Sequence[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"te", b"upgrade"})
_HEAD_BYTES = 64 << 10
_READ_BYTES = 64 << 10


class UpstreamLost(Exception):
    """The process cannot be reached, or closed the connection before the response was complete."""


class UpstreamRefused(UpstreamLost):
    """The process does not accept connections: the request was not received."""


class UpstreamResponse:
    """The response of a process: its status and headers, and its body in pieces."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes, *, has_body: bool = True
    ) -> None:
        self._reader = reader
        self._writer = writer
        status_line, *lines = head.split(b"\r\n")
        self.status: int = int(status_line.split(b" ", 2)[1])
        pairs = (line.partition(b":") for line in lines if line)
        fields = [(name.strip().lower(), value.strip()) for name, _, value in pairs]
        self.headers: list[tuple[bytes, bytes]] = [each for each in fields if each[0] not in _HOP_BY_HOP]
        found = dict(fields)
        self._length = int(found[b"content-length"]) if has_body and b"content-length" in found else None
        self._is_chunked = has_body and found.get(b"transfer-encoding", b"").lower() == b"chunked"

    @property
    def is_event_stream(self) -> bool:
        """Return whether the body is a stream of events."""
        return dict(self.headers).get(b"content-type", b"").startswith(b"text/event-stream")

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the body. Raises `UpstreamLost`."""
        try:
            async for piece in self._chunked() if self._is_chunked else self._plain():
                yield piece
        except (OSError, UnacceptableRequest) as exc:
            raise UpstreamLost(str(exc)) from exc
        finally:
            self.close()

    async def body(self) -> bytes:
        """Return the whole body. Raises `UpstreamLost`."""
        return b"".join([piece async for piece in self.chunks()])

    def close(self) -> None:
        """Close the connection, which cancels the request in revisions where a disconnect does."""
        self._writer.close()

    async def _plain(self) -> AsyncIterator[bytes]:
        left = self._length
        while left is None or left > 0:
            piece = await self._reader.read(_READ_BYTES if left is None else min(left, _READ_BYTES))
            if not piece:
                if left:
                    raise UpstreamLost("the process closed the connection in the middle of a response")
                return
            left = None if left is None else left - len(piece)
            yield piece

    async def _chunked(self) -> AsyncIterator[bytes]:
        decoder, rest = ChunkedReader(_HEAD_BYTES, 100, 0, 0), b""
        while not decoder.over:
            data = await self._reader.read(_READ_BYTES)
            if not data:
                raise UpstreamLost("the process closed the connection in the middle of a response")
            pieces: list[bytes] = []
            data = rest + data
            rest = data[decoder.read(data, 0, pieces) :]
            for piece in pieces:
                yield piece


async def open_request(port: int, method: str, target: bytes, headers: Headers, body: bytes) -> UpstreamResponse:
    """Send a request to a port of this machine, and return its response. Raises `UpstreamLost`."""
    lines = [b"%b %b HTTP/1.1" % (method.encode(), target)]
    lines += [b"%b: %b" % each for each in headers if each[0] not in _HOP_BY_HOP]
    lines += [b"connection: close", b"content-length: %d" % len(body), b"", body]
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=_HEAD_BYTES)
    except OSError as exc:
        raise UpstreamRefused(str(exc)) from exc
    try:
        writer.write(b"\r\n".join(lines))
        await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        return UpstreamResponse(reader, writer, head, has_body=method != "HEAD")
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError) as exc:
        writer.close()
        raise UpstreamLost(str(exc) or type(exc).__name__) from exc
    except asyncio.CancelledError:
        writer.close()
        raise
