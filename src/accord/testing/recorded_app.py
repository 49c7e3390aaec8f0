"""`RecordedApp`: a recording over HTTP, as an ASGI application.

    /mcp                Streamable HTTP, with and without sessions
    /sse, /messages     HTTP+SSE (2024-11-05)

Pages of other origins are refused, as a server refuses them: the recording may be private.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine
from typing import Any
from urllib.parse import parse_qs

from accord.limits import DEFAULT_LIMITS
from accord.messages.base import JSONObject
from accord.testing.recorded_server import RecordedServer, RecordedSession
from accord.testing.recording import decode_messages
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
from accord.transport.asgi.sse_response import SSEResponse, write_until_disconnect
from accord.wire import sse
from accord.wire.hosts import LOOPBACK_HOSTS, HostCheck

_SESSION = b"mcp-session-id"
_MAX_SESSIONS = 100


class HTTPClientSession:
    """The session of one client over HTTP, and its stream for messages that belong to no response."""

    def __init__(self, recorded: RecordedSession) -> None:
        self.recorded: RecordedSession = recorded
        self.stream: SSEResponse | None = None


class RecordedApp:
    """The application; `hosts` are further names under which it may be reached."""

    def __init__(self, server: RecordedServer, *, hosts: tuple[str, ...] = ()) -> None:
        self._server = server
        self._host_check = HostCheck((*LOOPBACK_HOSTS, *hosts))
        self._sessions: dict[str, HTTPClientSession] = {}
        self._sessionless = HTTPClientSession(server.session())
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection scope."""
        if scope["type"] != "http":
            raise RuntimeError(f"{scope['type']} is not supported")
        request = ASGIRequest(scope, receive, send)
        try:
            await self._respond(request)
        except RequestRejected as exc:
            await send_text(send, exc.status, exc.message, exc.headers)
        except ClientDisconnected:
            return

    async def drain(self, seconds: float) -> bool:
        """End all streams."""
        for session in [*self._sessions.values(), self._sessionless]:
            session.recorded.end()
            if session.stream is not None:
                session.stream.end()
        return True

    async def close(self) -> None:
        """Cancel what still runs."""
        for task in self._tasks:
            task.cancel()

    async def _respond(self, request: ASGIRequest) -> None:
        headers = request.headers
        if (refusal := self._host_check.refusal(headers.get(b"host"), headers.get(b"origin"))) is not None:
            raise RequestRejected(403, refusal)
        place = request.method, request.path.rstrip("/") or "/mcp"
        match place:
            case "POST", "/mcp":
                await self._post(request)
            case "GET", "/mcp":
                await self._get(request, self._session_of(request))
            case "DELETE", "/mcp":
                self._end(request)
                await send_text(request.send, 200, "")
            case "GET", "/sse":
                await self._open_sse(request)
            case "POST", "/messages":
                await self._post_message(request)
            case _:
                raise RequestRejected(404, "the recording is at /mcp, and for clients of 2024-11-05 at /sse")

    # --- Streamable HTTP ---------------------------------------------------------------------------------------

    async def _post(self, request: ASGIRequest) -> None:
        messages = await _messages(request)
        opens = any(message.get("method") == "initialize" for message in messages)
        id = self._open_session() if opens else None
        session = self._sessions[id] if id is not None else self._session_of(request)
        headers = () if id is None else ((_SESSION, id.encode()),)
        asked = [message for message in messages if session.recorded.is_request(message)]
        if not asked:
            return await send_text(request.send, 202, "")
        exchanges = [(session.recorded.find(message), message) for message in asked]
        first = exchanges[0][0]
        if len(exchanges) == 1 and [each.is_answer for each in first.responses] == [True]:
            answer = _OneMessage()
            await session.recorded.answer(first, asked[0], answer)
            return await send_json(request.send, first.status, answer.message, headers)
        stream = SSEResponse(request.send, DEFAULT_LIMITS, headers)

        async def answer_all() -> None:
            async with asyncio.TaskGroup() as group:
                for exchange, message in exchanges:
                    group.create_task(session.recorded.answer(exchange, message, stream, session.stream))
            if all(any(each.is_answer for each in exchange.responses) for exchange, _ in exchanges):
                stream.end()  # otherwise the request was still open at the end of the recording

        answering = self._start(answer_all())
        try:
            await write_until_disconnect(stream, request.receive)
        finally:
            answering.cancel()
        return None

    async def _get(self, request: ASGIRequest, session: HTTPClientSession) -> None:
        if session is self._sessionless:
            raise RequestRejected(405, "there is no stream without a session")
        session.stream = SSEResponse(request.send, DEFAULT_LIMITS)
        await write_until_disconnect(session.stream, request.receive)

    def _open_session(self) -> str:
        id = secrets.token_urlsafe(16)
        self._sessions[id] = HTTPClientSession(self._server.session())
        if len(self._sessions) > _MAX_SESSIONS:
            self._sessions.pop(next(iter(self._sessions))).recorded.end()
        return id

    def _session_of(self, request: ASGIRequest, id: str | None = None) -> HTTPClientSession:
        """Return the session of a request; without an id, the one of all requests without sessions."""
        id = id or request.headers.get(_SESSION, b"").decode("latin-1")
        if not id:
            return self._sessionless
        if id not in self._sessions:
            raise RequestRejected(404, "unknown session; send initialize")
        return self._sessions[id]

    def _end(self, request: ASGIRequest) -> None:
        session = self._session_of(request)
        session.recorded.end()
        if session.stream is not None:
            session.stream.end()
        self._sessions.pop(request.headers.get(_SESSION, b"").decode("latin-1"), None)

    # --- HTTP+SSE ----------------------------------------------------------------------------------------------

    async def _open_sse(self, request: ASGIRequest) -> None:
        id = self._open_session()
        session = self._sessions[id]
        session.stream = SSEResponse(request.send, DEFAULT_LIMITS, event="message")
        session.stream.send_event(sse.encode(f"{request.root}/messages?session={id}".encode(), event="endpoint"))
        await write_until_disconnect(session.stream, request.receive)
        session.recorded.end()
        self._sessions.pop(id, None)

    async def _post_message(self, request: ASGIRequest) -> None:
        query = parse_qs(request.scope["query_string"].decode("latin-1"))
        session = self._session_of(request, query.get("session", ["?"])[0])
        if session.stream is None:
            raise RequestRejected(400, "open /sse first")
        for message in await _messages(request):
            if session.recorded.is_request(message):
                self._start(session.recorded.answer(session.recorded.find(message), message, session.stream))
        await send_text(request.send, 202, "Accepted")

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _OneMessage:
    """A sink for the only message of a response."""

    name = "HTTP"

    def __init__(self) -> None:
        self.message = b""

    def send(self, message: bytes) -> None:
        self.message = message

    def flush(self) -> None:
        """Do nothing."""

    async def drain(self) -> None:
        """Do nothing."""


class _NoCharge:
    """No accounting of memory: the server is for one user."""

    def add(self, size: int) -> None:
        """Do nothing."""

    def measure(self, body: bytes) -> None:
        """Do nothing."""


async def _messages(request: ASGIRequest) -> list[JSONObject]:
    """Return the messages of a body. Raises `RequestRejected` if it has none."""
    messages = list(decode_messages(await request.body(DEFAULT_LIMITS, _NoCharge())))
    if not messages:
        raise RequestRejected(400, "the body is no JSON-RPC message")
    return messages
