"""2025-03-26 to 2025-11-25 without sessions (`HTTPOptions(stateless=True)`): each POST alone.

`initialize` is answered and forgotten; a request is served by the revision that its header names, or by 2025-03-26
where it has none. So any process may answer any POST. What would have to be remembered is refused.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from accord.errors import METHOD_NOT_FOUND, InvalidRequest, ProtocolError
from accord.messages import envelope
from accord.messages.envelope import Incoming, Malformed
from accord.messages.revision import NO_SESSIONS, SESSIONLESS, Rules
from accord.server.http.alone import Unnumbered
from accord.server.http.callers import Caller, Callers
from accord.server.http.post import Outgoing, Post, Response
from accord.server.http.replies import BatchPost
from accord.session import peek
from accord.session.events import Opened, Reply, RequestReceived
from accord.session.exchange import Exchange
from accord.session.served import error_bytes
from accord.transport.asgi.answer import respond, say
from accord.transport.asgi.request import Receive, Request, Send
from accord.transport.asgi.stream import Stream
from accord.wire.headers import PROTOCOL_VERSION
from accord.wire.streamable import check_version, status_of_refusal

if TYPE_CHECKING:
    from accord.server.http.auth import Principal
    from accord.server.http.site import Site

_WITHOUT_HEADER = "2025-03-26"
""" "If the server does not receive an `MCP-Protocol-Version` header [...] the server SHOULD assume" this revision
(Streamable HTTP, Protocol Version Header)."""


class Sessionless:
    """All requests of older revisions that reach one site which keeps no sessions."""

    def __init__(self, site: Site, callers: Callers) -> None:
        self._site = site
        self._callers = callers
        older = [revision for revision in SESSIONLESS if revision in site.server.revisions]
        self._rules = {revision.encode(): SESSIONLESS[revision] for revision in older}
        if older:
            self._assumed: Rules = SESSIONLESS[_WITHOUT_HEADER if _WITHOUT_HEADER in older else older[0]]

    async def post(self, body: bytes, request: Request, receive: Receive, send: Send, who: Principal | None) -> None:
        """Answer one POST, whose header was checked. Raises `Malformed`."""
        rules = self._rules_of(request.headers)
        if rules.batches and envelope.is_array(body):
            return await self._batch(body, rules, request, receive, send, who)
        incoming = envelope.read(body)
        if incoming.method is UNSET:
            why = f"an answer belongs to a question, and none was asked: {NO_SESSIONS}"
            raise Malformed(InvalidRequest(why), None if incoming.id is UNSET else incoming.id)
        if incoming.method == "initialize" and incoming.id is not UNSET:
            return await self._initialize(body, send)
        caller = self._callers.get(who, request, rules)
        if incoming.id is UNSET:  # accepted; only extensions have some that mean anything without a session
            event = caller.session.hear_alone(incoming, rules)
            caller.conversation.reactions[type(event)](event)
            return await say(send, 202, "")
        return await self._serve(incoming, caller, request, receive, send, who)

    def _rules_of(self, headers: Mapping[bytes, bytes]) -> Rules:
        return self._rules.get(headers.get(PROTOCOL_VERSION, b""), self._assumed)

    async def _initialize(self, body: bytes, send: Send) -> None:
        """Answer `initialize`, and forget it: the next request names its revision in a header."""
        (event,) = self._site.session(lasts=False).receive(body)
        if isinstance(event, Opened):
            return await respond(send, 200, event.reply or b"")
        assert isinstance(event, Reply), "initialize is answered at once in a new session"
        return await respond(send, status_of_refusal(event.code), event.message)

    async def _serve(
        self, incoming: Incoming, caller: Caller, request: Request, receive: Receive, send: Send, who: Principal | None
    ) -> None:
        try:
            meta = peek.request_meta(incoming.params, caller.session.served.last_meta)
            if meta is not None and meta.protocol_version is not None:
                check_version(request.headers, meta.protocol_version, self._site.server.revisions)
        except ProtocolError as error:
            id: Any = incoming.id
            refused = error_bytes(id, error, caller.session.rules)
            return await respond(send, status_of_refusal(error.code), refused)
        event = caller.session.receive_alone(incoming, meta)
        if isinstance(event, Reply):
            return await respond(send, _status(event.code), event.message)
        assert isinstance(event, RequestReceived)  # a request is answered at once, or is for a handler
        event.exchange.who, event.exchange.headers = who, request.headers
        return await _Post(event.exchange, caller.conversation, receive, send).answer()

    async def _batch(
        self, body: bytes, rules: Rules, request: Request, receive: Receive, send: Send, who: Principal | None
    ) -> None:
        """Answer an array of messages, whose ids belong to it alone."""
        requests: list[Exchange] = []
        with self._callers.once(who, request, rules) as caller:
            for event in caller.session.receive(body):
                if isinstance(event, Reply):
                    return await respond(send, _status(event.code), event.message)
                if isinstance(event, RequestReceived):
                    event.exchange.who, event.exchange.headers = who, request.headers
                    requests.append(event.exchange)
                else:
                    caller.conversation.reactions[type(event)](event)
            if not requests:
                return await say(send, 202, "")
            post = _Batch(requests, caller.conversation, receive, send)
            return await post.finish(await post.serve())


def _status(code: int) -> int:
    """A 404 would mean that a session has ended, which has clients open another."""
    return 200 if code == METHOD_NOT_FOUND else status_of_refusal(code)


class _Post(Post):
    """ "Disconnection SHOULD NOT be interpreted as the client cancelling its request", so nobody looks for it."""

    __slots__ = ()

    async def answer(self) -> None:
        """Have the request handled, and send its answer."""
        await self.finish(await self.serve())

    def begin(self) -> tuple[Outgoing, Coroutine[Any, Any, None]]:
        return _begun(self)


class _Batch(BatchPost):
    __slots__ = ()

    def begin(self) -> tuple[Outgoing, Coroutine[Any, Any, None]]:
        return _begun(self)


def _begun(post: Response) -> tuple[Outgoing, Coroutine[Any, Any, None]]:
    """A stream that nobody can take up again, and what writes it."""
    stream = Stream(post.response, post.conversation.limits)
    return Unnumbered(stream), stream.run()
