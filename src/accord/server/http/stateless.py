"""2026-07-28: each POST is an exchange of its own, and nothing is remembered between two of them but for bounds."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from accord.errors import DeclarationError, InternalError, InvalidRequest, ProtocolError
from accord.messages.envelope import Incoming
from accord.messages.revision import RULES
from accord.server.compose.access import has_scopes
from accord.server.dispatch import read_call
from accord.server.http.alone import AlonePost, ListenPost
from accord.server.http.auth import Principal, id_of
from accord.server.http.visitor import end_all
from accord.server.peer import Peer
from accord.session import peek
from accord.session.events import NotificationReceived, Reply, RequestReceived
from accord.session.exchange import Exchange
from accord.session.peek import Posted
from accord.session.served import error_bytes
from accord.session.session import Session
from accord.transport.asgi.answer import respond, say
from accord.transport.asgi.request import Receive, Request, Send
from accord.transport.conversation import Conversation
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
    from accord.server.http.site import Site

_LOOKS = 2
"""How many principals are looked at to make room for one: so there is room again after a while, at little cost."""


class Nowhere:
    """The way of what belongs to no request: there is none."""

    name = "HTTP"

    def send(self, message: bytes) -> None:
        """Nobody listens."""

    def flush(self) -> None:
        """Nothing is held."""

    async def drain(self) -> None:
        """Nothing waits."""


class Caller:
    """One principal, or all whom nobody vouches for: what is in flight for it, and how often it may do what."""

    def __init__(self, site: Site, who: Principal | None) -> None:
        self.session: Session = site.session(anonymous=who is None)
        self.conversation: Conversation = Conversation(
            self.session,
            Nowhere(),
            lambda exchange, _: site.dispatch.handle(exchange, self.peer),
            on_notification=self._hear,
            limits=site.limits,
        )
        self.peer: Peer = site.peer(self.conversation, who)
        self._hearing = site.hearing(self.peer)
        self.peer.shared = who is None

    def _hear(self, event: NotificationReceived) -> None:
        self._hearing.hear(event)


class Stateless:
    """All requests of 2026-07-28 that reach one site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._callers: OrderedDict[str, Caller] = OrderedDict()
        self._listening: set[ListenPost] = set()

    async def post(
        self, incoming: Incoming, request: Request, receive: Receive, send: Send, who: Principal | None
    ) -> None:
        """Answer one POST. Raises `Disconnected` when nobody waits for the answer any more."""
        if not isinstance(incoming.method, str):
            raise InvalidRequest("a client posts requests and notifications in 2026-07-28, never answers")
        if not isinstance(incoming.id, int | str):
            return await self._notified(incoming, request, send, who)
        caller = self._caller(who)
        try:
            posted = self._read(incoming, request, who)
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

    def _read(self, incoming: Incoming, request: Request, who: Principal | None) -> Posted:
        """`_meta`, once the headers say the same as the body. Raises `InvalidParams`, `HeaderMismatch`."""
        method: str = incoming.method  # type: ignore[assignment]  # `post` has looked
        posted = peek.posted(incoming.params)
        named = posted.meta.protocol_version if posted.meta is not None else None
        if named != ALONE[request.headers[PROTOCOL_VERSION]]:
            check_version(request.headers, named, self._site.server.revisions)
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
            if offer is not None and has_scopes(offer, who) and offer.mirrored:
                check_parameters(offer.mirrored, request.headers, read_call(incoming.params).arguments)
        except DeclarationError as exc:  # of a schema that could not be made before
            raise InternalError(str(exc)) from exc

    def _caller(self, who: Principal | None) -> Caller:
        id = id_of(who)
        caller = self._callers.get(id)
        if caller is None:
            self._forget()
            caller = self._callers[id] = Caller(self._site, who)
        elif who is not None:
            self._callers.move_to_end(id)
        return caller

    def _forget(self) -> None:
        """Make room: forget who was not heard of for the longest time. Who has something in flight, or a handler that
        waits for answers, has another turn.
        """
        for _ in range(_LOOKS):
            if len(self._callers) < self._site.limits.principals:
                return
            id, caller = next(iter(self._callers.items()))
            if caller.session.incoming or self._site.waiting(id):
                self._callers.move_to_end(id)
            else:
                del self._callers[id]

    async def _notified(self, incoming: Incoming, request: Request, send: Send, who: Principal | None) -> None:
        """Hear what extensions have clients tell: "the server MUST return HTTP status code 202 Accepted"."""
        check_version(request.headers, None, self._site.server.revisions)
        caller = self._caller(who)
        event = caller.session.hear_alone(incoming, RULES[ALONE[request.headers[PROTOCOL_VERSION]]])
        caller.conversation.reactions[type(event)](event)
        await say(send, 202, "")

    # --- subscriptions -----------------------------------------------------------------------------------------

    async def _listen(self, exchange: Exchange, caller: Caller, request: Request, receive: Receive, send: Send) -> None:
        limits = self._site.limits
        most = limits.sessions if exchange.who is None else limits.streams
        if caller.session.served.staying > most:
            error = InternalError(f"too many streams are open: the limit is {most:,}")
            return await respond(send, 200, caller.session.fail(exchange, error) or b"")
        post = ListenPost(exchange, caller.session, self._site, receive, send)
        self._listening.add(post)
        try:
            with self._site.audience.with_peer(post.peer, request.size):
                await post.answer()
        finally:
            self._listening.discard(post)
        return None

    # --- the end -----------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Take nothing new; subscriptions end."""
        for caller in self._callers.values():
            caller.session.draining = True
        for post in list(self._listening):
            post.leave()

    async def close(self) -> None:
        """End what is left, and what waits for answers with nothing in flight."""
        for caller in self._callers.values():
            end_all(caller.conversation, "the server was closed")
            if self._site.server.asked is not None:
                await self._site.server.asked.close(caller.peer, self._site.limits.close_seconds)
