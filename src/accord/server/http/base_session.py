"""The common part of all HTTP sessions, and the record by which a session survives a restart."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable, Container, Iterator
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
from accord.server.http.quotas import SessionCharge
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
from accord.transport.asgi.request import ASGIRequest, RequestRejected
from accord.transport.base import MessageSink
from accord.transport.request_sender import ResponseWaiter
from accord.transport.session_driver import SessionDriver

if TYPE_CHECKING:
    from accord.server.core.principal import Principal
    from accord.server.http.quotas import BodyCharge

STREAM_SECONDS = 3_600.0
"""How long a stream may last whose token has no time of expiry."""

_SMALL_HANDSHAKE_BYTES = 1 << 8
"""The most bytes of an `initialize` that is not charged. A session keeps it decoded, in up to 32 times
as many bytes.
"""


class BaseHTTPSession:
    """One session of one principal. `id` is its secret: 256 random bits ("cryptographically secure").

    `sink` sends the messages that belong to no request.
    """

    def __init__(
        self, context: HTTPContext, principal: Principal | None, account: str, sink: MessageSink, id: str
    ) -> None:
        self.id: str = id
        self.account: str = account
        """The account whose quotas the session uses."""
        self.neighbors: tuple[OrderedDict[BaseHTTPSession, None], ...] = ()
        """All sessions of the account, and all of its network, the least recently used first."""
        self.principal: str = id_of(principal)
        self.created_at: float = context.loop.time()
        self.last_used_at: float = self.created_at
        """The time of the client's last request."""
        self.open_requests: int = 0
        """The client's requests in progress, and open streams."""
        self._open_streams = 0  # of requests that only open a stream
        self._request_count = 0
        self._handshake_bytes = 0  # charged for the stored `initialize`
        self._roots_bytes = 0  # charged for the client's roots
        self._charge = SessionCharge(context.handshake_budget, account)
        self._is_closed = False
        self.context: HTTPContext = context
        self.session: Session = context.session(account)
        self.driver: SessionDriver
        self.peer: Peer
        self.driver, self.peer = context.connect(self.session, sink, principal, account, self._on_notification)
        self.peer.reserve_roots, self.peer.hold_session = self._reserve_roots, self._charge.hold
        self._client_notifications = context.client_notifications(self.peer)
        self._exit_stack = ExitStack()
        self._exit_stack.enter_context(context.subscription_index.with_peer(self.peer))

    def _on_notification(self, event: NotificationReceived) -> None:
        self._client_notifications.receive(event)

    def receive(self, body: bytes, request: ASGIRequest, charge: BodyCharge) -> list[Event]:
        """Process the body of one POST, and return its events.

        Its responses hold `charge` until the handlers that requested them end, since these may keep them in memory.
        """
        self.peer.identity = request.principal
        if len(body) > _SMALL_HANDSHAKE_BYTES and self._may_initialize(body) and _is_initialize(body):
            self.reserve_handshake(body)
        events = self.session.receive(body)
        for event in events:
            if type(event) is RequestReceived:  # permissions are those of this POST, not of the first of the session
                event.pending.principal, event.pending.headers = request.principal, request.headers
            elif type(event) is ResultReceived or type(event) is ErrorReceived:
                _hold_answer(event.pending, charge)
        return events

    def _may_initialize(self, body: bytes) -> bool:
        """Return whether a body may be an `initialize`: a cheap check before it is parsed."""
        return self.session.phase is Phase.NEW or body.find(b'"initialize"') >= 0 or body.find(rb"\u") >= 0

    def reserve_handshake(self, message: bytes) -> None:
        """Charge the memory for `initialize`; if it is repeated, for the largest one. Raises `RequestRejected`."""
        if len(message) <= _SMALL_HANDSHAKE_BYTES:
            return
        size = memory_of(message, self.context.limits.http.body_nodes)
        if size > self._handshake_bytes:
            self._charge.add(size - self._handshake_bytes)
            self._handshake_bytes = size

    def _reserve_roots(self, size: int) -> bool:
        """Charge the memory for the client's roots; if they change, for the largest list. Return whether it is within
        the quota.
        """
        if self.driver.closing:
            return False
        if size > self._roots_bytes:
            try:
                self._charge.add(size - self._roots_bytes)
            except RequestRejected:
                return False
            self._roots_bytes = size
        return True

    def check_answer(self, events: list[Event]) -> None:
        """Raise `RequestRejected` for a response to a request that this process did not send.

        The process that sent it would wait for ever. "If the server cannot accept the input, it MUST return an HTTP
        error status code" (Streamable HTTP, Sending Messages).
        """
        if len(events) == 1 and type(event := events[0]) is MessageIgnored and event.kind == UNKNOWN_ANSWER:
            what = f"a response came to a request that this process has not sent in this session ({event.detail})"
            self.context.warn_about_workers(what)
            raise RequestRejected(400, f"{what}; {SEVERAL_WORKERS}")

    @property
    def busy(self) -> bool:
        """Whether a request is in progress or a stream is open; otherwise the session is idle."""
        return bool(self.open_requests or self.session.incoming)

    @property
    def is_listening(self) -> bool:
        """Whether the session has open streams, and no request in progress."""
        return not self.session.incoming and self.open_requests == self._open_streams

    @property
    def unused(self) -> bool:
        """Whether the client has sent nothing since `initialize`."""
        return self._request_count < 2 and self.session.phase is not Phase.OPEN and not self.busy

    def __enter__(self) -> BaseHTTPSession:
        """Mark a request of the client as in progress."""
        self._request_count += 1
        self.open_requests += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.open_requests -= 1
        self.last_used_at = self.context.loop.time()
        for sessions in self.neighbors:
            sessions.move_to_end(self)

    @contextmanager
    def with_stream(self) -> Iterator[None]:
        """Mark a request of the client as one that only opens a stream."""
        self._open_streams += 1
        try:
            yield
        finally:
            self._open_streams -= 1

    async def close(self, reason: str) -> None:
        """Close the session: fail and cancel running requests, and fail those that wait for the client."""
        end_session_requests(self.driver, reason)
        if not self._is_closed:
            self._is_closed = True
            self._charge.release()
        self._exit_stack.close()
        seconds = self.context.limits.close_seconds
        await self.driver.finish_callbacks(seconds / 2)
        await self._client_notifications.finish(seconds / 2)
        if self.context.server.active_round_trips is not None:
            await self.context.server.active_round_trips.close(self.peer, seconds)
        if self.context.server.instrumentation is not None:
            self.context.server.instrumentation.client_disconnected(self.driver, self.created_at)

    async def forget(self) -> None:
        """Delete the stored state of the session, which will not resume."""


