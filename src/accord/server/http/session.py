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
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from accord.errors import EventsGone, InternalError, StoreError
from accord.messages import codec
from accord.messages.envelope import RequestId
from accord.messages.revision import RULES
from accord.server.compose.visibility import Said, Visibility
from accord.server.http.channel import Channel
from accord.server.http.kept import Kept, place_of
from accord.server.http.record import Record
from accord.server.http.replies import SessionBatch, SessionPost, carried
from accord.server.http.site import SEVERAL_WORKERS
from accord.server.http.visitor import Visitor
from accord.session.events import Event, Ignored, Opened, Ready, Reply, RequestReceived
from accord.session.exchange import Exchange
from accord.session.profile import Profile
from accord.session.served import error_bytes
from accord.session.states import Phase
from accord.store.base import Replay
from accord.transport.asgi.answer import Headers, respond, say
from accord.transport.asgi.request import Receive, Rejected, Send
from accord.transport.asgi.stream import Stream
from accord.wire.headers import SESSION_ID
from accord.wire.streamable import status_of_refusal

if TYPE_CHECKING:
    from accord.server.http.auth import Principal
    from accord.server.http.site import Site

log: logging.Logger = logging.getLogger("accord")

NO_SESSION = f"there is no such session (any more): send initialize without Mcp-Session-Id; {SEVERAL_WORKERS}"

GENERAL = "0"
"""The stream of what belongs to no request."""

