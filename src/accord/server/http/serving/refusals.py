"""What a connection itself answers, where there is no request yet, or will be none.

What a transport has not been able to send.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import cast


def refusal(status: int, sentence: str, *headers: bytes) -> bytes:
    """A whole response of one sentence, after which the connection is closed. `headers` are lines of its head."""
    body = sentence.encode() + b"\n"
    lines = [
        b"HTTP/1.1 %d %s" % (status, HTTPStatus(status).phrase.encode()),
        b"content-type: text/plain; charset=utf-8",
        b"content-length: %d" % len(body),
        *headers,
        b"connection: close",
    ]
    return b"\r\n".join([*lines, b"", body])


BUSY: bytes = refusal(503, "too many connections; try again", b"retry-after: 1")
"""What a connection too many is told."""


class ConnectionLimitProtocol(asyncio.Protocol):
    """A connection too many: told so, and closed."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        writer = cast(asyncio.WriteTransport, transport)  # uvloop's is not declared as one
        writer.write(BUSY)
        writer.close()


def unsent_bytes(transport: asyncio.Transport) -> int:
    """Bytes that the client has not taken yet."""
    try:
        return transport.get_write_buffer_size()
    except RuntimeError:  # uvloop: it is closed
        return 0
