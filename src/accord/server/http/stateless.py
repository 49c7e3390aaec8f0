"""2026-07-28: each POST is an exchange of its own, and nothing is remembered between two of them but for bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.errors import DeclarationError, InternalError, InvalidParams, InvalidRequest, ProtocolError
from accord.messages.envelope import Incoming
from accord.messages.revision import RULES
from accord.server.compose.access import has_scopes
from accord.server.dispatch import read_call
from accord.server.http.alone import AlonePost, ListenPost
from accord.server.http.callers import Caller, Callers
from accord.session import peek
from accord.session.events import Reply, RequestReceived
from accord.session.exchange import Exchange
from accord.session.peek import LastMeta, Posted
from accord.session.served import error_bytes
from accord.transport.asgi.answer import respond, say
from accord.transport.asgi.request import Receive, Request, Send
from accord.wire.headers import PROTOCOL_VERSION, check_parameters
from accord.wire.streamable import (
    ALONE,
    NAMED,
    check_method,
    check_name,
    check_version,
    status_of_refusal,
)

if TYPE_CHECKING:
    from accord.server.http.auth import Principal
    from accord.server.http.site import Site


class Stateless:
    """All requests of 2026-07-28 that reach one site."""

    def __init__(self, site: Site, callers: Callers) -> None:
        self._site = site
        self._callers = callers
        self._listening: set[ListenPost] = set()

    async def post(
        self, incoming: Incoming, request: Request, receive: Receive, send: Send, who: Principal | None
    ) -> None:
        """Answer one POST. Raises `Disconnected` when nobody waits for the answer any more."""
        if not isinstance(incoming.method, str):
            raise InvalidRequest("a client posts requests and notifications in 2026-07-28, never answers")
        if not isinstance(incoming.id, int | str):
            return await self._notified(incoming, request, send, who)
        caller = self._callers.get(who, request)
        try:
            posted = self._read(incoming, request, who, caller.session.served.last_meta)
        except ProtocolError as error:
            refused = error_bytes(incoming.id, error, caller.session.agreed)
            return await respond(send, status_of_refusal(error.code), refused)
        event = caller.session.receive_alone(incoming, posted.meta)
        if isinstance(event, Reply):
            return await respond(send, status_of_refusal(event.code), event.message)
        assert isinstance(event, RequestReceived)  # a request is answered at once, or is for a handler
        exchange = event.exchange
        exchange.who, exchange.headers = who, request.headers
        if exchange.method.stays:
            return await self._listen(exchange, caller, request, receive, send)
        return await AlonePost(exchange, caller.conversation, receive, send).answer()

    def _read(self, incoming: Incoming, request: Request, who: Principal | None, last: LastMeta) -> Posted:
        """`_meta`, once the headers say the same as the body. Raises `InvalidParams`, `HeaderMismatch`."""
        method: str = incoming.method  # type: ignore[assignment]  # `post` has looked
        posted = peek.posted(incoming.params, last)
        named = posted.meta.protocol_version if posted.meta is not None else None
        if named != ALONE[request.headers[PROTOCOL_VERSION]]:
            check_version(request.headers, named, self._site.server.revisions)
        if named is None:
            # By the rules of the session this could open a connection, which every caller of this address shares.
            raise InvalidParams("_meta lacks io.modelcontextprotocol/protocolVersion")
        check_method(request.headers, method)
        if (by := NAMED.get(method)) is not None:
            subject = posted.subject(by)
            if subject is not None:  # else whoever reads the params will say so
                check_name(request.headers, subject)
            if method == "tools/call":
                self._check_parameters(incoming, request, subject, who)
        return posted

    def _check_parameters(self, incoming: Incoming, request: Request, name: str | None, who: Principal | None) -> None:
        """ "Servers MUST reject requests" whose `Mcp-Param-*` headers say something else than the arguments; but of a
        tool that is not there for somebody, this would tell that it is.
        """
        offer = self._site.server.registry.tools.get(name or "")
        try:
            if offer is not None and (offer.open or has_scopes(offer, who)) and offer.mirrored:
                check_parameters(offer.mirrored, request.headers, read_call(incoming.params).arguments)
        except DeclarationError as exc:  # of a schema that could not be made before
            raise InternalError(str(exc)) from exc

    async def _notified(self, incoming: Incoming, request: Request, send: Send, who: Principal | None) -> None:
        """Hear what extensions have clients tell: "the server MUST return HTTP status code 202 Accepted"."""
        check_version(request.headers, None, self._site.server.revisions)
        caller = self._callers.get(who, request)
        event = caller.session.hear_alone(incoming, RULES[ALONE[request.headers[PROTOCOL_VERSION]]])
        caller.conversation.reactions[type(event)](event)
        await say(send, 202, "")

    # --- subscriptions -----------------------------------------------------------------------------------------

    async def _listen(self, exchange: Exchange, caller: Caller, request: Request, receive: Receive, send: Send) -> None:
        limits = self._site.limits
        most = min(limits.sessions, limits.sessions_per_address) if exchange.who is None else limits.streams
        if caller.session.served.staying > most:
            error = InternalError(f"too many streams are open: the limit is {most:,}")
            return await respond(send, 200, caller.session.fail(exchange, error) or b"")
        post = ListenPost(exchange, caller.session, caller.peer.account, self._site, receive, send)
        self._listening.add(post)
        try:
            with self._site.audience.with_peer(post.peer, request.size):
                await post.answer()
        finally:
            self._listening.discard(post)
        return None

    # --- the end -----------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Subscriptions end."""
        for post in list(self._listening):
            post.leave()
