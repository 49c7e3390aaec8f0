"""Responses of a connection itself, without the application, and the size of a transport's write buffer."""

from __future__ import annotations

import asyncio
from http import HTTPStatus


def refusal(status: int, sentence: str, *headers: bytes) -> bytes:
    """Return a complete response with one sentence, for a connection that is then closed. `headers` are
    header lines.
    """
    body = sentence.encode() + b"\n"
    lines = [
        b"HTTP/1.1 %d %s" % (status, HTTPStatus(status).phrase.encode()),
        b"content-type: text/plain; charset=utf-8",
        b"content-length: %d" % len(body),
        *headers,
        b"connection: close",
    ]
    return b"\r\n".join([*lines, b"", body])


BUSY: bytes = refusal(
    503, "too many connections (HTTPLimits.connections, connections_per_address); try again", b"retry-after: 1"
)
"""The response to a connection over the limit."""


def unsent_bytes(transport: asyncio.Transport) -> int:
    """Return the number of bytes that the client has not read yet."""
    try:
        return transport.get_write_buffer_size()
    except RuntimeError:  # uvloop: the transport is closed
        return 0
