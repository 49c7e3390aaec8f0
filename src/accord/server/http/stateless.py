"""2026-07-28: each POST is an exchange of its own, and nothing is remembered between two of them but for bounds.

Who sends requests that belong to no session, and what is remembered of each of them: nothing but for bounds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from accord.errors import InternalError, InvalidParams, InvalidRequest, ProtocolError
from accord.messages.envelope import Incoming
from accord.messages.revision import RULES, Rules
from accord.server.core.dispatch import read_tool_call
from accord.server.core.peer import Peer
from accord.server.core.principal import Principal
from accord.server.core.resolver import check_headers
from accord.server.http.base_session import end_session_requests
from accord.server.http.response import ListenResponse, StatelessResponse
from accord.session import peek
from accord.session.events import NotificationReceived, ReplyReady, RequestReceived
from accord.session.incoming import error_bytes
from accord.session.peek import LastMeta, MirroredParams
from accord.session.pending_request import PendingRequest
from accord.session.session import Session
from accord.session.states import Phase
from accord.transport.asgi.request import ASGIRequest, Receive, Send
from accord.transport.asgi.responses import send_json, send_text
from accord.transport.session_driver import SessionDriver
from accord.wire.headers import PROTOCOL_VERSION
from accord.wire.request_headers import (
    NAME_FIELDS,
    PER_REQUEST_REVISIONS,
    check_method,
    check_name,
    check_version,
    status_of_refusal,
)

if TYPE_CHECKING:
    from accord.server.http.http_context import HTTPContext

_EVICTION_TRIES = 2
"""How many principals are looked at to make room for one: so there is room again after a while, at little cost."""


class NullSink:
    """The way of what belongs to no request: there is none."""

    name = "HTTP"

    def send(self, message: bytes) -> None:
        """Nobody listens."""

    def flush(self) -> None:
        """Nothing is held."""

    async def drain(self) -> None:
        """Nothing waits."""


class StatelessClient:
    """One principal, or all at one address whom nobody vouches for: what is in flight, and how often it may do what.

    `rules` are those of an older revision, which is served without sessions.
    """

    def __init__(self, site: HTTPContext, who: Principal | None, account: str, rules: Rules | None = None) -> None:
        self.session: Session = site.session(account, shared=who is None, lasts=rules is None)
        if rules is not None:
            self.session.rules, self.session.phase = rules, Phase.OPEN
            self.session.allows_revision_in_meta = False  # a header does
        self.driver: SessionDriver = SessionDriver(
            self.session,
            NullSink(),
            lambda exchange, _: site.dispatcher.handle(exchange, self.peer),
            on_notification=self._on_notification,
            limits=site.limits,
            on_unsent=site.unsent_of(account),
        )
        self.peer: Peer = site.peer(self.driver, who, account)
        self._client_notifications = site.client_notifications(self.peer)
        self.peer.shared = who is None

    def _on_notification(self, event: NotificationReceived) -> None:
        self._client_notifications.receive(event)


class StatelessClients:
    """Those of one site, as many as are remembered."""

    def __init__(self, site: HTTPContext) -> None:
        self._context = site
        self._clients: OrderedDict[str | tuple[str, str], StatelessClient] = OrderedDict()
        """By account, and by account and revision for the older ones."""
        site.subscription_index.renewals[self._renew] = None

    def __len__(self) -> int:
        return len(self._clients)

    def values(self) -> Iterable[StatelessClient]:
        """All of them."""
        return self._clients.values()

    def get(self, who: Principal | None, request: ASGIRequest, rules: Rules | None = None) -> StatelessClient:
        """Find who asks, by the rules of 2026-07-28 or of an older revision without sessions."""
        account = who.id if who is not None else self._context.account(who, request)
        key = account if rules is None else (account, rules.revision)
        caller = self._clients.get(key)
        if caller is None:
            self._evict()
            caller = self._clients[key] = StatelessClient(self._context, who, account, rules)
        else:
            self._clients.move_to_end(key)
        return caller

    @contextmanager
    def for_batch(self, who: Principal | None, request: ASGIRequest, rules: Rules) -> Iterator[StatelessClient]:
        """One whose requests have ids of their own: those of a batch."""
        account = self._context.account(who, request)
        caller = StatelessClient(self._context, who, account, rules)
        key = account, f"{rules.revision} {id(caller)}"
        self._clients[key] = caller
        try:
            yield caller
        finally:
            self._clients.pop(key, None)

    def _evict(self) -> None:
        """Make room: forget who was not heard of for the longest time. Who has something in flight, or a handler that
        waits for answers, has another turn.
        """
        for _ in range(_EVICTION_TRIES):
            if len(self._clients) < self._context.limits.principals:
                return
            key, caller = next(iter(self._clients.items()))
            if caller.session.incoming or self._context.has_suspended_calls(caller.peer.account):
                self._clients.move_to_end(key)
            else:
                del self._clients[key]

    def _renew(self) -> None:
        """Offer to each caller what the server offers now."""
        newest, older = self._context.profile(), self._context.profile(lasts=False)
        for key, caller in self._clients.items():
            caller.session.local_info = newest if isinstance(key, str) else older

    def drain(self) -> None:
        """Take nothing new."""
        for caller in self._clients.values():
            caller.session.draining = True

    async def close(self) -> None:
        """End what is left, and what waits for answers with nothing in flight."""
        self._context.subscription_index.renewals.pop(self._renew, None)
        for caller in self._clients.values():
            end_session_requests(caller.driver, "the server was closed")
            if self._context.server.active_round_trips is not None:
                await self._context.server.active_round_trips.close(caller.peer, self._context.limits.close_seconds)


class StatelessHandler:
    """All requests of 2026-07-28 that reach one site."""

    def __init__(self, site: HTTPContext, callers: StatelessClients) -> None:
        self._context = site
        self._clients = callers
        self._listening: set[ListenResponse] = set()

    async def post(
        self, incoming: Incoming, request: ASGIRequest, receive: Receive, send: Send, who: Principal | None
    ) -> None:
        """Answer one POST. Raises `ClientDisconnected` when nobody waits for the answer any more."""
        if not isinstance(incoming.method, str):
            raise InvalidRequest("in 2026-07-28 a client posts requests and notifications, never responses")
        if not isinstance(incoming.id, int | str):
            return await self._receive_notification(incoming, request, send, who)
        caller = self._clients.get(who, request)
        try:
            posted = self._read(incoming, request, caller.session.incoming_requests.last_meta)
        except ProtocolError as error:
            refused = error_bytes(incoming.id, error, caller.session.agreed)
            return await send_json(send, status_of_refusal(error.code), refused)
        event = caller.session.receive_standalone_request(incoming, posted.meta)
        if isinstance(event, ReplyReady):
            return await send_json(send, status_of_refusal(event.code), event.message)
        assert isinstance(event, RequestReceived)  # a request is answered at once, or is for a handler
        exchange = event.exchange
        exchange.principal, exchange.headers = who, request.headers
        if exchange.method.stays:
            return await self._listen(exchange, caller, request, receive, send)
        return await StatelessResponse(exchange, caller.driver, receive, send).answer()

    def _read(self, incoming: Incoming, request: ASGIRequest, last: LastMeta) -> MirroredParams:
        """`_meta`, once the headers say the same as the body. Raises `InvalidParams`, `HeaderMismatch`."""
        method: str = incoming.method  # type: ignore[assignment]  # `post` has looked
        posted = peek.mirrored_params(incoming.params, last)
        named = posted.meta.protocol_version if posted.meta is not None else None
        if named != PER_REQUEST_REVISIONS[request.headers[PROTOCOL_VERSION]]:
            check_version(request.headers, named, self._context.server.revisions)
        if named is None:
            # By the rules of the session this could open a connection, which every caller of this address shares.
            raise InvalidParams("_meta lacks io.modelcontextprotocol/protocolVersion")
        check_method(request.headers, method)
        if (by := NAME_FIELDS.get(method)) is not None:
            subject = posted.subject(by)
            if subject is not None:  # else whoever reads the params will say so
                check_name(request.headers, subject)
            if method == "tools/call":
                self._check_parameters(incoming, request, subject)
        return posted

    def _check_parameters(self, incoming: Incoming, request: ASGIRequest, name: str | None) -> None:
        """Check the headers of a call of a tool that everybody sees; those of others are checked once it is known who
        may see them (`Resolver.resolve_call`): an error would say that they exist. Raises `HeaderMismatch`.
        """
        offer = self._context.server.registry.tools.get(name or "")
        if offer is not None and offer.is_public:
            check_headers(offer, request.headers, read_tool_call(incoming.params).arguments)

    async def _receive_notification(
        self, incoming: Incoming, request: ASGIRequest, send: Send, who: Principal | None
    ) -> None:
        """Hear what extensions have clients tell: "the server MUST return HTTP status code 202 Accepted"."""
        check_version(request.headers, None, self._context.server.revisions)
        caller = self._clients.get(who, request)
        event = caller.session.receive_standalone_notification(
            incoming, RULES[PER_REQUEST_REVISIONS[request.headers[PROTOCOL_VERSION]]]
        )
        caller.driver.event_handlers[type(event)](event)
        await send_text(send, 202, "")

    # --- subscriptions -----------------------------------------------------------------------------------------

    async def _listen(
        self, exchange: PendingRequest, caller: StatelessClient, request: ASGIRequest, receive: Receive, send: Send
    ) -> None:
        limits = self._context.limits.http
        most = min(limits.sessions, limits.sessions_per_address) if exchange.principal is None else limits.streams
        if caller.session.incoming_requests.subscription_count > most:
            error = InternalError(f"too many streams are open: the limit is {most:,}")
            return await send_json(send, 200, caller.session.fail(exchange, error) or b"")
        post = ListenResponse(exchange, caller.session, caller.peer.account, self._context, receive, send)
        self._listening.add(post)
        try:
            with self._context.subscription_index.with_peer(post.peer, request.size):
                await post.answer()
        finally:
            self._listening.discard(post)
        return None

    # --- the end -----------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Subscriptions end."""
        for post in list(self._listening):
            post.shut_down()
