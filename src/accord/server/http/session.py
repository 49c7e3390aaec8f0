"""One session over HTTP (2025-03-26 to 2025-11-25): POSTs that bring messages, and streams that carry what goes out.

Each message goes out on one stream: what belongs to a request on that of its POST, all else on the one that a client
opens with GET. "Disconnection SHOULD NOT be interpreted as the client cancelling its request": a handler runs on, and
what it says is kept for a client that comes back.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from accord.errors import EventsGone, InternalError, StoreError
from accord.messages import codec
from accord.messages.envelope import RequestId
from accord.messages.revision import RULES
from accord.server.core.visibility import Visibility, VisibilityRules
from accord.server.http.base_session import BaseHTTPSession, SessionRecord
from accord.server.http.event_stream import EventStream
from accord.server.http.http_context import SEVERAL_WORKERS
from accord.server.http.response import SessionBatchResponse, SessionResponse, write_event_stream
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
from accord.transport.asgi.request import ASGIRequest, Receive, RequestRejected, Send
from accord.transport.asgi.responses import Headers, send_json, send_text
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
"""The stream of what belongs to no request."""

_SAVING_METHODS = frozenset({"initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""Requests that change what is kept of a session."""

_LARGE_RECORD_BYTES = 64 << 10
"""Bytes of URIs from which on records are saved one after the other: the store serves others in between."""

_LATER = ((b"retry-after", b"5"),)

_ID_BITS = 48
"""Ids of our requests stay below 2**53, whole numbers to every client."""


