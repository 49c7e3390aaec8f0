"""The state of a server over HTTP on one event loop, shared by its sessions and stateless requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

import msgspec

from accord.errors import InvalidRequest
from accord.limits import Limits
from accord.messages.capabilities import without_sessions
from accord.server.auth.refusals import InsufficientScope
from accord.server.compose.access import missing_scopes_text
from accord.server.core.dispatch import DispatchedServer, Dispatcher
from accord.server.core.peer import ClientNotifications, Peer, PeerChannel
from accord.server.core.results import ResultEncoder
from accord.server.http.quotas import AccountFinder, BodyBudget, PendingAuthentications, account_of, is_address
from accord.server.http.slow_readers import SlowReaders
from accord.server.middleware.chain import NO_SCOPES
from accord.server.notify.change_bus import ChangeBus
from accord.server.notify.subscription_index import SubscriptionIndex, make_subscription_index
from accord.session.peer_info import PeerInfo
from accord.session.rate import RateLimiter, RequestLoad
from accord.session.session import Session
from accord.store.base import CheckedEvents, Events
from accord.transport.asgi.sse_response import SSEResponse, UnsentCallback
from accord.transport.base import MessageSink
from accord.transport.request_sender import NotificationCallback
from accord.transport.session_driver import SessionDriver

if TYPE_CHECKING:
    from accord.server.auth.authentication import Auth
    from accord.server.auth.token_verifier import TokenVerifier
    from accord.server.core.instrumentation import ServerInstrumentation
    from accord.server.core.principal import Principal
    from accord.server.http.options import HTTPOptions
    from accord.server.input.multi_round_trip import MultiRoundTrip
    from accord.session.pending_request import PendingRequest

log: logging.Logger = logging.getLogger("accord")


SEVERAL_WORKERS = (
    "where several workers serve one address, send each session to the worker that began it, "
    "or serve without sessions: HTTPOptions(stateless=True)"
)
"""The advice for a session, or a request, of another process."""


class HTTPServer(DispatchedServer, Protocol):
    """A server as served over HTTP."""

    revisions: tuple[str, ...]
    auth: Auth | None
    change_bus: ChangeBus
    instrumentation: ServerInstrumentation | None
    active_round_trips: MultiRoundTrip | None

    def profile(self) -> PeerInfo:
        """Return the server's description of itself."""


