"""A client that stays for a while: what every session over HTTP has, whichever streams it uses."""

from __future__ import annotations

import os
import secrets
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import ExitStack
from hashlib import blake2b
from hmac import compare_digest
from typing import TYPE_CHECKING

from accord.errors import NotConnected, ProtocolError
from accord.messages import envelope
from accord.messages.envelope import Malformed
from accord.server.http.auth import id_of
from accord.server.http.bodies import SMALL_BYTES, memory_of
from accord.server.http.site import SEVERAL_WORKERS, Site
from accord.server.peer import Peer
from accord.session.calls import UNKNOWN_ANSWER
from accord.session.events import Event, Ignored, NotificationReceived, RequestReceived
from accord.session.session import Session
from accord.session.states import Phase
from accord.transport.asgi.request import Rejected
from accord.transport.base import Way
from accord.transport.conversation import Conversation

if TYPE_CHECKING:
    from accord.server.http.auth import Principal


class Visitor:
    """One session of one principal. `id` is its secret: 256 random bits ("cryptographically secure").

    `way` is where goes what belongs to no request.
    """

    def __init__(self, site: Site, who: Principal | None, account: str, way: Way, id: str) -> None:
        self.id: str = id
        self.account: str = account
        """Whose quotas it uses up."""
        self.others: OrderedDict[Visitor, None] | None = None
        """All of its account, the one first that was not heard of for the longest time."""
        self.principal: str = id_of(who)
        self.born: float = site.loop.time()
        self.seen: float = self.born
        """When it was last heard of."""
        self.open: int = 0
        """Requests of its client that are being answered, and streams that are open."""
        self._visits = 0
        self._hello = 0  # bytes charged for what it keeps of `initialize`
        self.site: Site = site
        self.session: Session = site.session(account)
        self.conversation: Conversation = Conversation(
            self.session,
            way,
            lambda exchange, _: site.dispatch.handle(exchange, self.peer),
            on_notification=self._hear,
            limits=site.limits,
        )
        self.peer: Peer = site.peer(self.conversation, who, account)
        self._hearing = site.hearing(self.peer)
        self._joined = ExitStack()
        self._joined.enter_context(site.audience.with_peer(self.peer))

    def _hear(self, event: NotificationReceived) -> None:
        self._hearing.hear(event)

    def receive(self, body: bytes, who: Principal | None, headers: Mapping[bytes, bytes]) -> list[Event]:
        """What one POST brought. Its requests may do what whoever posted it may, not what the session began with."""
        self.peer.who = who
        if len(body) > SMALL_BYTES and _is_initialize(body):
            self._keep_hello(memory_of(body))
        events = self.session.receive(body)
        for event in events:
            if type(event) is RequestReceived:
                event.exchange.who, event.exchange.headers = who, headers
        return events

    def _keep_hello(self, size: int) -> None:
        """Charge what is kept of `initialize`: of the largest, where it is repeated. Raises `Rejected`."""
        if size > self._hello:
            self.site.hellos.take(self.account, size - self._hello)
            self._hello = size

    def check_answer(self, events: list[Event]) -> None:
        """Raise `Rejected` for an answer to a question that was not asked here: nobody waits for it, and whoever asked
        in another process would wait for ever. "If the server cannot accept the input, it MUST return an HTTP error
        status code" (Streamable HTTP, Sending Messages).
        """
        if len(events) == 1 and type(event := events[0]) is Ignored and event.kind == UNKNOWN_ANSWER:
            what = f"an answer came to a question that this process has not asked in this session ({event.detail})"
            self.site.tell_of_workers(what)
            raise Rejected(400, f"{what}; {SEVERAL_WORKERS}")

    @property
    def busy(self) -> bool:
        """Whether it has something to do, or somebody listens: then it is not idle."""
        return bool(self.open or self.session.incoming)

    @property
    def unused(self) -> bool:
        """Whether nothing has come of it since `initialize`."""
        return self._visits < 2 and self.session.phase is not Phase.OPEN and not self.busy

    def __enter__(self) -> Visitor:
        """As long as a request of its client is being answered."""
        self._visits += 1
        self.open += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.open -= 1
        self.seen = self.site.loop.time()
        if self.others is not None:
            self.others.move_to_end(self)

    async def close(self, why: str) -> None:
        """End it: what runs is answered with an error and cancelled, what waits for the client fails."""
        end_all(self.conversation, why)
        if self._hello:
            self.site.hellos.give_back(self.account, self._hello)
            self._hello = 0
        self._joined.close()
        seconds = self.site.limits.close_seconds
        await self.conversation.finish_telling(seconds / 2)
        await self._hearing.finish(seconds / 2)
        if self.site.server.asked is not None:
            await self.site.server.asked.close(self.peer, seconds)
        if self.site.server.watched is not None:
            self.site.server.watched.leave(self.conversation, self.born)

    async def forget(self) -> None:
        """It will not come back: keep nothing of it."""


def _is_initialize(body: bytes) -> bool:
    try:
        return envelope.read(body).method == "initialize"
    except (Malformed, ProtocolError):
        return False


_KEY = os.urandom(16)
_MARK_BYTES = 9


def new_id() -> str:
    """An id that nobody can guess, of visible ASCII. Its end tells this process that it has made it."""
    secret = secrets.token_urlsafe(32)
    return secret + _mark(secret)


def is_own_id(id: str) -> bool:
    """Whether this process has made an id, rather than another worker, or nobody."""
    length = len(_mark(""))
    return compare_digest(_mark(id[:-length]).encode(), id[-length:].encode(errors="replace"))


def _mark(secret: str) -> str:
    digest = blake2b(secret.encode(errors="replace"), key=_KEY, digest_size=_MARK_BYTES)
    return urlsafe_b64encode(digest.digest()).decode()


def end_all(conversation: Conversation, why: str) -> None:
    """What runs is answered with an error and cancelled, what waits for the client fails."""
    conversation.closing = True
    conversation.fail_all(NotConnected(why))
    conversation.end_requests(list(conversation.session.incoming.values()), why)
