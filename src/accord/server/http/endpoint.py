"""The endpoints of one site: which form of the protocol a request is in, and to whom it goes.

The era belongs to the request. A POST marked as of 2026-07-28 is an exchange of its own; any other belongs to a
session, or opens one; GET and DELETE are about sessions only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import UNSET

from accord.errors import InvalidRequest, ProtocolError
from accord.messages import envelope
from accord.messages.bounds import MEASURED_BYTES, has_more_nodes
from accord.messages.envelope import Incoming, Malformed, outlines
from accord.messages.revision import BEFORE_OPENING, HANDSHAKE, LATEST, NO_SESSIONS, RULES, Rules
from accord.server.http.access import noted
from accord.server.http.bodies import BodyCharge
from accord.server.http.callers import Callers
from accord.server.http.session import HTTPSession
from accord.server.http.sessionless import Sessionless
from accord.server.http.sessions import LastingSessions, Sessions
from accord.server.http.site import SEVERAL_WORKERS, Site
from accord.server.http.sse import SSESession
from accord.server.http.stateless import Stateless
from accord.server.http.visitor import is_own_id, new_id
from accord.session import peek
from accord.session.served import error_bytes
from accord.transport.asgi.answer import Headers, respond, say
from accord.transport.asgi.request import Receive, Rejected, Request, Send
from accord.wire.headers import LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID
from accord.wire.streamable import ALONE, accepts, check_version, is_json, status_of_refusal

if TYPE_CHECKING:
    from accord.server.http.auth import Principal

_SWEEP_SECONDS = 5.0
LATER: Headers = ((b"retry-after", b"5"), (b"connection", b"close"))
ENDING: tuple[str, Headers] = "the server is shutting down", LATER
"""What is said to who asks for something new while it ends."""

_ALLOW_POST = ((b"allow", b"POST"),)


class Endpoint:
    """A site, with everyone who uses it."""

    def __init__(self, site: Site) -> None:
        self.site: Site = site
        self.sessions: LastingSessions = LastingSessions(site)
        self.sse: Sessions[SSESession] = Sessions(site)
        self.working: int = 0
        """Requests that are being answered."""
        self.draining: bool = False
        """Whether nothing new is taken."""
        self.rest: asyncio.Event | None = None
        """Set when there is none any more."""
        self._callers = Callers(site)
        self._stateless = Stateless(site, self._callers)
        self._sessionless = Sessionless(site, self._callers) if site.options.stateless else None
        self._older = frozenset(revision.encode() for revision in site.server.revisions if revision in HANDSHAKE)
        self._sweeping = site.loop.create_task(self._sweep())

    # --- Streamable HTTP ---------------------------------------------------------------------------------------

    async def post(self, request: Request, receive: Receive, send: Send, who: Principal | None) -> None:
        """POST. Raises `Rejected`."""
        headers = request.headers
        if not is_json(headers.get(b"content-type")):
            raise Rejected(415, "the body of a POST is JSON: send Content-Type: application/json")
        if not all(accepts(headers.get(b"accept"))):
            raise Rejected(406, "the answer is JSON or events: send Accept: application/json, text/event-stream")
        charge = BodyCharge(self.site, who, request)
        try:
            body = await request.body(receive, self.site.limits, charge)
            await self._answer(body, request, receive, send, who)
        finally:
            charge.release()

    async def _answer(self, body: bytes, request: Request, receive: Receive, send: Send, who: Principal | None) -> None:
        headers = request.headers
        if len(body) > MEASURED_BYTES:
            try:
                self._check_nodes(body)
            except Malformed as bad:
                return await self._refuse(bad, BEFORE_OPENING, send)
        if request.notes is not None:
            request.notes.update(noted(body, headers, who))
        if self.draining and _asks(body):
            raise Rejected(503, *ENDING)
        if headers.get(PROTOCOL_VERSION) in ALONE:
            try:
                incoming = envelope.read(body)
                return await self._stateless.post(incoming, request, receive, send, who)
            except (Malformed, ProtocolError) as bad:
                return await self._refuse(bad, RULES[LATEST], send)
        try:
            if self._sessionless is not None:
                self._check_header(body, headers)
                return await self._sessionless.post(body, request, receive, send, who)
            session = await self._session_for(body, request, who)
        except (Malformed, ProtocolError) as bad:
            return await self._refuse(bad, BEFORE_OPENING, send)
        opened = False
        try:
            await session.post(body, receive, send, who, headers)
            opened = bool(session.session.rules.revision)
        finally:
            if not opened and SESSION_ID not in headers:
                await self.sessions.end(session, "it was not opened")

    def _check_nodes(self, body: bytes) -> None:
        """Raise `Malformed` for a message that would hold up others while it is read."""
        most = self.site.limits.http_nodes
        if has_more_nodes(body, most):
            id = next((each.id for each in outlines(body)), None)
            why = f"more than {most:,} arrays, objects and members, or twice as many items (Limits.http_nodes)"
            raise Malformed(InvalidRequest(f"a message has {why}: send less at once"), id)

    async def _session_for(self, body: bytes, request: Request, who: Principal | None) -> HTTPSession:
        """The session that a POST belongs to; a new one for `initialize`."""
        headers = request.headers
        self._check_header(body, headers)
        id = headers.get(SESSION_ID)
        if id is not None:
            return await self.sessions.reach(id.decode("latin-1"), who, request)
        incoming = envelope.read(body)
        self._check_version(incoming, headers)
        if incoming.method != "initialize":
            raise Malformed(
                InvalidRequest("Mcp-Session-Id is missing: send initialize, then the id that comes with its answer"),
                incoming.id,
            )
        account = self.site.account(who, request)
        await self.sessions.make_room(account)
        session = HTTPSession(self.site, who, account, new_id())
        self.sessions.add(session)
        return session

    def _check_header(self, body: bytes, headers: Mapping[bytes, bytes]) -> None:
        """Raises `Malformed` where the header names a revision that is not served in this way."""
        version = headers.get(PROTOCOL_VERSION)
        if version is not None and version not in self._older:
            self._check_version(envelope.read(body), headers)

    def _check_version(self, incoming: Incoming, headers: Mapping[bytes, bytes]) -> None:
        """Raises `Malformed` where header and message name different revisions, or one that is not spoken here."""
        try:
            check_version(headers, _named(incoming), self.site.server.revisions)
        except ProtocolError as error:
            raise Malformed(error, incoming.id) from error

    async def _refuse(self, bad: Malformed | ProtocolError, rules: Rules, send: Send) -> None:
        """A message that cannot be taken, answered with its id where that could be read."""
        error = bad.error if isinstance(bad, Malformed) else bad
        id = bad.id if isinstance(bad, Malformed) else None
        await respond(send, max(400, status_of_refusal(error.code)), error_bytes(id, error, rules))

    async def get(self, request: Request, receive: Receive, send: Send, who: Principal | None) -> None:
        """GET: the stream of a session, or one that is taken up again. Raises `Rejected`."""
        headers = request.headers
        self._check_older(headers, "there is no GET in this revision; subscribe with subscriptions/listen")
        if not accepts(headers.get(b"accept"))[1]:
            raise Rejected(406, "what comes is a stream of events: send Accept: text/event-stream")
        session = await self.sessions.reach(self._id(headers), who, request)
        await session.listen(headers.get(LAST_EVENT_ID), receive, send)

    async def delete(self, request: Request, send: Send, who: Principal | None) -> None:
        """DELETE: the end of a session. Raises `Rejected`."""
        headers = request.headers
        self._check_older(headers, "there are no sessions in this revision")
        session = await self.sessions.reach(self._id(headers), who, request)
        await self.sessions.end(session, "the client has ended its session")
        await say(send, 200, "")

    def _check_older(self, headers: Mapping[bytes, bytes], why_not: str) -> None:
        """Raises `Rejected` unless a GET or DELETE may be meant for a session."""
        version = headers.get(PROTOCOL_VERSION)
        if version in ALONE or not self._older:
            raise Rejected(405, why_not, _ALLOW_POST)
        if self._sessionless is not None:
            raise Rejected(405, f"there is no session to listen to or to end: {NO_SESSIONS}", _ALLOW_POST)
        if version is not None and version not in self._older:
            raise Rejected(400, f"revision {version.decode('latin-1')!r:.100} is not supported here")

    def _id(self, headers: dict[bytes, bytes]) -> str:
        id = headers.get(SESSION_ID)
        if id is None:
            raise Rejected(400, "Mcp-Session-Id is missing: it comes with the answer to initialize")
        return id.decode("latin-1")

    # --- HTTP+SSE ----------------------------------------------------------------------------------------------

    async def stream(
        self, messages: str, request: Request, receive: Receive, send: Send, who: Principal | None
    ) -> None:
        """The one stream of a client of 2024-11-05, which posts to `messages`. Raises `Rejected`."""
        if self.draining:
            raise Rejected(503, *ENDING)
        account = self.site.account(who, request)
        await self.sse.make_room(account)
        session = SSESession(self.site, who, account, new_id(), send)
        self.sse.add(session)
        try:
            await session.run(messages, receive)
        finally:
            await self.sse.end(session, "the client has closed its stream")

    async def message(self, id: str, request: Request, receive: Receive, send: Send, who: Principal | None) -> None:
        """What such a client posts. Raises `Rejected`."""
        if not is_json(request.headers.get(b"content-type")):
            raise Rejected(415, "the body of a POST is JSON: send Content-Type: application/json")
        self._legacy(id, who)
        charge = BodyCharge(self.site, who, request)
        try:
            body = await request.body(receive, self.site.limits, charge)
            try:
                self._check_nodes(body)
            except Malformed as bad:
                raise Rejected(413, str(bad)) from bad
            await self._legacy(id, who).post(body, send, who, request.headers, charge)  # it may have ended meanwhile
        finally:
            charge.release()

    def _legacy(self, id: str, who: Principal | None) -> SSESession:
        session = self.sse.find(id, who)
        if session is None:
            if not is_own_id(id):
                self.site.tell_of_workers("a message was posted for a session that this process has not begun")
            raise Rejected(404, f"there is no such session (any more): open the stream again; {SEVERAL_WORKERS}")
        return session

    # --- the end -----------------------------------------------------------------------------------------------

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(_SWEEP_SECONDS, self.site.limits.session_idle_seconds / 4))
            await self.sessions.sweep()
            await self.sse.sweep()

    def continues(self, request: Request) -> bool:
        """Whether it may belong to what runs: an answer or a cancel, or a stream that is taken up again."""
        headers = request.headers
        id, last = headers.get(SESSION_ID), headers.get(LAST_EVENT_ID)
        session = None if id is None else self.sessions.get(id.decode("latin-1"))
        if session is None or headers.get(PROTOCOL_VERSION) in ALONE:
            return False
        return request.method == "POST" or (request.method == "GET" and last is not None and session.resumes(last))

    def drain(self) -> None:
        """Take nothing new, and end the streams that nothing else ends, so that what runs can finish."""
        self.draining = True
        self._callers.drain()
        self._stateless.drain()
        for session in self.sessions:
            session.leave()
        for client in self.sse:
            client.leave()

    async def finish(self) -> None:
        """Wait until what runs is answered; then nothing keeps the streams of the oldest clients open."""
        while self.working:
            self.rest = self.rest or asyncio.Event()
            self.rest.clear()
            await self.rest.wait()
        for client in self.sse:
            await client.finish()

    async def close(self) -> None:
        """End everything."""
        self._sweeping.cancel()
        await self._callers.close()
        await self.sessions.close("the server was closed")
        await self.sse.close("the server was closed")
        self.site.close()


def _asks(body: bytes) -> bool:
    """Whether a body is a request, rather than an answer, a notification, or none of them."""
    try:
        incoming = envelope.read(body)
    except (Malformed, ProtocolError):
        return False
    return bool(incoming.method) and incoming.id is not UNSET


def _named(incoming: Incoming) -> str | None:
    """The revision that a request names in its `_meta`."""
    meta = peek.posted(incoming.params).meta
    return None if meta is None else meta.protocol_version
