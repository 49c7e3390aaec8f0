"""An API over HTTP: requests by aiohttp, which is imported when the first one is sent.

No cookies are kept, for one caller must not meet those of another; no redirect is followed here.
"""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from accord.errors import ToolError
from accord.server.openapi.messages import APIAnswer, APIRequest, Send
from accord.transport.http.failures import http_errors, request_error
from accord.transport.http.proxy import proxy_for

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

_LARGE = 1 << 20
"""Of more bytes at once aiohttp warns."""


@asynccontextmanager
async def connections(most: int) -> AsyncIterator[Send]:
    """What sends requests, over connections that are kept; answers of at most `most` bytes."""
    import aiohttp

    async with aiohttp.ClientSession(
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        skip_auto_headers=("User-Agent", "Content-Type"),
    ) as session:

        async def send(request: APIRequest) -> APIAnswer:
            return await _send(session, request, most)

        yield send


async def _send(session: ClientSession, request: APIRequest, most: int) -> APIAnswer:
    """Raises `ToolError`."""
    from yarl import URL

    url = URL(request.url, encoded=True)  # as it was built: nothing is decoded, nothing is joined
    what = f"{request.method} {url.path}"
    try:
        proxy = proxy_for(url, None)
        async with session.request(
            request.method,
            url,
            headers=request.headers,
            data=_data(request.body),
            allow_redirects=False,
            proxy=proxy.url,
            proxy_headers=proxy.headers,
        ) as response:
            body = await _body(response, most, what)
            headers = {name.lower(): value for name, value in response.headers.items()}
            return APIAnswer(status=response.status, headers=headers, body=body)
    except http_errors() as exc:
        raise ToolError(str(request_error(exc, what, url.authority))) from exc


def _data(body: bytes | None) -> bytes | io.BytesIO | None:
    return io.BytesIO(body) if body is not None and len(body) > _LARGE else body


async def _body(response: ClientResponse, most: int, what: str) -> bytes:
    body = bytearray()
    while piece := await response.content.readany():
        body += piece
        if len(body) > most:
            raise too_large(what, most)
    return bytes(body)


def too_large(what: str, most: int) -> ToolError:
    """An answer that nobody wants in memory."""
    return ToolError(f"{what}: the answer is larger than {most:,} bytes (Limits.upstream_bytes)")
