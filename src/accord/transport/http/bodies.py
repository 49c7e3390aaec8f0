"""Reading what a response says, within bounds: one message, or the beginning of what is none."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from accord.errors import RemoteProtocolError
from accord.transport.http.failures import http_errors, media_type, translate_read_errors

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_AT_ONCE = 256 << 10
_EXCERPT_BYTES = 2_000
_EXCERPT_SECONDS = 2


def is_stream(response: ClientResponse) -> bool:
    """Whether it is a stream of events."""
    return response.status == 200 and media_type(response) == "text/event-stream"


def is_json(response: ClientResponse) -> bool:
    """Whether it says that it is JSON."""
    kind = media_type(response)
    return kind == "application/json" or kind.endswith("+json")


async def read_body(response: ClientResponse, most: int, what: str) -> bytes:
    """A body of at most `most` bytes. Raises `RemoteProtocolError` for a larger one, `ConnectionLost` if it breaks."""
    length = response.content_length
    if length is not None and length <= min(most, _AT_ONCE) and "Content-Encoding" not in response.headers:
        with translate_read_errors(what):
            return await response.read()
    body = bytearray()
    while piece := await read_chunk(response, what):
        body += piece
        if len(body) > most:
            raise RemoteProtocolError(f"{what}: the answer is larger than {most:,} bytes (Limits.line_bytes)")
    return bytes(body)


async def read_chunk(response: ClientResponse, what: str) -> bytes:
    """What has come of a body; nothing at its end. Raises `ConnectionLost` if it breaks."""
    with translate_read_errors(what):
        return await response.content.readany()


async def read_excerpt(response: ClientResponse, most: int = _EXCERPT_BYTES) -> bytes:
    """How a body begins, as far as it comes soon: it is no answer, and may break off."""
    body = bytearray()
    try:
        async with asyncio.timeout(_EXCERPT_SECONDS):
            while len(body) < most and (piece := await response.content.read(_EXCERPT_BYTES)):
                body += piece
    except http_errors():  # a timeout is one of them
        return bytes(body)
    return bytes(body)


async def read_error_body(response: ClientResponse, most: int) -> bytes:
    """What a response says that is no answer: up to `most` bytes where that is JSON, else how it begins."""
    return await (read_excerpt(response, most) if is_json(response) else read_excerpt(response))
