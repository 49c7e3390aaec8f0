"""2026-07-28 over HTTP: each POST is stateless; per client, only the data for bounds is kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from accord.errors import InternalError, InvalidParams, InvalidRequest, ProtocolError
from accord.messages.envelope import Incoming
from accord.messages.meta import RequestMeta
from accord.messages.revision import RULES, Rules
from accord.server.core.dispatch import read_tool_call
from accord.server.core.peer import Peer
from accord.server.core.principal import Principal
from accord.server.core.resolver import check_headers, mirrored_arguments
from accord.server.http.base_session import end_session_requests, until_expiry
from accord.server.http.response import PostResponse
from accord.session import peek
from accord.session.events import Event, NotificationReceived, ReplyReady, RequestReceived
from accord.session.incoming import error_bytes
from accord.session.peek import LastMeta, MirroredParams
from accord.session.pending_request import PendingRequest
from accord.session.session import Session
from accord.session.states import Phase
from accord.transport.asgi.request import ASGIRequest, send_json, send_text
from accord.transport.base import NullSink
from accord.transport.session_driver import SessionDriver
from accord.wire.headers import PER_REQUEST_REVISIONS, PROTOCOL_VERSION
from accord.wire.request_headers import (
    NAME_FIELDS,
    check_method,
    check_name,
    check_version,
    status_of_refusal,
)

if TYPE_CHECKING:
    from accord.server.http.http_context import HTTPContext

_EVICTION_TRIES = 2
"""The most clients to check for one that can be evicted: enough to find room after some requests, at little cost."""


class StatelessClient:
    """One principal, or all anonymous clients of one address: its requests in flight, and its rate limits.

    `rules` are those of an older revision, which is served without sessions.
    """

    def __init__(
        self, context: HTTPContext, principal: Principal | None, account: str, rules: Rules | None = None
    ) -> None:
        self.session: Session = context.session(account, shared=principal is None, lasts=rules is None)
        if rules is not None:
            self.session.rules, self.session.phase = rules, Phase.OPEN
            self.session.allows_revision_in_meta = False  # a header names it
        self.driver: SessionDriver
        self.peer: Peer
        self.driver, self.peer = context.connect(self.session, NullSink(), principal, account, self._on_notification)
        self._client_notifications = context.client_notifications(self.peer)
        self.peer.shared = principal is None

    def receive(self, incoming: Incoming, meta: RequestMeta | None, request: ASGIRequest) -> Event:
        """Process the request of one POST, with the principal and the headers of this POST; `meta` is its decoded
        `_meta`.
        """
        event = self.session.incoming_requests.receive_standalone(incoming, meta)
        if type(event) is RequestReceived:
            event.pending.principal, event.pending.headers = request.principal, request.headers
        return event

    def _on_notification(self, event: NotificationReceived) -> None:
        self._client_notifications.receive(event)


class StatelessClients:
    """The clients of one server, up to a bound."""

    def __init__(self, context: HTTPContext) -> None:
        self._context = context
        self._clients: OrderedDict[str | tuple[str, str], StatelessClient] = OrderedDict()
        """By account; for older revisions by account and revision."""
        context.subscription_index.renewals[self._renew] = None

    def __len__(self) -> int:
        return len(self._clients)

    def values(self) -> Iterable[StatelessClient]:
        """Return all clients."""
        return self._clients.values()

    def get(self, request: ASGIRequest, rules: Rules | None = None) -> StatelessClient:
        """Return the client of a request, by the rules of 2026-07-28 or of an older revision without sessions."""
        account = self._context.account(request)
        key = account if rules is None else (account, rules.revision)
        client = self._clients.get(key)
        if client is None:
            self._evict()
            client = self._clients[key] = StatelessClient(self._context, request.principal, account, rules)
        else:
            self._clients.move_to_end(key)
        return client

    @contextmanager
    def for_batch(self, request: ASGIRequest, rules: Rules) -> Iterator[StatelessClient]:
        """Yield a client for one batch, whose requests have an id space of their own."""
        account = self._context.account(request)
        client = StatelessClient(self._context, request.principal, account, rules)
        key = account, f"{rules.revision} {id(client)}"
        self._clients[key] = client
        try:
            yield client
        finally:
            self._clients.pop(key, None)

    def _evict(self) -> None:
        """Make room: drop the least recently used client, unless it has requests in flight or a handler that waits for
        responses.
        """
        for _ in range(_EVICTION_TRIES):
            if len(self._clients) < self._context.limits.principals:
                return
            key, client = next(iter(self._clients.items()))
            if client.session.incoming or self._context.has_suspended_calls(client.peer.account):
                self._clients.move_to_end(key)
            else:
                del self._clients[key]

    def _renew(self) -> None:
        """Give all clients the server's current description."""
        newest, older = self._context.profile(), self._context.profile(lasts=False)
        for key, client in self._clients.items():
            client.session.local_info = newest if isinstance(key, str) else older

    def drain(self) -> None:
        """Refuse new requests."""
        for client in self._clients.values():
            client.session.draining = True

    async def close(self) -> None:
        """End all requests in flight, and handlers that wait for responses."""
        self._context.subscription_index.renewals.pop(self._renew, None)
        for client in self._clients.values():
            end_session_requests(client.driver, "the server was closed")
            if self._context.server.active_round_trips is not None:
                await self._context.server.active_round_trips.close(client.peer, self._context.limits.close_seconds)


