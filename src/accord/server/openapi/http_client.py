"""The HTTP clients of an import: aiohttp for an API over the network, and ASGI for an application in this process.

aiohttp is imported with the first request. Cookies are not stored, so that clients of the server do not share them, and
redirects are not followed here. An application is called without a socket. Its lifespan starts before its first request
and ends with the server; an application without a lifespan is called without one.
"""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote, urlsplit

from accord.errors import ToolError
from accord.redaction import redact_beginning
from accord.server.openapi.messages import APIAnswer, APIRequest, Send
from accord.transport.http.failures import http_errors, request_error
from accord.transport.http.fetcher import proxy_for

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

_LARGE = 1 << 20
"""aiohttp warns about larger bodies that are passed as bytes."""


@asynccontextmanager
async def connections(max_bytes: int) -> AsyncIterator[Send]:
    """Yield a function that sends requests over pooled connections; a response has at most `max_bytes` bytes."""
    import aiohttp

    async with aiohttp.ClientSession(
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        skip_auto_headers=("User-Agent", "Content-Type"),
    ) as session:

        async def send(request: APIRequest) -> APIAnswer:
            return await _send(session, request, max_bytes)

        yield send


async def _send(session: ClientSession, request: APIRequest, max_bytes: int) -> APIAnswer:
    """Send a request and return its response. Raises `ToolError`."""
    from yarl import URL

    url = URL(request.url, encoded=True)  # as built: neither decoded nor normalized
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
            body = await _body(response, max_bytes, what)
            headers = {name.lower(): value for name, value in response.headers.items()}
            return APIAnswer(status=response.status, headers=headers, body=body)
    except http_errors() as exc:
        raise ToolError(str(request_error(exc, what, url.authority))) from exc


def _data(body: bytes | None) -> bytes | io.BytesIO | None:
    return io.BytesIO(body) if body is not None and len(body) > _LARGE else body


async def _body(response: ClientResponse, max_bytes: int, what: str) -> bytes:
    body = bytearray()
    while chunk := await response.content.readany():
        body += chunk
        if len(body) > max_bytes:
            raise too_large(what, max_bytes)
    return bytes(body)


def too_large(what: str, max_bytes: int) -> ToolError:
    """Return the error for a response that is larger than the limit."""
    return ToolError(f"{what}: the answer is larger than {max_bytes:,} bytes (Limits.upstream_bytes)")


log: logging.Logger = logging.getLogger("accord.server")

Message: TypeAlias = MutableMapping[str, Any]
ASGIApp: TypeAlias = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

_PORTS = {"http": 80, "https": 443}
_START_SECONDS = 60
"""Seconds for an application to start its lifespan."""
_STOP_SECONDS = 10
"""Seconds for an application to end its lifespan."""


@asynccontextmanager
async def application(app: ASGIApp, max_bytes: int, lifespan: bool) -> AsyncIterator[Send]:
    """Yield a function that calls an application; a response has at most `max_bytes` bytes.

    `lifespan` is whether this function runs the application's lifespan; False if another server does. Raises
    `ToolError` if the application does not start.
    """
    asgi_lifespan = _ASGILifespan(app)
    if lifespan:
        await asgi_lifespan.start()

    running: set[asyncio.Task[None]] = set()

    async def send(request: APIRequest) -> APIAnswer:
        return await _ASGICall(request, max_bytes, asgi_lifespan.state).call(app, running)

    try:
        yield send
    finally:
        try:
            await _finish(running)
        finally:
            await asgi_lifespan.stop()


async def _finish(running: set[asyncio.Task[None]]) -> None:
    """Wait for tasks of the application that go on after their response, then cancel them."""
    try:
        if running:
            await asyncio.wait(running, timeout=_STOP_SECONDS)
    finally:
        for task in [*running]:
            task.cancel()


