"""One session over HTTP (2025-03-26 to 2025-11-25): its POSTs, and the streams that carry its messages.

Each message is sent on one stream: messages of a request on the stream of its POST, all others on the stream that the
client opens with GET. "Disconnection SHOULD NOT be interpreted as the client cancelling its request": a handler
continues, and its messages are stored for a client that reconnects.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from accord.errors import EventsGone, InternalError, StoreError
from accord.messages import codec
from accord.messages.envelope import RequestId
from accord.messages.revision import RULES
from accord.server.core.visibility import Visibility, VisibilityRules
from accord.server.http.base_session import BaseHTTPSession, SessionRecord, until_expiry
from accord.server.http.event_stream import EventStream
from accord.server.http.http_context import SEVERAL_WORKERS
from accord.server.http.response import PostResponse
from accord.server.http.stored_stream import StoredStream, parse_event_id
from accord.session.events import (
    ConnectionOpened,
    Event,
    InitializedReceived,
    MessageIgnored,
    ReplyReady,
    RequestReceived,
)
from accord.session.incoming import error_bytes
from accord.session.peer_info import PeerInfo
from accord.session.pending_request import PendingRequest
from accord.session.states import Phase
from accord.store.base import Replay
from accord.transport.asgi.request import ASGIRequest, Headers, RequestRejected, Send, send_json, send_text
from accord.transport.asgi.sse_response import SSEResponse
from accord.wire.headers import SESSION_ID
from accord.wire.request_headers import status_of_refusal

if TYPE_CHECKING:
    from accord.server.core.principal import Principal
    from accord.server.http.http_context import HTTPContext
    from accord.server.http.quotas import BodyCharge

log: logging.Logger = logging.getLogger("accord")

NO_SESSION = f"unknown session: it has expired or ended: send initialize without Mcp-Session-Id; {SEVERAL_WORKERS}"

GENERAL = "0"
"""The id of the stream for messages that belong to no request."""

_SAVING_METHODS = frozenset({"initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""Requests that change the stored record of a session."""

_INCOMPLETE_STREAMS = 1_000
"""The most ended streams of a session that are known to lack messages. The store has no end of an older one, so a
client that resumes it receives an error for its requests, as after a restart.
"""

_LARGE_RECORD_BYTES = 64 << 10
"""The bytes of URIs from which records are saved one at a time, so that the store can serve other
requests in between.
"""

_LATER = ((b"retry-after", b"5"),)

_ID_BITS = 48
"""Ids of the server's requests stay below 2**53, so that every client reads them as integers."""