class StatelessHandler:
    """The handler of all POSTs of 2026-07-28 on one server."""

    def __init__(self, context: HTTPContext, clients: StatelessClients) -> None:
        self._context = context
        self._clients = clients
        self._listening: dict[PendingRequest, PostResponse] = {}

    async def post(self, incoming: Incoming, request: ASGIRequest) -> None:
        """Answer one POST. Raises `ClientDisconnected`."""
        if not isinstance(incoming.method, str):
            raise InvalidRequest("in 2026-07-28 a client posts requests and notifications, never responses")
        if not isinstance(incoming.id, int | str):
            return await self._receive_notification(incoming, request)
        client = self._clients.get(request)
        try:
            params = self._read(incoming, request, client.session.incoming_requests.last_meta)
        except ProtocolError as error:
            refused = error_bytes(incoming.id, error, client.session.agreed)
            return await send_json(request.send, status_of_refusal(error.code), refused)
        event = client.receive(incoming, params.meta, request)
        if isinstance(event, ReplyReady):
            return await send_json(request.send, status_of_refusal(event.code), event.message)
        assert isinstance(event, RequestReceived)  # a request is answered at once, or is for a handler
        if self._context.server.registry.view.has_needs:
            self._context.check_scopes([event.pending], request.principal, client.driver, client.peer)
        if event.pending.method.stays:
            return await self._listen(event.pending, client, request)
        return await PostResponse([event.pending], client.driver, request).answer()

    def _read(self, incoming: Incoming, request: ASGIRequest, last: LastMeta) -> MirroredParams:
        """Return the mirrored parameters, with headers that match the body. Raises `InvalidParams`,
        `HeaderMismatch`.
        """
        method: str = incoming.method  # type: ignore[assignment]  # `post` has checked it
        params = peek.mirrored_params(incoming.params, last)
        version = params.meta.protocol_version if params.meta is not None else None
        if version != PER_REQUEST_REVISIONS[request.headers[PROTOCOL_VERSION]]:
            check_version(request.headers, version, self._context.server.revisions)
        if version is None:
            # By the rules of the session this could open a connection, which all clients of this address would share.
            raise InvalidParams("_meta lacks io.modelcontextprotocol/protocolVersion")
        check_method(request.headers, method)
        if (name_field := NAME_FIELDS.get(method)) is not None:
            subject = params.subject(name_field)
            if subject is not None:  # otherwise the decoder of the params raises the error
                check_name(request.headers, subject)
            if method == "tools/call":
                # Tools that are not public are checked once it is known that the principal may see them
                # (`Resolver.resolve_call`): an error would disclose that they exist.
                registration = self._context.server.registry.view.tools.get(subject or "")
                may_mirror = registration is not None and registration.is_public and registration.may_mirror
                if registration is not None and may_mirror and mirrored_arguments(registration):
                    check_headers(registration, request.headers, read_tool_call(incoming.params).arguments)
        return params

    async def _receive_notification(self, incoming: Incoming, request: ASGIRequest) -> None:
        """Process a notification of an extension: "the server MUST return HTTP status code 202 Accepted"."""
        check_version(request.headers, None, self._context.server.revisions)
        client = self._clients.get(request)
        event = client.session.receive_standalone_notification(
            incoming, RULES[PER_REQUEST_REVISIONS[request.headers[PROTOCOL_VERSION]]]
        )
        client.driver.event_handlers[type(event)](event)
        await send_text(request.send, 202, "")

    # --- subscriptions -----------------------------------------------------------------------------------------

    async def _listen(self, pending: PendingRequest, client: StatelessClient, request: ASGIRequest) -> None:
        limits = self._context.limits.http
        name = "sessions" if limits.sessions <= limits.sessions_per_address else "sessions_per_address"
        name = name if request.principal is None else "streams"
        most: int = getattr(limits, name)
        if client.session.incoming_requests.subscription_count > most:
            error = InternalError(f"too many streams are open: the limit is {most:,} (HTTPLimits.{name})")
            return await send_json(request.send, 200, client.session.fail(pending, error) or b"")
        response = PostResponse([pending], client.driver, request)
        # A subscription is a client of its own, whose notifications are sent on its response.
        response.driver, peer = self._context.connect(client.session, response, request.principal, client.peer.account)
        self._listening[pending] = response
        try:
            # Closing the stream without a result tells the client to subscribe again, with another token: "a transport
            # that closes without it indicates an unexpected disconnect" (Subscriptions, Graceful Closure).
            expiring = until_expiry(request.principal, partial(response.cancel, pending))
            with self._context.subscription_index.with_peer(peer, request.size), expiring:
                await response.answer()
        finally:
            del self._listening[pending]
        return None

    # --- shutdown ----------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """End all subscriptions: over HTTP with the result, not a cancellation (Subscriptions, Graceful Closure)."""
        for pending, response in list(self._listening.items()):
            task = pending.driver
            if messages := response.driver.session.end_subscription(pending):
                response.send(messages[-1])
                task.cancel()
