"""An API over HTTP: requests by aiohttp, which is imported when the first one is sent.

No cookies are kept, for one caller must not meet those of another; no redirect is followed here.

An API in this very process: an ASGI application, called without a socket.

Its lifespan begins before its first request and ends with whoever opened it; an application without one goes without.
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
from accord.redaction import redact
from accord.server.openapi.messages import APIAnswer, APIRequest, Send
from accord.transport.http.failures import http_errors, request_error
from accord.transport.http.fetcher import proxy_for

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


log: logging.Logger = logging.getLogger("accord.server")

Message: TypeAlias = MutableMapping[str, Any]
ASGIApp: TypeAlias = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

_PORTS = {"http": 80, "https": 443}
_START_SECONDS = 60
"""Time for an application to begin its lifespan."""
_STOP_SECONDS = 10
"""Time for an application to end its lifespan."""


@asynccontextmanager
async def application(app: ASGIApp, most: int, lifespan: bool) -> AsyncIterator[Send]:
    """What sends requests to an application; answers of at most `most` bytes. `lifespan`: whether its lifespan is run
    here, rather than by whoever else serves it. Raises `ToolError` if it does not start.
    """
    life = _ASGILifespan(app)
    if lifespan:
        await life.start()

    running: set[asyncio.Task[None]] = set()

    async def send(request: APIRequest) -> APIAnswer:
        return await _ASGICall(request, most, life.state).call(app, running)

    try:
        yield send
    finally:
        try:
            await _ended(running)
        finally:
            await life.stop()


async def _ended(running: set[asyncio.Task[None]]) -> None:
    """What an application does after its answers is given time to end."""
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
        """What the application keeps for its requests."""
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
            log.error("accord: the application did not start: %s", redact(str(answer.get("message", ""))))
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
    """One request to an application, and what it answers.

    The application runs in a task of its own: it may go on after its answer, with what it does in the background.
    """

    def __init__(self, request: APIRequest, most: int, state: dict[str, Any]) -> None:
        self._request = request
        self._most = most
        self._state = state
        self._body_sent = False
        self._status = 0
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._what = f"{request.method} {urlsplit(request.url).path}"
        self._over = asyncio.Event()
        self._answer: asyncio.Future[APIAnswer] = asyncio.get_running_loop().create_future()

    async def call(self, app: ASGIApp, running: set[asyncio.Task[None]]) -> APIAnswer:
        """The answer, as soon as it is whole; the application is in `running` until it ends. Raises `ToolError`."""
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

    def _fail(self, why: str, cause: BaseException | None = None) -> None:
        """There will be no answer, if there is none yet."""
        if not self._answer.done():
            error = ToolError(f"{self._what}: {why}")
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

    def _add(self, piece: bytes) -> None:
        """More of the body. Raises `ToolError`, whatever the application makes of it."""
        if len(self._body) + len(piece) > self._most:
            error = too_large(self._what, self._most)
            if not self._answer.done():
                self._answer.set_exception(error)
            raise error
        self._body += piece
