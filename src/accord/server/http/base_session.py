"""A client that stays for a while: what every session over HTTP has, whichever streams it uses.

What the store has of a session, for the next process.
"""

from __future__ import annotations

import logging
import os
import secrets
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Container, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from hmac import compare_digest
from typing import TYPE_CHECKING

import msgspec

from accord.errors import NotConnected, ProtocolError
from accord.messages import envelope
from accord.messages.base import LoggingLevel
from accord.messages.bounds import memory_of
from accord.messages.capabilities import ClientCapabilities
from accord.messages.envelope import MalformedMessage
from accord.messages.identity import Implementation
from accord.messages.revision import RULES
from accord.server.core.peer import Peer
from accord.server.core.principal import id_of
from accord.server.core.visibility import VisibilityRules
from accord.server.http.http_context import SEVERAL_WORKERS, HTTPContext
from accord.session.events import (
    ErrorReceived,
    Event,
    MessageIgnored,
    NotificationReceived,
    RequestReceived,
    ResultReceived,
)
from accord.session.outgoing import UNKNOWN_ANSWER
from accord.session.pending_request import PendingRequest
from accord.session.session import Session
from accord.session.states import Phase
from accord.transport.asgi.request import RequestRejected
from accord.transport.base import MessageSink
from accord.transport.request_sender import ResponseWaiter
from accord.transport.session_driver import SessionDriver

if TYPE_CHECKING:
    from accord.server.core.principal import Principal
    from accord.server.http.quotas import BodyCharge

_SMALL_HANDSHAKE_BYTES = 1 << 8
"""Bytes of an `initialize` that is not charged. A session keeps it, and takes up to 32 times as many bytes for it."""


class BaseHTTPSession:
    """One session of one principal. `id` is its secret: 256 random bits ("cryptographically secure").

    `way` is where goes what belongs to no request.
    """

    def __init__(self, site: HTTPContext, who: Principal | None, account: str, way: MessageSink, id: str) -> None:
        self.id: str = id
        self.account: str = account
        """Whose quotas it uses up."""
        self.account_sessions: OrderedDict[BaseHTTPSession, None] | None = None
        """All of its account, the one first that was not heard of for the longest time."""
        self.principal: str = id_of(who)
        self.created_at: float = site.loop.time()
        self.last_used_at: float = self.created_at
        """When it was last heard of."""
        self.open_requests: int = 0
        """Requests of its client that are being answered, and streams that are open."""
        self._open_streams = 0  # those of the requests that only listen
        self._request_count = 0
        self._handshake_bytes = 0  # bytes charged for what it keeps of `initialize`
        self._roots_bytes = 0  # and of the roots of its client
        self.context: HTTPContext = site
        self.session: Session = site.session(account)
        self.driver: SessionDriver = SessionDriver(
            self.session,
            way,
            lambda exchange, _: site.dispatcher.handle(exchange, self.peer),
            on_notification=self._on_notification,
            limits=site.limits,
            on_unsent=site.unsent_of(account),
        )
        self.peer: Peer = site.peer(self.driver, who, account)
        self.peer.reserve_roots = self._reserve_roots
        self._client_notifications = site.client_notifications(self.peer)
        self._joined = ExitStack()
        self._joined.enter_context(site.subscription_index.with_peer(self.peer))

    def _on_notification(self, event: NotificationReceived) -> None:
        self._client_notifications.receive(event)

    def receive(
        self, body: bytes, who: Principal | None, headers: Mapping[bytes, bytes], charge: BodyCharge
    ) -> list[Event]:
        """What one POST brought. Its requests may do what whoever posted it may, not what the session began with. Its
        answers hold `charge` until the handlers that asked have ended, which may hold the answers.
        """
        self.peer.identity = who
        if len(body) > _SMALL_HANDSHAKE_BYTES and self._may_initialize(body) and _is_initialize(body):
            self.reserve_handshake(body)
        events = self.session.receive(body)
        for event in events:
            if type(event) is RequestReceived:
                event.exchange.principal, event.exchange.headers = who, headers
            elif type(event) is ResultReceived or type(event) is ErrorReceived:
                _hold_answer(event.exchange, charge)
        return events

    def _may_initialize(self, body: bytes) -> bool:
        """Whether a body may be an `initialize`, at little cost for what is none."""
        return self.session.phase is Phase.NEW or b'"initialize"' in body or rb"\u" in body

    def reserve_handshake(self, message: bytes) -> None:
        """Charge what is kept of `initialize`: of the largest, where it is repeated. Raises `RequestRejected`."""
        if len(message) <= _SMALL_HANDSHAKE_BYTES:
            return
        size = memory_of(message, self.context.limits.http.body_nodes)
        if size > self._handshake_bytes:
            self.context.handshake_budget.charge(self.account, size - self._handshake_bytes)
            self._handshake_bytes = size

    def _reserve_roots(self, size: int) -> bool:
        """Charge what is kept of the roots of its client: of the largest, where they change. Whether there was room."""
        if self.driver.closing:
            return False
        if size > self._roots_bytes:
            try:
                self.context.handshake_budget.charge(self.account, size - self._roots_bytes)
            except RequestRejected:
                return False
            self._roots_bytes = size
        return True

    def check_answer(self, events: list[Event]) -> None:
        """Raise `RequestRejected` for an answer to a question that was not asked here: nobody waits for it, and whoever
        asked in another process would wait for ever. "If the server cannot accept the input, it MUST return an HTTP
        error status code" (Streamable HTTP, Sending Messages).
        """
        if len(events) == 1 and type(event := events[0]) is MessageIgnored and event.kind == UNKNOWN_ANSWER:
            what = f"an answer came to a question that this process has not asked in this session ({event.detail})"
            self.context.warn_about_workers(what)
            raise RequestRejected(400, f"{what}; {SEVERAL_WORKERS}")

    @property
    def busy(self) -> bool:
        """Whether it has something to do, or somebody listens: then it is not idle."""
        return bool(self.open_requests or self.session.incoming)

    @property
    def is_listening(self) -> bool:
        """Whether it has nothing to do but to hold streams open."""
        return not self.session.incoming and self.open_requests == self._open_streams

    @property
    def unused(self) -> bool:
        """Whether nothing has come of it since `initialize`."""
        return self._request_count < 2 and self.session.phase is not Phase.OPEN and not self.busy

    def __enter__(self) -> BaseHTTPSession:
        """As long as a request of its client is being answered."""
        self._request_count += 1
        self.open_requests += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.open_requests -= 1
        self.last_used_at = self.context.loop.time()
        if self.account_sessions is not None:
            self.account_sessions.move_to_end(self)

    @contextmanager
    def with_stream(self) -> Iterator[None]:
        """As long as a request of its client only listens."""
        self._open_streams += 1
        try:
            yield
        finally:
            self._open_streams -= 1

    async def close(self, why: str) -> None:
        """End it: what runs is answered with an error and cancelled, what waits for the client fails."""
        end_session_requests(self.driver, why)
        if charged := self._handshake_bytes + self._roots_bytes:
            self.context.handshake_budget.release(self.account, charged)
            self._handshake_bytes = self._roots_bytes = 0
        self._joined.close()
        seconds = self.context.limits.close_seconds
        await self.driver.finish_callbacks(seconds / 2)
        await self._client_notifications.finish(seconds / 2)
        if self.context.server.active_round_trips is not None:
            await self.context.server.active_round_trips.close(self.peer, seconds)
        if self.context.server.instrumentation is not None:
            self.context.server.instrumentation.client_disconnected(self.driver, self.created_at)

    async def forget(self) -> None:
        """It will not come back: keep nothing of it."""


