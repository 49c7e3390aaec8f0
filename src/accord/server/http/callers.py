"""Who sends requests that belong to no session, and what is remembered of each of them: nothing but for bounds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from accord.messages.revision import Rules
from accord.server.http.auth import Principal
from accord.server.http.visitor import end_all
from accord.server.peer import Peer
from accord.session.events import NotificationReceived
from accord.session.session import Session
from accord.session.states import Phase
from accord.transport.conversation import Conversation

if TYPE_CHECKING:
    from accord.server.http.site import Site
    from accord.transport.asgi.request import Request

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
    """One principal, or all at one address whom nobody vouches for: what is in flight, and how often it may do what.

    `rules` are those of an older revision, which is served without sessions.
    """

    def __init__(self, site: Site, who: Principal | None, account: str, rules: Rules | None = None) -> None:
        self.session: Session = site.session(account, shared=who is None, lasts=rules is None)
        if rules is not None:
            self.session.rules, self.session.phase = rules, Phase.OPEN
            self.session.names_revisions = False  # a header does
        self.conversation: Conversation = Conversation(
            self.session,
            Nowhere(),
            lambda exchange, _: site.dispatch.handle(exchange, self.peer),
            on_notification=self._hear,
            limits=site.limits,
        )
        self.peer: Peer = site.peer(self.conversation, who, account)
        self._hearing = site.hearing(self.peer)
        self.peer.shared = who is None

    def _hear(self, event: NotificationReceived) -> None:
        self._hearing.hear(event)


class Callers:
    """Those of one site, as many as are remembered."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._found: OrderedDict[str | tuple[str, str], Caller] = OrderedDict()
        """By account, and by account and revision for the older ones."""
        site.audience.renewals[self._renew] = None

    def __len__(self) -> int:
        return len(self._found)

    def values(self) -> Iterable[Caller]:
        """All of them."""
        return self._found.values()

    def get(self, who: Principal | None, request: Request, rules: Rules | None = None) -> Caller:
        """Find who asks, by the rules of 2026-07-28 or of an older revision without sessions."""
        account = who.id if who is not None else self._site.account(who, request)
        key = account if rules is None else (account, rules.revision)
        caller = self._found.get(key)
        if caller is None:
            self._forget()
            caller = self._found[key] = Caller(self._site, who, account, rules)
        else:
            self._found.move_to_end(key)
        return caller

    @contextmanager
    def once(self, who: Principal | None, request: Request, rules: Rules) -> Iterator[Caller]:
        """One whose requests have ids of their own: those of a batch."""
        account = self._site.account(who, request)
        caller = Caller(self._site, who, account, rules)
        key = account, f"{rules.revision} {id(caller)}"
        self._found[key] = caller
        try:
            yield caller
        finally:
            self._found.pop(key, None)

    def _forget(self) -> None:
        """Make room: forget who was not heard of for the longest time. Who has something in flight, or a handler that
        waits for answers, has another turn.
        """
        for _ in range(_LOOKS):
            if len(self._found) < self._site.limits.principals:
                return
            key, caller = next(iter(self._found.items()))
            if caller.session.incoming or self._site.waiting(caller.peer.account):
                self._found.move_to_end(key)
            else:
                del self._found[key]

    def _renew(self) -> None:
        """Offer to each caller what the server offers now."""
        newest, older = self._site.profile(), self._site.profile(lasts=False)
        for key, caller in self._found.items():
            caller.session.profile = newest if isinstance(key, str) else older

    def drain(self) -> None:
        """Take nothing new."""
        for caller in self._found.values():
            caller.session.draining = True

    async def close(self) -> None:
        """End what is left, and what waits for answers with nothing in flight."""
        self._site.audience.renewals.pop(self._renew, None)
        for caller in self._found.values():
            end_all(caller.conversation, "the server was closed")
            if self._site.server.asked is not None:
                await self._site.server.asked.close(caller.peer, self._site.limits.close_seconds)