class _ASGILifespan:
    """The lifespan of an application, in a task of its own."""

    def __init__(self, app: ASGIApp) -> None:
        self.state: dict[str, Any] = {}
        """State that the application's lifespan passes to its requests."""
        self._app = app
        self._from_app: asyncio.Queue[Message] = asyncio.Queue()
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run())
        self._to_app.put_nowait({"type": "lifespan.startup"})
        try:
            async with asyncio.timeout(_START_SECONDS):
                answer = await self._from_app.get()
        except TimeoutError:
            self._task.cancel()
            raise ToolError(f"the application did not start within {_START_SECONDS} s") from None
        if answer["type"] == "lifespan.startup.failed":
            await asyncio.wait([self._task], timeout=_STOP_SECONDS)
            log.error("accord: the application did not start: %s", redact_beginning(str(answer.get("message", ""))))
            raise ToolError("the application did not start; its log has the reason")

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        try:
            await self._app(scope, self._to_app.get, self._from_app.put)
        except Exception:  # "If an exception is raised [...] the server must continue but not send any lifespan events"
            self._from_app.put_nowait({"type": "lifespan.none"})
        else:
            self._from_app.put_nowait({"type": "lifespan.over"})

    async def stop(self) -> None:
        if self._task is None or self._task.done():
            return
        self._to_app.put_nowait({"type": "lifespan.shutdown"})
        await asyncio.wait([self._task], timeout=_STOP_SECONDS)
        self._task.cancel()


class _ASGICall:
    """One request to an application, and its response.

    The application runs in a task of its own, since it may do background work after its response.
    """

    def __init__(self, request: APIRequest, max_bytes: int, state: dict[str, Any]) -> None:
        self._request = request
        self._max_bytes = max_bytes
        self._state = state
        self._body_sent = False
        self._status = 0
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._what = f"{request.method} {urlsplit(request.url).path}"
        self._over = asyncio.Event()
        self._answer: asyncio.Future[APIAnswer] = asyncio.get_running_loop().create_future()

    async def call(self, app: ASGIApp, running: set[asyncio.Task[None]]) -> APIAnswer:
        """Return the response once it is complete; the application stays in `running` until it ends. Raises
        `ToolError`.
        """
        task = asyncio.create_task(self._run(app))
        running.add(task)
        task.add_done_callback(running.discard)
        try:
            return await self._answer
        finally:
            if not self._over.is_set():
                task.cancel()

    async def _run(self, app: ASGIApp) -> None:
        try:
            await app(self._scope(), self._receive, self._send)
        except Exception as exc:
            if self._over.is_set():
                log.exception("accord: %s: the application failed after its answer", self._what)
            self._fail(f"the application failed: {type(exc).__name__}", exc)
        else:
            self._fail("the application ended without an answer")

    def _fail(self, reason: str, cause: BaseException | None = None) -> None:
        """Set an error, unless the response is complete."""
        if not self._answer.done():
            error = ToolError(f"{self._what}: {reason}")
            error.__cause__ = cause
            self._answer.set_exception(error)

    def _scope(self) -> dict[str, Any]:
        url = urlsplit(self._request.url)
        port = url.port or _PORTS[url.scheme]
        headers = {"host": url.netloc, **self._request.headers}
        if self._request.body is not None:
            headers["content-length"] = str(len(self._request.body))
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": self._request.method,
            "scheme": url.scheme,
            "path": unquote(url.path),
            "raw_path": url.path.encode(),
            "query_string": url.query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 0),
            "server": (url.hostname, port),
            "state": dict(self._state),
        }

    async def _receive(self) -> Message:
        if not self._body_sent:
            self._body_sent = True
            return {"type": "http.request", "body": self._request.body or b"", "more_body": False}
        await self._over.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            for name, text in message.get("headers", ()):
                self._headers[bytes(name).decode("latin-1").lower()] = bytes(text).decode("latin-1")
        elif message["type"] == "http.response.body":
            self._add(message.get("body", b""))
            if not message.get("more_body", False):
                self._over.set()
                if not self._answer.done():
                    answer = APIAnswer(status=self._status, headers=self._headers, body=bytes(self._body))
                    self._answer.set_result(answer)

    def _add(self, chunk: bytes) -> None:
        """Add bytes to the body. Raises `ToolError` if it grows too large, and fails the call even if the application
        ignores it.
        """
        if len(self._body) + len(chunk) > self._max_bytes:
            error = too_large(self._what, self._max_bytes)
            if not self._answer.done():
                self._answer.set_exception(error)
            raise error
        self._body += chunk