_CHANGES = frozenset({"initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""Requests that change what is kept of a session."""

_LATER = ((b"retry-after", b"5"),)

_ID_BITS = 48
"""Ids of our requests stay below 2**53, whole numbers to every client."""


class HTTPSession(Visitor):
    """A client between `initialize` and the end of its session."""

    def __init__(self, site: Site, who: Principal | None, account: str, id: str, *, known: bool = False) -> None:
        self.general: Channel = Channel(Kept(site.events, id, GENERAL, known=known), site.limits)
        super().__init__(site, who, account, self.general, id)
        self.session.names_revisions = False  # a header does
        self.over: bool = False
        """Whether it has ended for good, rather than with the process."""
        self.headers: Headers = ((SESSION_ID, id.encode()),)
        """What every answer says."""
        self._channels: dict[str, Channel] = {GENERAL: self.general}
        self._broken: set[str] = set()
        self._resuming = asyncio.Lock()
        self._kept_view: Said | None = None

    # --- POST --------------------------------------------------------------------------------------------------

    async def post(
        self, body: bytes, receive: Receive, send: Send, who: Principal | None, headers: Mapping[bytes, bytes]
    ) -> None:
        """Take what one POST of `who` brought, and answer it. Raises `Rejected`."""
        events = self.receive(body, who, headers)
        with self:
            if len(events) == 1 and type(event := events[0]) is RequestReceived and event.exchange.batch is None:
                post = SessionPost(event.exchange, self, receive, send)
                message = await post.serve()
                await self._remember([event.exchange])
                await post.finish(message)
            else:
                await self._take(events, receive, send)

    async def _take(self, events: list[Event], receive: Receive, send: Send) -> None:
        """A message that is no single request to a handler: an answer at once, a batch, or nothing to answer."""
        requests = []
        for event in events:
            if type(event) is Reply:
                return await respond(send, status_of_refusal(event.code), event.message, self.headers)
            if type(event) is Opened:
                await self._save()
                return await respond(send, 200, event.reply or b"", self.headers)
            if type(event) is RequestReceived:
                requests.append(event.exchange)
            else:
                self.conversation.reactions[type(event)](event)
        if wanted := [exchange for exchange in requests if exchange.stage == "active"]:
            batch = SessionBatch(wanted, self, receive, send)
            message = await batch.serve()
            await self._remember(wanted)
            return await batch.finish(message)
        self.check_answer(events)
        if len(events) == 1 and type(events[0]) is Ignored and events[0].kind == "malformed message":
            raise Rejected(400, f"not a JSON-RPC message: {events[0].detail}")
        if any(type(event) is Ready for event in events):
            await self._save()
        await say(send, 202, "", self.headers)
        return None

    # --- streams -----------------------------------------------------------------------------------------------

    def open_channel(self, requests: list[Exchange]) -> Channel:
        """A stream for what belongs to these requests."""
        id, about = secrets.token_hex(6), codec.encode([each.id for each in requests])
        channel = self._add_channel(Kept(self.site.events, self.id, id, about))
        if requests[0].rules.primes_streams:
            channel.prime()
        return channel

    def _add_channel(self, kept: Kept) -> Channel:
        kept.forgotten = self.over
        channel = self._channels[kept.id] = Channel(kept, self.site.limits, self._channel_ended)
        return channel

    def _channel_ended(self, channel: Channel) -> None:
        self._channels.pop(channel.id, None)
        if not channel.kept.whole:
            self._broken.add(channel.id)

    async def listen(self, last: bytes | None, receive: Receive, send: Send) -> None:
        """Carry the stream of what belongs to no request, or the one that `Last-Event-ID` names, from there on.

        Raises `Rejected`.
        """
        if self.open >= self.site.limits.streams:
            raise Rejected(429, f"too many streams are open: the limit is {self.site.limits.streams}", _LATER)
        with self:
            stream = Stream(send, self.site.limits, self.headers)
            if last is None:
                channel = self.general
                channel.carry(stream)
            else:
                channel = await self._resume(last, stream)
            await carried(channel, stream, receive)

    async def _resume(self, last: bytes, stream: Stream) -> Channel:
        """The channel that an event belongs to, carried from there on.

        Where events are missing the client is told so (410), rather than left with a hole. A 404 would end its session.
        """
        place = place_of(last)
        if place is None:
            raise Rejected(400, "Last-Event-ID is none of this server's")
        id, number = place
        live = self._channels.get(id)  # looked for first: it may end while the store is read
        kept = Kept(self.site.events, self.id, id, known=True) if live is None else live.kept
        async with self._resuming:
            page = await self._page(kept, number)
        if self.conversation.closing:
            raise Rejected(404, NO_SESSION) if self.over else Rejected(503, "the server is shutting down", _LATER)
        channel = live or self._channels.get(id) or self._revived(kept, page)
        channel.carry(stream, number, page.events)
        return channel

    async def _page(self, kept: Kept, number: int) -> Replay:
        """What the store has of a stream after an event. Raises `Rejected`."""
        if kept.id in self._broken:
            raise Rejected(410, "this stream is not kept whole")
        try:
            return await kept.page(number)
        except EventsGone as exc:
            raise Rejected(410, str(exc)) from exc
        except StoreError as exc:
            log.error("accord: a stream could not be read: %s", exc)
            raise Rejected(503, "the server cannot read its streams at the moment", _LATER) from exc

    def _revived(self, kept: Kept, page: Replay) -> Channel:
        """A stream that only the store still has: it has ended, or was cut off with the process that had it."""
        channel = self._add_channel(kept)
        if not page.ended and page.about:
            for request in msgspec.json.decode(page.about):
                channel.send(self._cut_off(request))
        channel.end(None)
        return channel

    def _cut_off(self, id: RequestId) -> bytes:
        error = InternalError("the server was restarted while it ran; whether the call took effect is not known")
        return error_bytes(id, error, self.session.rules)

    def resumes(self, last: bytes) -> bool:
        """Whether this event is of the stream of a call that goes on."""
        place = place_of(last)
        return place is not None and place[0] != GENERAL and place[0] in self._channels

    # --- surviving ---------------------------------------------------------------------------------------------

    @property
    def _view(self) -> Said | None:
        """What was shown to it and hidden from it, by now."""
        return None if self.peer.view is None else self.peer.view.said

    async def _save(self) -> None:
        """Keep what the next process must know."""
        session = self.session
        if not self.site.lasting or session.peer is None or self.over:
            return
        peer = session.peer
        ready = session.phase is Phase.OPEN
        begun = time.time() - (self.site.loop.time() - self.born)
        uris = self.site.audience.uris(self.peer)
        record = Record(
            self.principal,
            session.rules.revision,
            ready,
            begun,
            peer.info,
            peer.capabilities,
            self.peer.log_level,
            uris,
            self._view,
        )
        self._kept_view = self._view
        await self.site.events.save(self.id, codec.encode(record))

    async def _remember(self, served: list[Exchange]) -> None:
        """Keep what these requests have changed. They are answered all the same where it cannot be kept."""
        if self._view is not self._kept_view or not _CHANGES.isdisjoint([each.method.name for each in served]):
            try:
                await self._save()
            except StoreError as exc:
                log.error("accord: what a client wants to be told is not kept: %s", exc)

    def restore(self, record: Record) -> HTTPSession:
        """Be what another process has left."""
        session = self.session
        self.born: float = min(self.born, self.site.loop.time() - (time.time() - record.begun))
        session.rules = RULES[record.revision]
        session.phase = Phase.OPEN if record.ready else Phase.SHAKING
        session.peer = Profile(record.info, record.capabilities)
        session.calls.begin_at(secrets.randbits(_ID_BITS))  # or a late answer to the other would be taken for ours
        self.peer.log_level = record.log_level
        self.peer.view = None if record.view is None else Visibility(record.view)
        self._kept_view = record.view
        with suppress(InternalError):  # the limit may be lower than it was
            for uri in record.subscriptions:
                self.site.audience.subscribe(self.peer, uri)
        if record.ready:
            self.conversation.ready.set()
        return self

    def leave(self) -> None:
        """The process is about to end: take nothing new, and let streams go whose client may come back to the next."""
        self.session.draining = True
        self.general.close_carrier(None)

    async def close(self, why: str) -> None:
        """End it, and its streams but the general one, which may go on in the next process."""
        await super().close(why)
        self.general.close_carrier(None)
        for channel in list(self._channels.values()):
            if channel is not self.general:
                channel.end(None)
        await asyncio.gather(*(channel.settled() for channel in list(self._channels.values())))

    async def forget(self) -> None:
        """Keep nothing of it, nor of what it may still say."""
        self.over = True
        for channel in list(self._channels.values()):
            channel.forget()
        try:
            await self.site.events.forget(self.id)
        except StoreError as exc:
            log.error("accord: a session that has ended is still kept: %s", exc)
