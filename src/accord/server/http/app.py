"""The ASGI application: checks host, origin and authentication, and routes requests to endpoints.

    /mcp                2025-03-26 to 2026-07-28; also the root, for an app that is mounted under a path
    /sse, /messages     2024-11-05
    /health, /ready     for monitoring
    /.well-known/...    metadata, where tokens are verified (`auth/protected_resource`)

Each path also works with a trailing slash. The app works without the ASGI lifespan: it starts with the first request,
and ends with its event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import Context as ContextVariables
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from accord.errors import DeclarationError, InvalidRequest, LifespanError, StoreError
from accord.messages.revision import HANDSHAKE, LATEST, NO_SESSIONS, RULES
from accord.redaction import redact_record
from accord.server.auth.authentication import identify
from accord.server.auth.refusals import AuthRefused
from accord.server.core.per_loop import PerLoop
from accord.server.http.endpoint import RETRY_LATER, SHUTTING_DOWN, HTTPEndpoint
from accord.server.http.http_context import HTTPContext, HTTPServer
from accord.session.incoming import error_bytes
from accord.store.memory import MemoryEvents
from accord.transport.asgi.request import (
    ASGIRequest,
    ClientDisconnected,
    Receive,
    RequestRejected,
    Scope,
    Send,
    send_json,
    send_text,
)

if TYPE_CHECKING:
    from accord.server.auth.protected_resource import ProtectedResource
    from accord.server.http.options import HTTPOptions

log: logging.Logger = logging.getLogger("accord")
log.addFilter(redact_record)

CLIENT_CLOSED_REQUEST = 499
""" "Client Closed Request": not a registered HTTP status, but the one that proxies log."""

RouteHandler = Callable[[ASGIRequest], Awaitable[None]]


class HTTPApp:
    """A server as an ASGI application."""

    def __init__(self, server: HTTPServer, options: HTTPOptions) -> None:
        self.options: HTTPOptions = options
        self._server = server
        self._host_check = options.gate()
        self._cors = options.cors() if options.origins else None
        self._endpoints: PerLoop[HTTPEndpoint] = PerLoop(lambda endpoint: endpoint.context.close())
        self._ending: PerLoop[bool] = PerLoop()
        self._public_root = options.public_root()
        self._resource = None if server.auth is None else _protected_resource(server, options)
        self._public_routes: dict[str, RouteHandler] = {} if self._resource is None else self._resource.routes
        self._routes: dict[str, RouteHandler] = {}
        routes: dict[str, RouteHandler] = {
            options.path.rstrip("/"): self._mcp,
            "": self._mcp,
            "/sse": self._sse,
            "/messages": self._messages,
            "/health": self._health,
            "/ready": self._ready,
        }
        self._public_urls: dict[str, str | None] = {}
        for root in {"", self._public_root}:  # a proxy may or may not strip its part of the path
            for path, route in routes.items():  # some frameworks add a trailing slash
                self._routes |= {root + path: route, f"{root}{path}/": route}
                url = options.public_url if route == self._mcp else options.public_url_of(path)
                self._public_urls |= {root + path: url, f"{root}{path}/": url}

    @property
    def draining(self) -> bool:
        """Whether the server refuses new work on this loop."""
        return bool(self._ending) and asyncio.get_running_loop() in self._ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection scope."""
        if scope["type"] != "http":
            return await self._other_scope(scope, receive, send)
        request = ASGIRequest(scope, receive, send)
        if self._server.instrumentation is not None:
            self._server.instrumentation.http_request_received(request)
        if self._cors is not None and request.path not in self._public_routes:
            request.send = self._with_cors(send, request.headers.get(b"origin"))
        try:
            await self._route(request)(request)
        except RequestRejected as exc:
            await self._reject(exc, request.send)
        except AuthRefused as exc:
            challenge = exc.challenge if self._resource is None else self._resource.challenge(exc, request)
            headers = ((b"www-authenticate", challenge.encode()),) if challenge else ()
            await self._reject(RequestRejected(exc.status, str(exc), headers), request.send)
        except StoreError as exc:
            log.error("accord: %s", exc)
            await self._reject(
                RequestRejected(503, "the store of the server is not available; try again later", RETRY_LATER),
                request.send,
            )
        except (LifespanError, DeclarationError) as exc:
            log.error("accord: %s", exc, exc_info=exc.__cause__)
            rejected = RequestRejected(503, "the server could not start; its log says why", RETRY_LATER)
            await self._reject(rejected, request.send)
        except ClientDisconnected:
            with suppress(OSError):  # no client reads it; an outer middleware may wait for a response, and log it
                await send_text(request.send, CLIENT_CLOSED_REQUEST, "")

        return None

    def check_public_url(self) -> None:
        """Raise `DeclarationError` for a server that other machines reach, and that verifies tokens, without a public
        URL.
        """
        if self._resource is not None:
            self._resource.check_public_url()

    async def _other_scope(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008, "reason": "there is no WebSocket here"})

    def _route(self, request: ASGIRequest) -> RouteHandler:
        """Return the handler of an allowed request. Raises `RequestRejected`."""
        headers = request.headers
        public = self._public_routes.get(request.path) if self._public_routes else None
        sender = headers.get(b"host"), None if public else headers.get(b"origin")
        if sender not in self._host_check.allowed and (refusal := self._host_check.refusal(*sender)) is not None:
            raise RequestRejected(403, refusal)
        if public is not None:
            return public
        if request.conflicting_header is not None:
            raise RequestRejected(
                400, f"the header {request.conflicting_header.decode('latin-1')} occurs twice with different values"
            )
        route = self._routes.get(request.path)
        if route is None:
            mcp_path = (self._public_root or request.root) + self.options.path
            raise RequestRejected(404, f"nothing is at {request.path[:100]!r}; MCP is at {mcp_path}")
        return self._preflight if request.method == "OPTIONS" else route

    async def _reject(self, exc: RequestRejected, send: Send) -> None:
        """ "The HTTP response body MAY comprise a JSON-RPC error response that has no id" """
        body = error_bytes(None, InvalidRequest(exc.message), RULES[LATEST])
        await send_json(send, exc.status, body, exc.headers)

    # --- routes ------------------------------------------------------------------------------------------------

    async def _mcp(self, request: ASGIRequest) -> None:
        method = request.method
        endpoint = self._endpoints.get(asyncio.get_running_loop())
        if self._ending and self.draining and (endpoint is None or not endpoint.continues(request)):
            raise RequestRejected(503, *SHUTTING_DOWN)
        if endpoint is None:
            endpoint = await self._start_endpoint()
        endpoint.active_requests += 1
        try:
            if self._server.auth is not None:
                await self._authenticate(request)
                if endpoint.draining and not endpoint.continues(request):
                    raise RequestRejected(503, *SHUTTING_DOWN)
            if method == "POST":
                await endpoint.post(request)
            elif method == "GET":
                await endpoint.get(request)
            elif method == "DELETE":
                await endpoint.delete(request)
            else:
                raise RequestRejected(405, f"there is no {method[:20]} here", ((b"allow", b"POST, GET, DELETE"),))
        finally:
            endpoint.active_requests -= 1
            if endpoint.idle is not None and not endpoint.active_requests:
                endpoint.idle.set()

    async def _sse(self, request: ASGIRequest) -> None:
        if request.method != "GET":
            raise RequestRejected(405, "open the stream with GET", ((b"allow", b"GET"),))
        if self.options.stateless:
            raise RequestRejected(404, f"HTTP+SSE needs sessions: {NO_SESSIONS}")
        if not any(revision in HANDSHAKE for revision in self._server.revisions):
            raise RequestRejected(404, "this server speaks revisions without sessions only")
        await self._authenticate(request)
        endpoint = await self._start_endpoint()
        await endpoint.open_sse_stream(f"{self._public_root or request.root}/messages", request)

    async def _messages(self, request: ASGIRequest) -> None:
        if request.method != "POST":
            raise RequestRejected(405, "send messages with POST", ((b"allow", b"POST"),))
        if self.options.stateless:
            raise RequestRejected(404, f"HTTP+SSE needs sessions: {NO_SESSIONS}")
        await self._authenticate(request)
        endpoint = await self._start_endpoint()
        await endpoint.post_sse_message(_session_id(request), request)

    async def _health(self, request: ASGIRequest) -> None:
        await send_text(request.send, 200, "ok\n")

    async def _ready(self, request: ASGIRequest) -> None:
        if self.draining:
            await send_text(request.send, 503, "shutting down\n", RETRY_LATER)
        else:
            await send_text(request.send, 200, "ready\n")

    async def _authenticate(self, request: ASGIRequest) -> None:
        """Set the principal, if there is `auth`. Raises `AuthRefused`, `RequestRejected`."""
        auth = self._server.auth
        if auth is None:
            return
        request.public_url = self._public_urls.get(request.path)
        if self._resource is not None:
            request.resource = self._resource.identifier(request)
        pending = (await self._start_endpoint()).context.pending_authentications
        request.account = pending.add(request)
        try:
            request.principal = await identify(auth, request, self._server.limits.http.auth_seconds)
        finally:
            pending.remove(request.account)
            if request.response_headers:
                request.send = _with_headers(request.send, request.response_headers)

    # --- CORS --------------------------------------------------------------------------------------------------

    async def _preflight(self, request: ASGIRequest) -> None:
        headers = None if self._cors is None else self._cors.preflight(request.headers)
        if headers is None:
            raise RequestRejected(405, "OPTIONS is not supported here", ((b"allow", b"POST, GET, DELETE"),))
        await send_text(request.send, 204, "", headers)

    def _with_cors(self, send: Send, origin: bytes | None) -> Send:
        """Return a `send` that adds the CORS headers for this origin."""
        return _with_headers(send, self._cors.answer(origin) if self._cors is not None else [])

    # --- lifetime ----------------------------------------------------------------------------------------------

    async def start(self) -> HTTPEndpoint:
        """Return the endpoint of this loop, created if necessary. Raises `StoreError` if the store cannot be read."""
        loop = asyncio.get_running_loop()
        endpoint = self._endpoints.get(loop)
        if endpoint is not None:
            return endpoint
        await self._server.lifetimes.enter()
        events = self.options.events or MemoryEvents(self._server.limits)
        try:
            await events.open()
        except BaseException:
            await self._server.lifetimes.leave()
            raise
        if (endpoint := self._endpoints.get(loop)) is not None:  # another request created it meanwhile
            await events.close()
            await self._server.lifetimes.leave()
            return endpoint
        return self._endpoints.add(HTTPEndpoint(HTTPContext(self._server, self.options, events)))

    async def _start_endpoint(self) -> HTTPEndpoint:
        """Return the endpoint of this loop for a request; see `start`.

        It starts without the context variables of the first request, which may identify its principal. Raises
        `RequestRejected` (503) after the shutdown: a request may have waited for `auth` until then.
        """
        endpoint = self._endpoints.get(asyncio.get_running_loop())
        if endpoint is None:
            if self.draining:
                raise RequestRejected(503, *SHUTTING_DOWN)
            endpoint = await asyncio.create_task(self.start(), context=ContextVariables())
        return endpoint

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        self._ending.pop(asyncio.get_running_loop(), None)
        try:
            await self.start()
        except (StoreError, LifespanError, DeclarationError) as exc:
            log.error("accord: %s", exc, exc_info=exc.__cause__)
            await send({"type": "lifespan.startup.failed", "message": str(exc)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.drain(self._server.limits.grace_seconds)
        await self.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def drain(self, seconds: float) -> bool:
        """Refuse new work, end the streams, and wait at most `seconds` for running requests. Return whether all were
        answered.

        `/ready` then returns 503; `/health` still returns 200. Other loops are not affected.
        """
        self._ending.add(True)
        endpoint = self._endpoints.get(asyncio.get_running_loop())
        if endpoint is None:
            return True
        endpoint.context.subscription_index.flush()  # send pending change notifications before the streams end
        endpoint.drain()
        try:
            await asyncio.wait_for(endpoint.finish(), seconds)
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Close everything that remains on this loop."""
        if self._resource is not None:
            await self._resource.close()
        endpoint = self._endpoints.pop(asyncio.get_running_loop(), None)
        if endpoint is None:
            return
        try:
            await endpoint.close()
            await endpoint.context.events.close()  # the store may be shared
        finally:
            await self._server.lifetimes.leave()


def _with_headers(send: Send, extra: Sequence[tuple[bytes, bytes]]) -> Send:
    """Return a `send` that adds headers to the response."""

    async def send_with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *extra]
        await send(message)

    return send_with_headers


def _protected_resource(server: HTTPServer, options: HTTPOptions) -> ProtectedResource | None:
    """Return the protected resource of a server that verifies tokens. Raises `DeclarationError`."""
    from accord.server.auth.protected_resource import protected_resource

    info = server.profile().info
    return protected_resource(server.auth, "" if info is None else info.title or info.name, options)


def _session_id(request: ASGIRequest) -> str:
    """Return the session id in a message's query; an empty string, which no session has, if it is
    missing or invalid.
    """
    query: str = request.scope.get("query_string", b"").decode("latin-1")
    try:
        return parse_qs(query, max_num_fields=20).get("session_id", [""])[0]
    except ValueError:
        return ""
