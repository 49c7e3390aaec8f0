"""2026-07-28: each POST is an exchange of its own, and nothing is remembered between two of them.

"Closing the SSE response stream MUST be treated by the server as cancellation of that request" (Streamable HTTP,
Cancellation): so is going away while a JSON answer is pending. A `subscriptions/listen` is a client of its own, as long
as its stream is open.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from accord.errors import DeclarationError, InternalError, InvalidRequest, ProtocolError
from accord.messages.envelope import Incoming
from accord.messages.revision import RULES
from accord.server.dispatch import read_call
from accord.server.http.auth import Principal
from accord.server.http.post import Outgoing, Post
from accord.server.http.visitor import end_all
from accord.server.peer import Peer
from accord.session import peek
from accord.session.events import NotificationReceived, RequestReceived
from accord.session.exchange import Exchange
from accord.session.peek import Posted
from accord.session.served import error_bytes
from accord.session.session import Session
from accord.transport.asgi.answer import respond, say
from accord.transport.asgi.request import Disconnected, Receive, Request, Send
from accord.transport.asgi.stream import Stream, watch
from accord.transport.conversation import Conversation
from accord.wire import sse
from accord.wire.headers import PROTOCOL_VERSION, check_parameters
from accord.wire.streamable import (
    ALONE,
    NAMED,
    check_method,
    check_name,
    check_version,
    status_of,
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


class Events:
    """Messages as events without ids: "Resumable SSE streams via `Last-Event-ID` are not supported"."""

    __slots__ = ("_stream",)

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def send(self, message: bytes) -> None:
        self._stream.put(sse.encode(message))

    def end(self, message: bytes | None) -> None:
        if message is not None:
            self._stream.put(sse.encode(message))
        self._stream.end()

    async def drain(self) -> None:
        await self._stream.drain()


class AlonePost(Post):
    """The response to a POST of 2026-07-28."""

    __slots__ = ("_watching",)

    def suspended(self) -> None:
        """From here on the client may go away before there is an answer."""
        self._watching = asyncio.get_running_loop().create_task(watch(self.receive, self._gone))

    def done(self) -> None:
        self._watching.cancel()

    def _gone(self) -> None:
        self.conversation.session.served.abandon(self.exchange)
        if self.exchange.driver is not None:
            self.exchange.driver.cancel()

    def begin(self) -> tuple[Outgoing, Coroutine[Any, Any, None]]:
        stream = Stream(self.response, self.conversation.limits, self.headers)
        return Events(stream), stream.run()

    def written(self, writing: asyncio.Task[None]) -> None:
        """If the request is not over, then its client does not read, and was cut off."""
        if self.exchange.stage == "active":
            self._gone()


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
        self._listening: dict[Exchange, Caller] = {}

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
            posted = self._read(incoming, request)
        except ProtocolError as error:
            refused = error_bytes(incoming.id, error, caller.session.agreed)
            return await respond(send, status_of_refusal(error.code), refused)
        event = caller.session.receive_alone(incoming, posted.meta)
        if type(event) is not RequestReceived:
            return await respond(send, status_of_refusal(event.code), event.message)  # type: ignore[union-attr,arg-type]
        exchange = event.exchange
        if exchange.method.stays:
            return await self._listen(exchange, receive, send, caller, who)
        post = AlonePost(exchange, caller.conversation, receive, send)
        message = await post.serve()
        if message is None and post.out is None:
            raise Disconnected
        await post.finish(message, status_of(exchange.code))
        return None

    def _read(self, incoming: Incoming, request: Request) -> Posted:
        """`_meta`, once the headers say the same as the body. Raises `InvalidParams`, `HeaderMismatch`."""
        method: str = incoming.method  # type: ignore[assignment]
        posted = peek.posted(incoming.params)
        named = posted.meta.protocol_version if posted.meta is not None else None
        if named != ALONE[request.headers[PROTOCOL_VERSION]]:
            check_version(request.headers, named, self._site.server.revisions)
        check_method(request.headers, method)
        if (by := NAMED.get(method)) is not None:
            subject = getattr(posted, by)
            if isinstance(subject, str):  # else it is missing, and whoever reads it will say so
                check_name(request.headers, subject)
            if method == "tools/call":
                self._check_parameters(incoming, request, subject)
        return posted

    def _check_parameters(self, incoming: Incoming, request: Request, name: object) -> None:
        """ "Servers MUST reject requests" whose `Mcp-Param-*` headers say something else than the arguments."""
        offer = self._site.server.registry.tools.get(name)  # type: ignore[call-overload]
        try:
            if offer is not None and offer.mirrored:
                check_parameters(offer.mirrored, request.headers, read_call(incoming.params).arguments)
        except DeclarationError as exc:  # of a schema that could not be made before
            raise InternalError(str(exc)) from exc

    def _caller(self, who: Principal | None) -> Caller:
        id = "" if who is None else who.id
        caller = self._callers.get(id)
        if caller is None:
            self._forget()
            caller = self._callers[id] = Caller(self._site, who)
        elif who is not None:
            self._callers.move_to_end(id)
            caller.peer.who = who
        return caller

    def _forget(self) -> None:
        """Make room: forget who was not heard of for the longest time. Who has something in flight has another turn."""
        for _ in range(_LOOKS):
            if len(self._callers) < self._site.limits.principals:
                return
            id, caller = next(iter(self._callers.items()))
            if caller.session.incoming:
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

    async def _listen(
        self, exchange: Exchange, receive: Receive, send: Send, caller: Caller, who: Principal | None
    ) -> None:
        limits = self._site.limits
        most = limits.sessions if who is None else limits.streams
        if caller.session.served.staying > most:
            error = InternalError(f"too many streams are open: the limit is {most:,}")
            return await respond(send, 200, caller.session.fail(exchange, error) or b"")
        post = AlonePost(exchange, caller.conversation, receive, send)
        line = post.conversation = Conversation(
            caller.session,
            post,
            lambda exchange, _: self._site.dispatch.handle(exchange, peer),
            limits=caller.conversation.limits,
        )
        peer = self._site.peer(line, who)
        self._listening[exchange] = caller
        try:
            with self._site.audience.with_peer(peer, self._site.server.hub):
                message = await post.serve()
        finally:
            del self._listening[exchange]
        if message is None and post.out is None:
            raise Disconnected
        await post.finish(message, status_of(exchange.code))
        return None

    # --- the end -----------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Take nothing new; subscriptions end with their result (Subscriptions, Graceful Closure)."""
        for caller in self._callers.values():
            caller.session.draining = True
        for exchange, caller in list(self._listening.items()):
            post, task = exchange.way, exchange.driver
            messages = caller.session.end_listen(exchange)
            if messages and isinstance(post, AlonePost):
                post.send(messages[-1])  # over HTTP the result, and no cancel before it
                task.cancel()

    async def close(self) -> None:
        """End what is left, and what waits for answers with nothing in flight."""
        for caller in self._callers.values():
            end_all(caller.conversation, "the server was closed")
            if self._site.server.asked is not None:
                await self._site.server.asked.close(caller.peer, self._site.limits.close_seconds)