class HTTPContext:
    """The state of a server on one event loop that belongs to no single client."""

    def __init__(self, server: HTTPServer, options: HTTPOptions, events: Events) -> None:
        self.server: HTTPServer = server
        self.options: HTTPOptions = options
        self.events: Events = CheckedEvents(events)
        self.is_persistent: bool = options.events is not None
        """Whether sessions are stored for the next process."""
        self.saving_large_record: asyncio.Lock = asyncio.Lock()
        """Held while the store writes a large session record."""
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.limits: Limits = http_limits(server.limits)
        self.body_budget: BodyBudget = BodyBudget(self.limits)
        self.handshake_budget: BodyBudget = BodyBudget(self.limits)
        """The memory for large `initialize` requests, and for clients' roots."""
        self.slow_streams: SlowReaders[SSEResponse] = SlowReaders(self.limits.http.unsent_bytes, SSEResponse.abort)
        """Event streams whose clients read too slowly."""
        self.account: AccountFinder = partial(account_of, proxied=options.public_url is not None)
        """Returns the account whose quotas a request uses."""
        self.pending_authentications: PendingAuthentications = PendingAuthentications(self.limits, self.account)
        self._load = RequestLoad(self.limits.http.requests, self.limits.http.bodies_bytes)
        self._loads: WeakValueDictionary[str, RequestLoad] = WeakValueDictionary()
        self._warned_about_workers = False
        self._limiters: dict[str, tuple[RateLimiter, RateLimiter]] = {}
        if server.auth is None and (server.registry.view.requires_scopes or server.registry.view.has_needs):
            log.warning(
                "accord: %r has items that need scopes, which nothing grants without `auth`: no client can use them",
                server,
            )
        profile = server.profile()
        self.subscription_index: SubscriptionIndex = server.change_bus.join(
            lambda: make_subscription_index(server.registry, server.profile, server.limits)
        )
        instrumentation = server.instrumentation
        make_dispatcher = Dispatcher if instrumentation is None else instrumentation.make_dispatcher
        self.dispatcher: Dispatcher = make_dispatcher(
            server, ResultEncoder(profile.raw_info), self.limits, self.subscription_index
        )

    def session(self, account: str = "", *, shared: bool = False, lasts: bool = True) -> Session:
        """Return a new protocol session for a client of this account.

        `shared` is for all anonymous clients of one address. Without `lasts`, the session declares no capability that
        needs state.
        """
        limits = anonymous_limits(self.limits) if shared else self.limits
        server, profile = self.server, self.profile(lasts=lasts)
        session = Session(
            "server", profile, revisions=server.revisions, limits=limits, methods=server.extension_methods.methods
        )
        if account:
            session.incoming_requests.load = self._load_of(account)
        return session

    def _load_of(self, account: str) -> RequestLoad:
        """Return the counter of an account's requests in flight, in all its sessions."""
        load = self._loads.get(account)
        if load is None:
            whole = self._load if is_address(account) else None
            limits = self.limits
            load = RequestLoad(limits.http.requests_per_address, limits.http.bodies_bytes_per_address, whole)
            self._loads[account] = load
        return load

    def profile(self, *, lasts: bool = True) -> PeerInfo:
        """Return the server's current description; `lasts` as for `session`."""
        profile = self.server.profile()
        if lasts:
            return profile
        return PeerInfo(profile.info, without_sessions(profile.capabilities), profile.instructions)

    def unsent_of(self, account: str) -> UnsentCallback:
        """Return the callback that counts the unsent bytes of this account's streams."""
        return partial(self.slow_streams.update, account)

    def connect(
        self,
        session: Session,
        sink: MessageSink,
        principal: Principal | None,
        account: str,
        on_notification: NotificationCallback | None = None,
    ) -> tuple[SessionDriver, Peer]:
        """Return the driver of a session, whose messages go to `sink`, and its peer, for whom the dispatcher handles
        requests.
        """
        driver = SessionDriver(
            session,
            sink,
            self.dispatcher.handle,
            on_notification=on_notification,
            limits=self.limits,
            on_unsent=self.unsent_of(account),
        )
        peer = driver.handler_argument = self._peer(driver, principal, account)
        return driver, peer

    def check_scopes(
        self, requests: Iterable[PendingRequest], principal: Principal | None, driver: SessionDriver, peer: Peer
    ) -> None:
        """Raise `InsufficientScope`, which ends the requests of one POST, if one of them calls a tool whose scopes the
        principal lacks. Without tools that need scopes (`RegistryView.has_needs`) this does nothing.
        """
        if not self.server.registry.view.has_needs:
            return
        needs = NO_SCOPES.union(*(self.dispatcher.missing_scopes(pending, peer) for pending in requests))
        if needs:
            for pending in requests:
                driver.session.fail(pending, InvalidRequest(missing_scopes_text(needs)))
            raise InsufficientScope(needs | self._required_scopes(principal))

    def _required_scopes(self, principal: Principal | None) -> frozenset[str]:
        """Return the scopes that every request of a principal needs."""
        verifiers: Sequence[TokenVerifier] = getattr(self.server.auth, "verifiers", ())
        required = (each.required_scopes for each in verifiers if principal and each.issuer == principal.issuer)
        return NO_SCOPES.union(*required)

    def _peer(self, driver: SessionDriver, principal: Principal | None, account: str) -> Peer:
        """Return the peer for a channel. Rate limits apply per principal, not per channel."""
        instrumentation = self.server.instrumentation
        channel: PeerChannel = driver if instrumentation is None else instrumentation.wrap_channel(driver)
        if principal is None:
            peer = Peer(channel)
            peer.account = account
            return peer
        peer = Peer(channel, principal.id)
        peer.identity = principal
        peer.call_limiter, peer.completion_limiter = self._limiters_of(principal.id)
        return peer

    def _limiters_of(self, principal: str) -> tuple[RateLimiter, RateLimiter]:
        """Return the limiters of tool calls and completions. Beyond the limit, the least recently used principal is
        dropped.
        """
        rates = self._limiters.pop(principal, None)
        if rates is None:
            rates = RateLimiter(self.limits.tool_calls_per_second), RateLimiter(self.limits.completions_per_second)
        self._limiters[principal] = rates
        if len(self._limiters) > self.limits.principals:
            del self._limiters[next(iter(self._limiters))]
        return rates

    def has_suspended_calls(self, account: str) -> bool:
        """Return whether a handler of this account waits for a response, with no request in flight."""
        round_trips = self.server.active_round_trips
        return round_trips is not None and account in round_trips.suspended_calls.waiting

    def client_notifications(self, peer: Peer) -> ClientNotifications:
        """Return the handler of a client's notifications."""
        return ClientNotifications(
            lambda event: self.dispatcher.receive_notification(event, peer),
            self.server.extension_methods.registrations,
            self.limits,
        )

    def warn_about_workers(self, what: str) -> None:
        """Log once that a message may belong to another process."""
        if not self._warned_about_workers:
            self._warned_about_workers = True
            log.warning("accord: %s; %s (this is logged once)", what, SEVERAL_WORKERS)

    def close(self) -> None:
        """Stop the worker threads."""
        self.server.change_bus.leave(self.subscription_index)
        self.dispatcher.close()


def http_limits(limits: Limits) -> Limits:
    """Return the limits with the timeout for tools over HTTP."""
    return msgspec.structs.replace(limits, tool_seconds=limits.tool_seconds or limits.http.tool_seconds)


def anonymous_limits(limits: Limits) -> Limits:
    """Return the limits shared by all anonymous clients of one address."""
    return msgspec.structs.replace(
        limits,
        requests_in_flight=min(limits.http.requests, limits.http.requests_per_address),
        completions_per_second=limits.http.completions_per_second,
    )
