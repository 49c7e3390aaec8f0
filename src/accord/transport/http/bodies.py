"""Reading what a response says, within bounds: one message, or the beginning of what is none."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from accord.errors import RemoteProtocolError
from accord.transport.http.failures import failure, http_errors

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_AT_ONCE = 256 << 10
_EXCERPT_BYTES = 2_000
_EXCERPT_SECONDS = 1
_REST_SECONDS = 1


def is_stream(response: ClientResponse) -> bool:
    """Whether it is a stream of events."""
    return response.status == 200 and response.content_type == "text/event-stream"


def is_json(response: ClientResponse) -> bool:
    """Whether it says that it is JSON."""
    return response.content_type == "application/json" or response.content_type.endswith("+json")


async def whole(response: ClientResponse, most: int, what: str) -> bytes:
    """A body of at most `most` bytes. Raises `RemoteProtocolError` for a larger one, `ConnectionLost` if it breaks."""
    length = response.content_length
    try:
        if length is not None and length <= min(most, _AT_ONCE) and "Content-Encoding" not in response.headers:
            return await response.read()
        body = bytearray()
        async for piece in response.content.iter_any():
            body += piece
            if len(body) > most:
                raise RemoteProtocolError(f"{what}: the answer is larger than {most:,} bytes (Limits.line_bytes)")
    except http_errors() as exc:
        raise failure(exc, what, response.url.authority) from exc
    return bytes(body)


async def beginning(response: ClientResponse) -> bytes:
    """How a body begins, as far as it comes soon: it is no answer, and may break off."""
    body = bytearray()
    try:
        async with asyncio.timeout(_EXCERPT_SECONDS):
            while len(body) < _EXCERPT_BYTES and (piece := await response.content.read(_EXCERPT_BYTES)):
                body += piece
    except http_errors():  # a timeout is one of them
        return bytes(body)
    return bytes(body)


async def finish(response: ClientResponse) -> None:
    """Wait a moment for the end of a response whose purpose is served, so that its connection can be used again."""
    if response.content.at_eof():
        return
    try:
        async with asyncio.timeout(_REST_SECONDS):
            while not response.content.at_eof():
                await response.content.readany()
    except http_errors():
        response.close()