class HTTPSession(BaseHTTPSession):
    """A client between `initialize` and the end of its session."""

    def __init__(self, site: HTTPContext, who: Principal | None, account: str, id: str, *, known: bool = False) -> None:
        self._stored_account = _stored_account(account)
        general = StoredStream(site.events, id, GENERAL, account=self._stored_account, known=known)
        self.general_stream: EventStream = EventStream(general, site.limits)
        super().__init__(site, who, account, self.general_stream, id)
        self.session.allows_revision_in_meta = False  # a header does
        self.is_ended: bool = False
        """Whether it has ended for good, rather than with the process."""
        self.headers: Headers = ((SESSION_ID, id.encode()),)
        """What every answer says."""
        self._streams: dict[str, EventStream] = {GENERAL: self.general_stream}
        self._incomplete: set[str] = set()
        self._resuming = asyncio.Lock()
        self._saving = asyncio.Lock()
        self._is_changed = False  # since it was last saved
        self._saved_visibility: VisibilityRules | None = None

    # --- POST --------------------------------------------------------------------------------------------------

    async def post(
        self, body: bytes, request: ASGIRequest, receive: Receive, send: Send, who: Principal | None, charge: BodyCharge
    ) -> None:
        """Take what one POST of `who` brought, and answer it. Raises `RequestRejected`."""
        events = self.receive(body, who, request.headers, charge)
        with self:
            if len(events) == 1 and type(event := events[0]) is RequestReceived and event.exchange.batch is None:
                post = SessionResponse(event.exchange, self, receive, send)
                message = await post.serve()
                await self._save_changes([event.exchange])
                await post.finish(message)
            else:
                await self._answer_other(events, receive, send)

    async def _answer_other(self, events: list[Event], receive: Receive, send: Send) -> None:
        """A message that is no single request to a handler: an answer at once, a batch, or nothing to answer."""
        requests = []
        for event in events:
            if type(event) is ReplyReady:
                return await send_json(send, status_of_refusal(event.code), event.message, self.headers)
            if type(event) is ConnectionOpened:
                await self._save()
                return await send_json(send, 200, event.reply or b"", self.headers)
            if type(event) is RequestReceived:
                requests.append(event.exchange)
            else:
                self.driver.event_handlers[type(event)](event)
        if wanted := [exchange for exchange in requests if exchange.stage == "active"]:
            batch = SessionBatchResponse(wanted, self, receive, send)
            message = await batch.serve()
            await self._save_changes(wanted)
            return await batch.finish(message)
        self.check_answer(events)
        if len(events) == 1 and type(events[0]) is MessageIgnored and events[0].kind == "malformed message":
            raise RequestRejected(400, f"not a JSON-RPC message: {events[0].detail}")
        if any(type(event) is InitializedReceived for event in events):
            await self._save()
        await send_text(send, 202, "", self.headers)
        return None

    # --- streams -----------------------------------------------------------------------------------------------

    def open_stream(self, requests: list[PendingRequest]) -> EventStream:
        """A stream for what belongs to these requests."""
        id, about = secrets.token_hex(6), codec.encode([each.id for each in requests])
        kept = StoredStream(self.context.events, self.id, id, about, account=self._stored_account)
        channel = self._add_stream(kept)
        if requests[0].rules.primes_streams:
            channel.send_priming_event()
        return channel

    def _add_stream(self, kept: StoredStream) -> EventStream:
        kept.forgotten = self.is_ended
        channel = self._streams[kept.id] = EventStream(kept, self.context.limits, self._stream_ended)
        return channel

    def _stream_ended(self, channel: EventStream) -> None:
        self._streams.pop(channel.id, None)
        if not channel.stored.is_complete:
            self._incomplete.add(channel.id)

    async def listen(self, last: bytes | None, receive: Receive, send: Send) -> None:
        """Carry the stream of what belongs to no request, or the one that `Last-Event-ID` names, from there on.

        Raises `RequestRejected`.
        """
        most = self.context.limits.http.streams
        if self.open_requests >= most:
            raise RequestRejected(429, f"too many streams are open: the limit is {most}", _LATER)
        with self, self.with_stream():
            stream = SSEResponse(send, self.context.limits, self.headers, self.driver.on_unsent)
            if last is None:
                channel = self.general_stream
                channel.attach(stream)
            else:
                channel = await self._resume(last, stream)
            await write_event_stream(channel, stream, receive)

    async def _resume(self, last: bytes, stream: SSEResponse) -> EventStream:
        """The channel that an event belongs to, carried from there on.

        Where events are missing the client is told so (410), rather than left with a hole. A 404 would end its session.
        """
        place = parse_event_id(last)
        if place is None:
            raise RequestRejected(400, "unknown Last-Event-ID: this server did not send it, or its session has ended")
        id, number = place
        live = self._streams.get(id)  # looked for first: it may end while the store is read
        kept = StoredStream(self.context.events, self.id, id, known=True) if live is None else live.stored
        async with self._resuming:
            page = await self._page(kept, number)
        if self.driver.closing:
            raise (
                RequestRejected(404, NO_SESSION)
                if self.is_ended
                else RequestRejected(503, "the server is shutting down", _LATER)
            )
        channel = live or self._streams.get(id) or self._restore_stream(kept, page)
        channel.attach(stream, number, page.events)
        return channel

    async def _page(self, kept: StoredStream, number: int) -> Replay:
        """What the store has of a stream after an event. Raises `RequestRejected`."""
        if kept.id in self._incomplete:
            raise RequestRejected(410, "events of this stream have been dropped; it cannot be resumed")
        try:
            return await kept.page(number)
        except EventsGone as exc:
            raise RequestRejected(410, str(exc)) from exc
        except StoreError as exc:
            log.error("accord: a stream could not be read: %s", exc)
            raise RequestRejected(503, "the event store is not available", _LATER) from exc

    def _restore_stream(self, kept: StoredStream, page: Replay) -> EventStream:
        """A stream that only the store still has: it has ended, or was cut off with the process that had it."""
        channel = self._add_stream(kept)
        if not page.ended and page.about:
            for request in msgspec.json.decode(page.about):
                channel.send(self._interrupted_error(request))
        channel.end(None)
        return channel

    def _interrupted_error(self, id: RequestId) -> bytes:
        error = InternalError("the server was restarted while it ran; whether the call took effect is not known")
        return error_bytes(id, error, self.session.rules)

    def resumes(self, last: bytes) -> bool:
        """Whether this event is of the stream of a call that goes on."""
        place = parse_event_id(last)
        return place is not None and place[0] != GENERAL and place[0] in self._streams

    # --- surviving ---------------------------------------------------------------------------------------------

    @property
    def _visibility(self) -> VisibilityRules | None:
        """What was shown to it and hidden from it, by now."""
        return None if self.peer.visibility is None else self.peer.visibility.rules

    async def _save(self) -> None:
        """Keep what the next process must know. What several requests change while a save is under way is saved once
        for all of them: a record may be large.
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
        begun = time.time() - (self.context.loop.time() - self.created_at)
        record = SessionRecord(
            self.principal,
            session.rules.revision,
            ready,
            begun,
            peer.info,
            peer.capabilities,
            self.peer.log_level,
            self._subscribed_uris(),
            self._visibility,
        )
        self._saved_visibility = self._visibility
        return codec.encode(record)

    async def _save_changes(self, served: list[PendingRequest]) -> None:
        """Keep what these requests have changed. They are answered all the same where it cannot be kept."""
        if self._visibility is not self._saved_visibility or not _SAVING_METHODS.isdisjoint(
            [each.method.name for each in served]
        ):
            try:
                await self._save()
            except StoreError as exc:
                log.error("accord: what a client wants to be told is not kept: %s", exc)

    def restore(self, record: SessionRecord) -> HTTPSession:
        """Restore what another process has left. Raises `RequestRejected` where there is no room for it."""
        self.reserve_handshake(codec.encode([record.info, record.capabilities]))
        session = self.session
        self.created_at: float = min(self.created_at, self.context.loop.time() - (time.time() - record.begun))
        session.rules = RULES[record.revision]
        session.phase = Phase.OPEN if record.ready else Phase.INITIALIZING
        session.peer_info = PeerInfo(record.info, record.capabilities)
        session.outgoing_requests.start_ids_after(
            secrets.randbits(_ID_BITS)
        )  # or a late answer to the other would be taken for ours
        self.peer.log_level = record.log_level
        self.peer.visibility = None if record.view is None else Visibility(record.view)
        self._saved_visibility = record.view
        with suppress(InternalError):  # the limit may be lower than it was
            for uri in record.subscriptions:
                self.context.subscription_index.subscribe(self.peer, uri)
        if record.ready:
            self.driver.ready.set()
        return self

    def drain(self) -> None:
        """The process is about to end: take nothing new, and let streams go whose client may come back to the next."""
        self.session.draining = True
        self.general_stream.close_response(None)

    async def close(self, why: str) -> None:
        """End it, and its streams but the general one, which may go on in the next process."""
        await super().close(why)
        self.general_stream.close_response(None)
        for channel in list(self._streams.values()):
            if channel is not self.general_stream:
                channel.end(None)
        await asyncio.gather(*(channel.wait_stored() for channel in list(self._streams.values())))

    async def forget(self) -> None:
        """Keep nothing of it, nor of what it may still say."""
        self.is_ended = True
        for channel in list(self._streams.values()):
            channel.forget()
        try:
            await self.context.events.forget(self.id)
        except StoreError as exc:
            log.error("accord: a session that has ended is still kept: %s", exc)


def _stored_account(account: str) -> str:
    """Return what stands for an account in the store, which need not know addresses."""
    return blake2b(account.encode(errors="replace"), digest_size=16).hexdigest()