def _hold_answer(pending: PendingRequest, charge: BodyCharge) -> None:
    """Hold the charge for a response until the handler that requested it has ended."""
    driver = pending.driver
    call = driver.of if isinstance(driver, ResponseWaiter) else None
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
    """Return an unguessable id of visible ASCII. Its suffix proves that this process created it."""
    secret = secrets.token_urlsafe(32)
    return secret + _signature(secret)


def is_own_id(id: str) -> bool:
    """Return whether this process created an id, rather than another worker or a client."""
    length = len(_signature(""))
    return compare_digest(_signature(id[:-length]).encode(), id[-length:].encode(errors="replace"))


def _signature(secret: str) -> str:
    digest = blake2b(secret.encode(errors="replace"), key=_KEY, digest_size=_SIGNATURE_BYTES)
    return urlsafe_b64encode(digest.digest()).decode()


@contextmanager
def until_expiry(principal: Principal | None, end: Callable[[], None]) -> Iterator[None]:
    """Call `end`, which ends a stream, when the token that opened it expires. A token without a time of expiry may be
    revoked all the same: its streams are opened anew after an hour.
    """
    left = None if principal is None else principal.seconds_left(time.time())
    if left is None and principal is not None and principal.issuer is not None:
        left = STREAM_SECONDS
    timer = None if left is None else asyncio.get_running_loop().call_later(max(0.0, left), end)
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()


def end_session_requests(driver: SessionDriver, reason: str) -> None:
    """Fail and cancel running requests, and fail those that wait for the client."""
    driver.closing = True
    driver.fail_all(NotConnected(reason))
    driver.end_requests(list(driver.session.incoming.values()), reason)


log: logging.Logger = logging.getLogger("accord")


class SessionRecord(msgspec.Struct):
    """A session in the store, for the next process."""

    principal: str
    revision: str
    ready: bool
    begun: float
    """The start time, in seconds since 1970: a restart does not reset the age."""
    info: Implementation | None
    capabilities: ClientCapabilities
    log_level: LoggingLevel = "debug"
    subscriptions: list[str] = []
    view: VisibilityRules | None = None
    """The rules that hide items from the session."""


_record = msgspec.json.Decoder(SessionRecord)


def read_record(data: bytes, revisions: Container[str]) -> SessionRecord | None:
    """Return the session of a record, or None if it cannot be decoded or its revision is not supported any more."""
    try:
        record = _record.decode(data)
    except msgspec.DecodeError as exc:
        log.error("accord: a stored session cannot be read, and is treated as expired: %s", exc)
        return None
    return record if record.revision in revisions and record.revision in RULES else None