class HTTPSession(BaseHTTPSession):
    """A client's session, from `initialize` to its end."""

    def __init__(
        self, context: HTTPContext, principal: Principal | None, account: str, id: str, *, known: bool = False
    ) -> None:
        self._stored_account = _stored_account(account)
        general = StoredStream(context.events, id, GENERAL, account=self._stored_account, known=known)
        self.general_stream: EventStream = EventStream(general, context.limits)
        super().__init__(context, principal, account, self.general_stream, id)
        self.session.allows_revision_in_meta = False  # a header names it
        self.is_ended: bool = False
        """Whether the session has ended for good, rather than only in this process."""
        self.headers: Headers = ((SESSION_ID, id.encode()),)
        """Headers of every response."""
        self._streams: dict[str, EventStream] = {GENERAL: self.general_stream}
        self._incomplete: deque[str] = deque(maxlen=_INCOMPLETE_STREAMS)
        """The ids of streams that have ended, of which the store lacks messages."""
        self._resuming = asyncio.Lock()
        self._saving = asyncio.Lock()
        self._is_changed = False  # since it was last saved
        self._saved_visibility: VisibilityRules | None = None

    # --- POST --------------------------------------------------------------------------------------------------

    async def post(self, body: bytes, request: ASGIRequest, charge: BodyCharge) -> None:
        """Process one POST, and send the response. Raises `RequestRejected`."""
        events = self.receive(body, request, charge)
        with self:
            if len(events) == 1 and type(event := events[0]) is RequestReceived:
                requests = [event.pending]
            elif not (requests := await self._process(events, request.send)):
                return
            if self.context.server.registry.view.has_needs:
                self.context.check_scopes(requests, request.principal, self.driver, self.peer)
            response = PostResponse(requests, self.driver, request, self.headers, self._make_stream)
            message = await response.serve()
            await self._save_changes(requests)
            await response.finish(message)

    async def _process(self, events: list[Event], send: Send) -> list[PendingRequest]:
        """Process a batch, or a message without a handler, and return the requests for handlers. Without any, respond.

        Raises `RequestRejected`.
        """
        requests = []
        for event in events:
            if type(event) is ReplyReady:
                await send_json(send, status_of_refusal(event.code), event.message, self.headers)
                return []
            if type(event) is ConnectionOpened:
                await self._save()
                await send_json(send, 200, event.reply or b"", self.headers)
                return []
            if type(event) is RequestReceived:
                requests.append(event.pending)
            else:
                self.driver.event_handlers[type(event)](event)
        if active := [pending for pending in requests if pending.stage == "active"]:
            return active
        self.check_answer(events)
        if len(events) == 1 and type(events[0]) is MessageIgnored and events[0].kind == "malformed message":
            raise RequestRejected(400, f"not a JSON-RPC message: {events[0].detail}")
        if any(type(event) is InitializedReceived for event in events):
            await self._save()
        await send_text(send, 202, "", self.headers)
        return []

    # --- streams -----------------------------------------------------------------------------------------------

    def _make_stream(self, requests: Sequence[PendingRequest]) -> EventStream:
        """Return a stream for the messages of these requests."""
        id, about = secrets.token_hex(6), codec.encode([each.id for each in requests])
        stored = StoredStream(self.context.events, self.id, id, about, account=self._stored_account)
        event_stream = self._add_stream(stored)
        if requests[0].rules.primes_streams:
            event_stream.send_priming_event()
        return event_stream

    def _add_stream(self, stored: StoredStream) -> EventStream:
        stored.forgotten = self.is_ended
        seconds = self.context.options.retry_seconds
        retry = None if seconds is None else round(seconds * 1000)
        event_stream = self._streams[stored.id] = EventStream(stored, self.context.limits, self._stream_ended, retry)
        return event_stream

    def _stream_ended(self, event_stream: EventStream) -> None:
        self._streams.pop(event_stream.id, None)
        if not event_stream.stored.is_complete:
            self._incomplete.append(event_stream.id)

    async def listen(self, last: bytes | None, request: ASGIRequest) -> None:
        """Open the GET stream, or resume the stream that `Last-Event-ID` names.

        Raises `RequestRejected`.
        """
        max_streams = self.context.limits.http.streams
        if self.open_requests >= max_streams:
            what = f"too many streams are open: the limit is {max_streams:,} (HTTPLimits.streams)"
            raise RequestRejected(429, what, _LATER)
        self.peer.identity = request.principal  # only what this token may read is notified on its stream
        with self, self.with_stream():
            stream = SSEResponse(request.send, self.context.limits, self.headers, self.driver.on_unsent)
            if last is None:
                event_stream = self.general_stream
                event_stream.attach(stream)
            else:
                event_stream = await self._resume(last, stream)
            with until_expiry(request.principal, partial(event_stream.close_response, of=stream)):
                await event_stream.write(stream, request.receive)

    async def _resume(self, last: bytes, stream: SSEResponse) -> EventStream:
        """Resume the stream of an event from there on, and return it.

        If events are missing, the client receives 410 rather than an incomplete stream. A 404 would end its session.
        """
        parsed = parse_event_id(last)
        if parsed is None:
            raise RequestRejected(400, "unknown Last-Event-ID: this server did not send it, or its session has ended")
        id, number = parsed
        live = self._streams.get(id)  # before the store is read, during which it may end
        stored = StoredStream(self.context.events, self.id, id, known=True) if live is None else live.stored
        async with self._resuming:
            page = await self._page(stored, number)
        if self.driver.closing:
            raise (
                RequestRejected(404, NO_SESSION)
                if self.is_ended
                else RequestRejected(503, "the server is shutting down", _LATER)
            )
        event_stream = live or self._streams.get(id) or self._restore_stream(stored, page)
        event_stream.attach(stream, number, page.events)
        return event_stream

    async def _page(self, stored: StoredStream, number: int) -> Replay:
        """Return the stored events of a stream after an event. Raises `RequestRejected`."""
        if stored.id in self._incomplete:
            raise RequestRejected(410, "events of this stream have been dropped; it cannot be resumed")
        try:
            return await stored.page(number)
        except EventsGone as exc:
            raise RequestRejected(410, str(exc)) from exc
        except StoreError as exc:
            log.error("accord: a stream could not be read: %s", exc)
            raise RequestRejected(503, "the event store is not available", _LATER) from exc

    def _restore_stream(self, stored: StoredStream, page: Replay) -> EventStream:
        """Restore a stream that only the store has: it has ended, or its process did."""
        event_stream = self._add_stream(stored)
        if not page.ended and page.about:
            for request in msgspec.json.decode(page.about):
                event_stream.send(self._interrupted_error(request))
        event_stream.end(None)
        return event_stream

    def _interrupted_error(self, id: RequestId) -> bytes:
        error = InternalError("the server was restarted while it ran; whether the call took effect is not known")
        return error_bytes(id, error, self.session.rules)

    def resumes(self, last: bytes) -> bool:
        """Return whether an event belongs to the stream of a request in progress."""
        parsed = parse_event_id(last)
        return parsed is not None and parsed[0] != GENERAL and parsed[0] in self._streams

    # --- persistence -------------------------------------------------------------------------------------------

    @property
    def _visibility(self) -> VisibilityRules | None:
        """The current visibility rules of the session."""
        return None if self.peer.visibility is None else self.peer.visibility.rules

    async def _save(self) -> None:
        """Save the session for the next process. Changes during a save are combined into one more: a record may be
        large.
        """
        self._is_changed = True
        async with self._saving:
            if not self._is_changed:
                return
            self._is_changed = False
            try:
                await self._save_record()
            except BaseException:
                self._is_changed = True
                raise

    async def _save_record(self) -> None:
        peer = self.session.peer_info
        if not self.context.is_persistent or peer is None or self.is_ended:
            return None
        if sum(map(len, self._subscribed_uris())) <= _LARGE_RECORD_BYTES:
            return await self.context.events.save(self.id, self._encode_record(peer))
        async with self.context.saving_large_record:
            if not self.is_ended:
                await self.context.events.save(self.id, self._encode_record(peer))
        return None

    def _subscribed_uris(self) -> list[str]:
        if self.driver.closing:
            raise StoreError("the session was closed before its record was saved")
        return self.context.subscription_index.uris(self.peer)

    def _encode_record(self, peer: PeerInfo) -> bytes:
        session = self.session
        ready = session.phase is Phase.OPEN
        started_at = time.time() - (self.context.loop.time() - self.created_at)
        record = SessionRecord(
            self.principal,
            session.rules.revision,
            ready,
            started_at,
            peer.info,
            peer.capabilities,
            self.peer.log_level,
            self._subscribed_uris(),
            self._visibility,
        )
        self._saved_visibility = self._visibility
        return codec.encode(record)

    async def _save_changes(self, served: list[PendingRequest]) -> None:
        """Save the changes that these requests made. If the store fails, they are answered nevertheless."""
        is_changed = self._visibility is not self._saved_visibility
        for each in served:
            is_changed = is_changed or each.method.name in _SAVING_METHODS
        if is_changed:
            try:
                await self._save()
            except StoreError as exc:
                log.error("accord: the changes of a session cannot be stored: %s", exc)

    def restore(self, record: SessionRecord) -> HTTPSession:
        """Restore the session from another process's record. Raises `RequestRejected` over the quota."""
        self.reserve_handshake(codec.encode([record.info, record.capabilities]))
        session = self.session
        self.created_at: float = min(self.created_at, self.context.loop.time() - (time.time() - record.begun))
        session.rules = RULES[record.revision]
        session.phase = Phase.OPEN if record.ready else Phase.INITIALIZING
        session.peer_info = PeerInfo(record.info, record.capabilities)
        # otherwise a late response to the other process's request could match
        session.outgoing_requests.start_ids_after(secrets.randbits(_ID_BITS))
        self.peer.log_level = record.log_level
        self.peer.visibility = None if record.view is None else Visibility(record.view)
        self._saved_visibility = record.view
        with suppress(InternalError):  # the limit may have been lowered
            for uri in record.subscriptions:
                self.context.subscription_index.subscribe(self.peer, uri)
        if record.ready:
            self.driver.ready.set()
        return self

    def drain(self) -> None:
        """Prepare for shutdown: refuse new work, and end streams that the client can resume in the next process."""
        self.session.draining = True
        self.general_stream.close_response()

    async def close(self, reason: str) -> None:
        """Close the session and its streams, except the general one, which may continue in the next process."""
        await super().close(reason)
        self.general_stream.close_response()
        for event_stream in list(self._streams.values()):
            if event_stream is not self.general_stream:
                event_stream.end(None)
        await asyncio.gather(*(event_stream.wait_stored() for event_stream in list(self._streams.values())))

    async def forget(self) -> None:
        """Delete the stored session, and store nothing more."""
        self.is_ended = True
        for event_stream in list(self._streams.values()):
            event_stream.forget()
        try:
            await self.context.events.forget(self.id)
        except StoreError as exc:
            log.error("accord: a session that has ended cannot be deleted from the store: %s", exc)


def _stored_account(account: str) -> str:
    """Return the store's key for an account, which does not reveal addresses."""
    return blake2b(account.encode(errors="replace"), digest_size=16).hexdigest()
