"""Who sends requests that belong to no session, and what is remembered of each of them: nothing but for bounds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from accord.messages.revision import Rules
from accord.server.http.auth import Principal
from accord.server.http.base_session import end_session_requests
from accord.server.peer import Peer
from accord.session.events import NotificationReceived
from accord.session.session import Session
from accord.session.states import Phase
from accord.transport.session_driver import SessionDriver

if TYPE_CHECKING:
    from accord.server.http.http_context import HTTPContext
    from accord.transport.asgi.request import ASGIRequest

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