def _hold_answer(question: PendingRequest, charge: BodyCharge) -> None:
    """Keep an answer charged until the handler has ended that has asked."""
    waiting = question.driver
    call = waiting.of if isinstance(waiting, ResponseWaiter) else None
    if call is not None and call.stage == "active":
        call.held = call.held or ExitStack()
        charge.hold()
        call.held.callback(charge.release)


def _is_initialize(body: bytes) -> bool:
    try:
        return envelope.read(body).method == "initialize"
    except (MalformedMessage, ProtocolError):
        return False


_KEY = os.urandom(16)
_SIGNATURE_BYTES = 9


def new_id() -> str:
    """An id that nobody can guess, of visible ASCII. Its end tells this process that it has made it."""
    secret = secrets.token_urlsafe(32)
    return secret + _signature(secret)


def is_own_id(id: str) -> bool:
    """Whether this process has made an id, rather than another worker, or nobody."""
    length = len(_signature(""))
    return compare_digest(_signature(id[:-length]).encode(), id[-length:].encode(errors="replace"))


def _signature(secret: str) -> str:
    digest = blake2b(secret.encode(errors="replace"), key=_KEY, digest_size=_SIGNATURE_BYTES)
    return urlsafe_b64encode(digest.digest()).decode()


def end_session_requests(conversation: SessionDriver, why: str) -> None:
    """What runs is answered with an error and cancelled, what waits for the client fails."""
    conversation.closing = True
    conversation.fail_all(NotConnected(why))
    conversation.end_requests(list(conversation.session.incoming.values()), why)


log: logging.Logger = logging.getLogger("accord")


class SessionRecord(msgspec.Struct):
    """A session, as the store keeps it for the next process."""

    principal: str
    revision: str
    ready: bool
    begun: float
    """When it began, in seconds since 1970: a restart makes it no younger."""
    info: Implementation | None
    capabilities: ClientCapabilities
    log_level: LoggingLevel = "debug"
    subscriptions: list[str] = []
    view: VisibilityRules | None = None
    """What its session hides from it."""


_record = msgspec.json.Decoder(SessionRecord)


def read_record(kept: bytes, revisions: Container[str]) -> SessionRecord | None:
    """A session that was kept; None for one that is not understood, or of a revision that is not spoken any more."""
    try:
        record = _record.decode(kept)
    except msgspec.DecodeError as exc:
        log.error("accord: a session that was kept cannot be read, and is taken for gone: %s", exc)
        return None
    return record if record.revision in revisions and record.revision in RULES else None
