"""The HTTP endpoints of a server: they select the protocol's revision for a request, and the session.

The revision belongs to the request. A POST with the header of 2026-07-28 is stateless; any other belongs to a session,
or opens one; GET and DELETE exist for sessions only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import UNSET

from accord.errors import InvalidRequest, ProtocolError
from accord.messages import envelope
from accord.messages.bounds import MAX_EXTREMES, MEASURED_BYTES, has_more_nodes
from accord.messages.envelope import Incoming, MalformedMessage, outlines
from accord.messages.revision import BEFORE_OPENING, HANDSHAKE, LATEST, NO_SESSIONS, RULES, Rules
from accord.server.http.access_log import request_fields
from accord.server.http.base_session import is_own_id, new_id
from accord.server.http.http_context import SEVERAL_WORKERS, HTTPContext
from accord.server.http.quotas import BodyCharge
from accord.server.http.session import HTTPSession
from accord.server.http.sessionless import SessionlessHandler
from accord.server.http.sessions import PersistentSessionTable, SessionTable
from accord.server.http.sse_session import SSESession
from accord.server.http.stateless import StatelessClients, StatelessHandler
from accord.session import peek
from accord.session.incoming import error_bytes
from accord.transport.asgi.request import ASGIRequest, Headers, RequestRejected, Send, send_json, send_text
from accord.wire.headers import LAST_EVENT_ID, PER_REQUEST_REVISIONS, PROTOCOL_VERSION, SESSION_ID
from accord.wire.request_headers import accepts, check_version, is_json, status_of_refusal

if TYPE_CHECKING:
    from accord.server.core.principal import Principal

_SWEEP_SECONDS = 5.0
RETRY_LATER: Headers = ((b"retry-after", b"5"), (b"connection", b"close"))
SHUTTING_DOWN: tuple[str, Headers] = "the server is shutting down", RETRY_LATER
"""The error for new work during shutdown."""

_ACCEPT_IDENTITY = ((b"accept-encoding", b"identity"),)  # RFC 9110, 12.5.3
_ALLOW_POST = ((b"allow", b"POST"),)


class HTTPEndpoint:
    """The endpoints of one server on one event loop, with its sessions and clients."""

    def __init__(self, context: HTTPContext) -> None:
        self.context: HTTPContext = context
        self.sessions: PersistentSessionTable = PersistentSessionTable(context)
        self.sse: SessionTable[SSESession] = SessionTable(context)
        self.active_requests: int = 0
        """The number of requests in progress."""
        self.draining: bool = False
        """Whether new work is refused."""
        self.idle: asyncio.Event | None = None
        """Set when no request is in progress."""
        self._clients = StatelessClients(context)
        self._stateless = StatelessHandler(context, self._clients)
        self._sessionless = SessionlessHandler(context, self._clients) if context.options.stateless else None
        self._session_revisions = frozenset(
            revision.encode() for revision in context.server.revisions if revision in HANDSHAKE
        )
        self._sweeping = context.loop.create_task(self._sweep())

    # --- Streamable HTTP ---------------------------------------------------------------------------------------

    async def post(self, request: ASGIRequest) -> None:
        """Handle a POST. Raises `RequestRejected`."""
        headers = request.headers
        if not is_json(headers.get(b"content-type")) or b"content-encoding" in headers:
            _check_content(headers)
        if not all(accepts(headers.get(b"accept"))):
            raise RequestRejected(
                406, "the response is JSON or an event stream: send Accept: application/json, text/event-stream"
            )
        is_stateless = headers.get(PROTOCOL_VERSION) in PER_REQUEST_REVISIONS
        charge = BodyCharge(self.context.body_budget, self.context.account, request)
        try:
            body = await request.body(self.context.limits, charge)
            if len(body) > MEASURED_BYTES:
                self._check_nodes(body)
            if request.access_log is not None:
                request.access_log.update(request_fields(body, headers, request.principal))
            if self.draining and _is_request(body):
                raise RequestRejected(503, *SHUTTING_DOWN)
            if is_stateless:
                await self._stateless.post(envelope.read(body), request)
            else:
                await self._post_of_older_revision(body, request, charge)
        except (MalformedMessage, ProtocolError) as exc:
            await self._refuse(exc, RULES[LATEST] if is_stateless else BEFORE_OPENING, request.send)
        finally:
            charge.release()

    def _check_nodes(self, body: bytes) -> None:
        """Raise `MalformedMessage` for a message that would take too long to decode."""
        max_nodes = self.context.limits.http.body_nodes
        if has_more_nodes(body, max_nodes):
            id = next((each.id for each in outlines(body)), None)
            reason = (
                f"more than {max_nodes:,} arrays, objects and members, or twice as many items (HTTPLimits.body_nodes), "
                f"or more than {MAX_EXTREMES:,} numbers with an exponent of three digits"
            )
            raise MalformedMessage(InvalidRequest(f"a message has {reason}: send less at once"), id)

    async def _post_of_older_revision(self, body: bytes, request: ASGIRequest, charge: BodyCharge) -> None:
        """Handle a POST of a session, created for `initialize`, or of a server without sessions."""
        headers = request.headers
        version = headers.get(PROTOCOL_VERSION)
        if version is not None and version not in self._session_revisions:
            self._check_version(envelope.read(body), headers)
        if self._sessionless is not None:
            return await self._sessionless.post(body, request)
        if (id := headers.get(SESSION_ID)) is not None:
            session = await self.sessions.get_or_restore(id.decode("latin-1"), request)
            return await session.post(body, request, charge)
        session = await self._new_session(body, request)
        opened = False
        try:
            await session.post(body, request, charge)
            opened = bool(session.session.rules.revision)
        finally:
            if not opened:
                await self.sessions.end(session, "it was not opened")

    async def _new_session(self, body: bytes, request: ASGIRequest) -> HTTPSession:
        """Return a new session for an `initialize`. Raises `MalformedMessage` for any other message."""
        incoming = envelope.read(body)
        self._check_version(incoming, request.headers)
        if incoming.method != "initialize":
            raise MalformedMessage(
                InvalidRequest("Mcp-Session-Id is missing: send initialize, then the id that comes with its answer"),
                incoming.id,
            )
        account = self.context.account(request)
        await self.sessions.ensure_capacity(account)
        session = HTTPSession(self.context, request.principal, account, new_id())
        self.sessions.add(session)
        return session

    def _check_version(self, incoming: Incoming, headers: Mapping[bytes, bytes]) -> None:
        """Raise `MalformedMessage` if header and message name different revisions, or an unsupported one."""
        try:
            check_version(headers, _requested_revision(incoming), self.context.server.revisions)
        except ProtocolError as error:
            raise MalformedMessage(error, incoming.id) from error

    async def _refuse(self, exc: MalformedMessage | ProtocolError, rules: Rules, send: Send) -> None:
        """Send the error for a malformed message, with its id if that was read."""
        error = exc.error if isinstance(exc, MalformedMessage) else exc
        id = exc.id if isinstance(exc, MalformedMessage) else None
        await send_json(send, max(400, status_of_refusal(error.code)), error_bytes(id, error, rules))

    async def get(self, request: ASGIRequest) -> None:
        """Handle a GET: open the stream of a session, or resume one. Raises `RequestRejected`."""
        headers = request.headers
        self._check_session_revision(headers, "there is no GET in this revision; subscribe with subscriptions/listen")
        if not accepts(headers.get(b"accept"))[1]:
            raise RequestRejected(406, "the response is an event stream: send Accept: text/event-stream")
        session = await self.sessions.get_or_restore(self._id(headers), request)
        await session.listen(headers.get(LAST_EVENT_ID), request)

    async def delete(self, request: ASGIRequest) -> None:
        """Handle a DELETE: end a session. Raises `RequestRejected`."""
        headers = request.headers
        self._check_session_revision(headers, "there are no sessions in this revision")
        session = await self.sessions.get_or_restore(self._id(headers), request)
        await self.sessions.end(session, "the client has ended its session")
        await send_text(request.send, 200, "")

    def _check_session_revision(self, headers: Mapping[bytes, bytes], reason: str) -> None:
        """Raise `RequestRejected` unless the revision of a GET or DELETE has sessions."""
        version = headers.get(PROTOCOL_VERSION)
        if version in PER_REQUEST_REVISIONS or not self._session_revisions:
            raise RequestRejected(405, reason, _ALLOW_POST)
        if self._sessionless is not None:
            raise RequestRejected(405, f"GET and DELETE need a session: {NO_SESSIONS}", _ALLOW_POST)
        if version is not None and version not in self._session_revisions:
            raise RequestRejected(400, f"revision {version.decode('latin-1')!r:.100} is not supported here")

    def _id(self, headers: dict[bytes, bytes]) -> str:
        id = headers.get(SESSION_ID)
        if id is None:
            raise RequestRejected(400, "Mcp-Session-Id is missing: it is a header of the response to initialize")
        return id.decode("latin-1")

    # --- HTTP+SSE ----------------------------------------------------------------------------------------------

    async def open_sse_stream(self, messages: str, request: ASGIRequest) -> None:
        """Serve the stream of a client of 2024-11-05, which posts to `messages`. Raises `RequestRejected`."""
        if self.draining:
            raise RequestRejected(503, *SHUTTING_DOWN)
        account = self.context.account(request)
        await self.sse.ensure_capacity(account)
        session = SSESession(self.context, request, account, new_id())
        self.sse.add(session)
        try:
            await session.run(messages, request.receive)
        finally:
            await self.sse.end(session, "the client has closed its stream")

    async def post_sse_message(self, id: str, request: ASGIRequest) -> None:
        """Handle a POST of a client of 2024-11-05. Raises `RequestRejected`."""
        _check_content(request.headers)
        self._sse_session(id, request.principal)
        charge = BodyCharge(self.context.body_budget, self.context.account, request)
        try:
            body = await request.body(self.context.limits, charge)
            try:
                self._check_nodes(body)
            except MalformedMessage as exc:
                raise RequestRejected(413, str(exc)) from exc
            session = self._sse_session(id, request.principal)  # it may have ended while the body was read
            await session.post(body, request, charge)
        finally:
            charge.release()

    def _sse_session(self, id: str, principal: Principal | None) -> SSESession:
        session = self.sse.find(id, principal)
        if session is None:
            if not is_own_id(id):
                self.context.warn_about_workers("a message was posted for a session that this process has not begun")
            raise RequestRejected(
                404, f"unknown session: it has expired or ended: open the stream again; {SEVERAL_WORKERS}"
            )
        return session

    # --- shutdown ----------------------------------------------------------------------------------------------

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(_SWEEP_SECONDS, self.context.limits.http.session_idle_seconds / 4))
            await self.sessions.sweep()
            await self.sse.sweep()

    def continues(self, request: ASGIRequest) -> bool:
        """Return whether a request may continue running work: a response, a cancellation, or the resumption of a
        stream.
        """
        headers = request.headers
        id, last = headers.get(SESSION_ID), headers.get(LAST_EVENT_ID)
        session = None if id is None else self.sessions.get(id.decode("latin-1"))
        if session is None or headers.get(PROTOCOL_VERSION) in PER_REQUEST_REVISIONS:
            return False
        return request.method == "POST" or (request.method == "GET" and last is not None and session.resumes(last))

    def drain(self) -> None:
        """Refuse new work, and end the streams that would otherwise stay open, so that running requests can finish."""
        self.draining = True
        self._clients.drain()
        self._stateless.drain()
        for session in self.sessions:
            session.drain()
        for client in self.sse:
            client.drain()

    async def finish(self) -> None:
        """Wait for running requests, then close the streams of HTTP+SSE."""
        while self.active_requests:
            self.idle = self.idle or asyncio.Event()
            self.idle.clear()
            await self.idle.wait()
        for client in self.sse:
            await client.finish()

    async def close(self) -> None:
        """Close all sessions and streams."""
        self._sweeping.cancel()
        await self._clients.close()
        await self.sessions.close("the server was closed")
        await self.sse.close("the server was closed")
        self.context.close()


def _check_content(headers: Mapping[bytes, bytes]) -> None:
    """Raise `RequestRejected` unless a body is JSON, and is not encoded."""
    if not is_json(headers.get(b"content-type")):
        raise RequestRejected(415, "the body of a POST must be JSON: send Content-Type: application/json")
    coding = headers.get(b"content-encoding", b"").decode("latin-1")
    if coding.lower() not in ("", "identity"):
        raise RequestRejected(
            415, f"the Content-Encoding is {coding!r:.100}: send the body without one", _ACCEPT_IDENTITY
        )


def _is_request(body: bytes) -> bool:
    """Return whether a body is a request, rather than a response, a notification or invalid."""
    try:
        incoming = envelope.read(body)
    except (MalformedMessage, ProtocolError):
        return False
    return bool(incoming.method) and incoming.id is not UNSET


def _requested_revision(incoming: Incoming) -> str | None:
    """Return the revision in a request's `_meta`."""
    meta = peek.mirrored_params(incoming.params).meta
    return None if meta is None else meta.protocol_version
