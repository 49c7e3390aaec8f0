"""A server as it is reached over HTTP on one event loop: what its sessions and its single requests share."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

import msgspec

from accord.limits import Limits
from accord.messages.capabilities import without_sessions
from accord.server.core.dispatch import DispatchedServer, Dispatcher
from accord.server.core.peer import ClientNotifications, Peer, PeerChannel
from accord.server.core.results import ResultEncoder
from accord.server.http.quotas import BodyBudget, account_of, is_address
from accord.server.http.slow_readers import SlowReaders
from accord.server.notify.subscription_index import ChangeBus, SubscriptionIndex, make_subscription_index
from accord.session.peer_info import PeerInfo
from accord.session.rate import RateLimiter, RequestLoad
from accord.session.session import Session
from accord.store.base import CheckedEvents, Events
from accord.transport.asgi.sse_response import SSEResponse, UnsentCallback
from accord.transport.session_driver import SessionDriver

if TYPE_CHECKING:
    from accord.server.core.instrumentation import ServerInstrumentation
    from accord.server.core.principal import Principal
    from accord.server.http.auth import Auth
    from accord.server.http.options import HTTPOptions
    from accord.server.input.multi_round_trip import MultiRoundTrip
    from accord.transport.asgi.request import ASGIRequest

log: logging.Logger = logging.getLogger("accord")


SEVERAL_WORKERS = (
    "where several workers serve one address, send each session to the worker that began it, "
    "or serve without sessions: HTTPOptions(stateless=True)"
)
"""What to do about a session, or a question, that another process has."""


class HTTPServer(DispatchedServer, Protocol):
    """A server, as it is served over HTTP."""

    revisions: tuple[str, ...]
    auth: Auth | None
    change_bus: ChangeBus
    instrumentation: ServerInstrumentation | None
    active_round_trips: MultiRoundTrip | None

    def profile(self) -> PeerInfo:
        """What this server says of itself."""


class HTTPContext:
    """Everything that belongs to a server and a loop, and to no client."""

    def __init__(self, server: HTTPServer, options: HTTPOptions, events: Events) -> None:
        self.server: HTTPServer = server
        self.options: HTTPOptions = options
        self.events: Events = CheckedEvents(events)
        self.is_persistent: bool = options.events is not None
        """Whether sessions are kept for the next process."""
        self.saving_large_record: asyncio.Lock = asyncio.Lock()
        """Held while the store writes one large record of a session."""
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.limits: Limits = http_limits(server.limits)
        self.body_budget: BodyBudget = BodyBudget(self.limits)
        self.handshake_budget: BodyBudget = BodyBudget(self.limits)
        """What sessions keep of larger `initialize` requests, and of the roots of their clients."""
        self.slow_streams: SlowReaders[SSEResponse] = SlowReaders(self.limits.http.unsent_bytes, SSEResponse.abort)
        """Streams of events of which clients take too little."""
        self._proxied = options.public_url is not None
        self._load = RequestLoad(self.limits.http.requests, self.limits.http.bodies_bytes)
        self._loads: WeakValueDictionary[str, RequestLoad] = WeakValueDictionary()
        self._warned_about_workers = False
        self._limiters: dict[str, tuple[RateLimiter, RateLimiter]] = {}
        if server.auth is None and server.registry.view.requires_scopes:
            log.warning("accord: %r has things for certain scopes, and no auth= to grant any: nobody sees them", server)
        profile = server.profile()
        self.subscription_index: SubscriptionIndex = server.change_bus.join(
            lambda: make_subscription_index(server.registry, server.profile, server.limits)
        )
        watched = server.instrumentation
        begin = Dispatcher if watched is None else watched.make_dispatcher
        self.dispatcher: Dispatcher = begin(
            server, ResultEncoder(profile.raw_info), self.limits, self.subscription_index
        )

    def session(self, account: str = "", *, shared: bool = False, lasts: bool = True) -> Session:
        """A session of its own, for a client of this account. `shared` is one for all those at an address whom nobody
        vouches for; one that does not last says nothing of what would have to be remembered.
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
        """Return what the requests in flight of one address or principal are counted in, in whatever sessions."""
        load = self._loads.get(account)
        if load is None:
            whole = self._load if is_address(account) else None
            limits = self.limits
            load = RequestLoad(limits.http.requests_per_address, limits.http.bodies_bytes_per_address, whole)
            self._loads[account] = load
        return load

    def profile(self, *, lasts: bool = True) -> PeerInfo:
        """Return what the server says of itself now; `lasts` is as for `session`."""
        profile = self.server.profile()
        if lasts:
            return profile
        return PeerInfo(profile.info, without_sessions(profile.capabilities), profile.instructions)

    def account(self, who: Principal | None, request: ASGIRequest) -> str:
        """Whose quotas a request uses up."""
        return account_of(who, request, proxied=self._proxied)

    def unsent_of(self, account: str) -> UnsentCallback:
        """Return what counts the unsent bytes of streams of this account."""
        return partial(self.slow_streams.update, account)

    def peer(self, line: SessionDriver, who: Principal | None, account: str) -> Peer:
        """A client at the end of a line. What it may do how often is bounded for its principal, not for each line."""
        watched = self.server.instrumentation
        end: PeerChannel = line if watched is None else watched.wrap_channel(line)
        if who is None:
            peer = Peer(end)
            peer.account = account
            return peer
        peer = Peer(end, who.id)
        peer.identity = who
        peer.call_limiter, peer.completion_limiter = self._limiters_of(who.id)
        return peer

    def _limiters_of(self, principal: str) -> tuple[RateLimiter, RateLimiter]:
        """Of tool calls and completions. Those of the principal heard of the longest ago are forgotten for one more."""
        rates = self._limiters.pop(principal, None)
        if rates is None:
            rates = RateLimiter(self.limits.tool_calls_per_second), RateLimiter(self.limits.completions_per_second)
        self._limiters[principal] = rates
        if len(self._limiters) > self.limits.principals:
            del self._limiters[next(iter(self._limiters))]
        return rates

    def has_suspended_calls(self, account: str) -> bool:
        """Whether a handler waits for answers of this account, with no request in flight."""
        asked = self.server.active_round_trips
        return asked is not None and account in asked.suspended_calls.waiting

    def client_notifications(self, peer: Peer) -> ClientNotifications:
        """What a client tells."""
        return ClientNotifications(
            lambda event: self.dispatcher.receive_notification(event, peer),
            self.server.extension_methods.registrations,
            self.limits,
        )

    def warn_about_workers(self, what: str) -> None:
        """Log once that something came which another process may have begun."""
        if not self._warned_about_workers:
            self._warned_about_workers = True
            log.warning("accord: %s; %s (this is logged once)", what, SEVERAL_WORKERS)

    def close(self) -> None:
        """Let the worker threads go."""
        self.server.change_bus.leave(self.subscription_index)
        self.dispatcher.close()


def http_limits(limits: Limits) -> Limits:
    """Limits as they hold here."""
    return msgspec.structs.replace(limits, tool_seconds=limits.tool_seconds or limits.http.tool_seconds)


def anonymous_limits(limits: Limits) -> Limits:
    """Return the limits of one peer as they hold for all anonymous clients of one address together."""
    return msgspec.structs.replace(
        limits,
        requests_in_flight=min(limits.http.requests, limits.http.requests_per_address),
        parked=min(limits.http.parked, limits.http.parked_per_address),
        completions_per_second=limits.http.completions_per_second,
    )
