"""A server as it is reached over HTTP on one event loop: what its sessions and its single requests share."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import msgspec

from accord.limits import Limits
from accord.messages.capabilities import without_sessions
from accord.server.audience import Audience, audience_of
from accord.server.dispatch import Dispatch
from accord.server.hearing import Hearing
from accord.server.http.accounts import account_of, is_address
from accord.server.http.bodies import BodyBudget
from accord.server.peer import Line, Peer
from accord.server.results import Packer
from accord.session.load import RequestLoad
from accord.session.profile import Profile
from accord.session.rate import Rate
from accord.session.session import Session
from accord.store.base import Events
from accord.store.careful import Careful
from accord.transport.conversation import Conversation

if TYPE_CHECKING:
    from accord.server.http.auth import Principal
    from accord.server.http.options import HTTPOptions
    from accord.server.server import Server
    from accord.transport.asgi.request import Request

log: logging.Logger = logging.getLogger("accord")


SEVERAL_WORKERS = (
    "where several workers serve one address, send each session to the worker that began it, "
    "or serve without sessions: HTTPOptions(stateless=True)"
)
"""What to do about a session, or a question, that another process has."""


class Site:
    """Everything that belongs to a server and a loop, and to no client."""

    def __init__(self, server: Server, options: HTTPOptions, events: Events) -> None:
        self.server: Server = server
        self.options: HTTPOptions = options
        self.events: Events = Careful(events)
        self.lasting: bool = options.events is not None
        """Whether sessions are kept for the next process."""
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.limits: Limits = over_http(server.limits)
        self.bodies: BodyBudget = BodyBudget(self.limits)
        self.hellos: BodyBudget = BodyBudget(self.limits)
        """What sessions keep of larger `initialize` requests."""
        self._proxied = options.public_url is not None
        self._load = RequestLoad(self.limits.http_requests)
        self._loads: WeakValueDictionary[str, RequestLoad] = WeakValueDictionary()
        self._told_of_workers = False
        self._rates: dict[str, tuple[Rate, Rate]] = {}
        if server.auth is None and server.registry.shown.guarded:
            log.warning("accord: %r has things for certain scopes, and no auth= to grant any: nobody sees them", server)
        profile = server.profile()
        self.audience: Audience = server.hub.join(lambda: audience_of(server))
        watched = server.watched
        begin = Dispatch if watched is None else watched.dispatch
        self.dispatch: Dispatch = begin(server, Packer(profile.raw_info), self.limits, self.audience)

    def session(self, account: str = "", *, shared: bool = False, lasts: bool = True) -> Session:
        """A session of its own, for a client of this account. `shared` is one for all those at an address whom nobody
        vouches for; one that does not last says nothing of what would have to be remembered.
        """
        limits = for_all(self.limits) if shared else self.limits
        server, profile = self.server, self.profile(lasts=lasts)
        session = Session("server", profile, revisions=server.revisions, limits=limits, methods=server.extended.rows)
        if account:
            session.served.load = self._load_of(account)
        return session

    def _load_of(self, account: str) -> RequestLoad:
        """Return what the requests in flight of one address or principal are counted in, in whatever sessions."""
        load = self._loads.get(account)
        if load is None:
            whole = self._load if is_address(account) else None
            load = self._loads[account] = RequestLoad(self.limits.http_requests_per_address, whole)
        return load

    def profile(self, *, lasts: bool = True) -> Profile:
        """Return what the server says of itself now; `lasts` is as for `session`."""
        profile = self.server.profile()
        if lasts:
            return profile
        return Profile(profile.info, without_sessions(profile.capabilities), profile.instructions)

    def account(self, who: Principal | None, request: Request) -> str:
        """Whose quotas a request uses up."""
        return account_of(who, request, proxied=self._proxied)

    def peer(self, line: Conversation, who: Principal | None, account: str) -> Peer:
        """A client at the end of a line. What it may do how often is bounded for its principal, not for each line."""
        watched = self.server.watched
        end: Line = line if watched is None else watched.line(line)
        if who is None:
            peer = Peer(end)
            peer.account = account
            return peer
        peer = Peer(end, who.id)
        peer.who = who
        peer.calls, peer.completions = self._rates_of(who.id)
        return peer

    def _rates_of(self, principal: str) -> tuple[Rate, Rate]:
        """Of tool calls and completions. Those of the principal heard of the longest ago are forgotten for one more."""
        rates = self._rates.pop(principal, None)
        if rates is None:
            rates = Rate(self.limits.tool_calls_per_second), Rate(self.limits.completions_per_second)
        self._rates[principal] = rates
        if len(self._rates) > self.limits.principals:
            del self._rates[next(iter(self._rates))]
        return rates

    def waiting(self, account: str) -> bool:
        """Whether a handler waits for answers of this account, with no request in flight."""
        asked = self.server.asked
        return asked is not None and account in asked.runs.waiting

    def hearing(self, peer: Peer) -> Hearing:
        """What a client tells."""
        return Hearing(lambda event: self.dispatch.hear(event, peer), self.server.extended.offers, self.limits)

    def tell_of_workers(self, what: str) -> None:
        """Log once that something came which another process may have begun."""
        if not self._told_of_workers:
            self._told_of_workers = True
            log.warning("accord: %s; %s (this is logged once)", what, SEVERAL_WORKERS)

    def close(self) -> None:
        """Let the worker threads go."""
        self.server.hub.leave(self.audience)
        self.dispatch.close()


def over_http(limits: Limits) -> Limits:
    """Limits as they hold here."""
    return msgspec.structs.replace(limits, tool_seconds=limits.tool_seconds or limits.http_tool_seconds)


def for_all(limits: Limits) -> Limits:
    """Return the limits of one peer as they hold for all anonymous clients of one address together."""
    return msgspec.structs.replace(
        limits,
        requests_in_flight=min(limits.http_requests, limits.http_requests_per_address),
        parked=min(limits.http_parked, limits.http_parked_per_address),
        completions_per_second=limits.http_completions_per_second,
    )
