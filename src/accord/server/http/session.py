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
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

from accord.errors import EventsGone, InternalError, StoreError
from accord.messages import codec
from accord.messages.capabilities import ClientCapabilities
from accord.messages.envelope import RequestId
from accord.messages.identity import Implementation
from accord.messages.revision import RULES
from accord.server.http.channel import Channel, place_of
from accord.server.http.post import Outgoing, Post
from accord.server.http.visitor import Visitor
from accord.session.events import Event, Ignored, Opened, Ready, Reply, RequestReceived
from accord.session.exchange import Batch, Exchange
from accord.session.profile import Profile
from accord.session.served import error_bytes
from accord.session.states import Phase
from accord.store.base import Replay
from accord.transport.asgi.answer import Headers, respond, say
from accord.transport.asgi.request import Receive, Rejected, Send
from accord.transport.asgi.stream import Stream, watch
from accord.wire.headers import SESSION_ID
from accord.wire.streamable import status_of_refusal

if TYPE_CHECKING:
    from accord.server.http.auth import Principal
    from accord.server.http.site import Site

log: logging.Logger = logging.getLogger("accord")

GENERAL = "0"
"""The stream of what belongs to no request."""

_LATER = ((b"retry-after", b"5"),)

_ID_BITS = 48
"""Ids of our requests stay below 2**53, whole numbers to every client."""


class Record(msgspec.Struct):
    """A session, as the store keeps it for the next process."""

    principal: str
    revision: str
    ready: bool
    begun: float
    """When it began, in seconds since 1970: a restart makes it no younger."""
    info: Implementation | None
    capabilities: ClientCapabilities


class SessionPost(Post):
    """The response to a POST of a session: to one request, or to those of a batch."""

    __slots__ = ("patience", "requests", "session")

    def __init__(self, requests: list[Exchange], session: HTTPSession, receive: Receive, response: Send) -> None:
        super().__init__(requests[0], session.conversation, receive, response)
        self.requests: list[Exchange] = requests
        self.session: HTTPSession = session
        self.headers: Headers = session.headers
        self.patience: asyncio.TimerHandle | None = None

    def suspended(self) -> None:
        """A call that takes long is given an event id to come back with."""
        if self.exchange.rules.primes_streams:
            seconds = self.conversation.limits.patience_seconds
            self.patience = asyncio.get_running_loop().call_later(seconds, self._begin_early)

    def _begin_early(self) -> None:
        if self.exchange.stage == "active":
            self.stream()

    def done(self) -> None:
        if self.patience is not None:
            self.patience.cancel()

    def begin(self) -> tuple[Outgoing, Coroutine[Any, Any, None]]:
        channel = self.session.open_channel(self.requests)
        stream = Stream(self.response, self.conversation.limits, self.headers)
        channel.carry(stream)
        return channel, carried(channel, stream, self.receive)

    def close_stream(self, retry: int | None) -> None:
        """End the response now; the client comes back for the rest, after so many milliseconds."""
        if retry is None and (seconds := self.session.site.options.retry_seconds) is not None:
            retry = round(seconds * 1000)
        channel = self.stream()
        if isinstance(channel, Channel):
            channel.close_carrier(retry)


async def carried(channel: Channel, stream: Stream, receive: Receive) -> None:
    """Write a stream until it ends or the client has gone away."""
    watching = asyncio.get_running_loop().create_task(watch(receive, stream.cut))
    try:
        await stream.run()
    finally:
        watching.cancel()
        channel.let_go(stream)


class HTTPSession(Visitor):
    """A client between `initialize` and the end of its session."""

    def __init__(self, site: Site, who: Principal | None, id: str, *, known: bool = False) -> None:
        self.general: Channel = Channel(site.events, id, GENERAL, site.limits, known=known)
        super().__init__(site, who, self.general, id)
        self.headers: Headers = ((SESSION_ID, id.encode()),)
        """What every answer says."""
        self._channels: dict[str, Channel] = {GENERAL: self.general}
        self._broken: set[str] = set()

    # --- POST --------------------------------------------------------------------------------------------------

    async def post(self, body: bytes, receive: Receive, send: Send) -> None:
        """Take what one POST brought, and answer it. Raises `Rejected`."""
        events = self.session.receive(body)
        with self:
            if len(events) == 1 and type(event := events[0]) is RequestReceived and event.exchange.batch is None:
                post = SessionPost([event.exchange], self, receive, send)
                await post.finish(await post.serve())
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
            return await self._batch(wanted, receive, send)
        if len(events) == 1 and type(events[0]) is Ignored and events[0].kind == "malformed message":
            raise Rejected(400, f"not a JSON-RPC message: {events[0].detail}")
        if any(type(event) is Ready for event in events):
            await self._save()
        await say(send, 202, "", self.headers)
        return None

    async def _batch(self, requests: list[Exchange], receive: Receive, send: Send) -> None:
        """The requests of a batch, side by side; their answers leave together."""
        batch: Batch = requests[0].batch  # type: ignore[assignment]
        whole = SessionPost(requests, self, receive, send)
        await asyncio.gather(*(self._serve_one(exchange, whole) for exchange in requests))
        await whole.finish(batch.sealed())

    async def _serve_one(self, exchange: Exchange, whole: SessionPost) -> None:
        exchange.way = whole
        exchange.driver = task = asyncio.current_task()
        try:
            await self.conversation.answer(exchange)
        except asyncio.CancelledError:
            if exchange.stage == "active":
                raise
            task.uncancel()  # type: ignore[union-attr]

    # --- streams -----------------------------------------------------------------------------------------------

    def open_channel(self, requests: list[Exchange]) -> Channel:
        """A stream for what belongs to these requests."""
        id, about = secrets.token_hex(6), codec.encode([each.id for each in requests])
        channel = self._channels[id] = self._channel(id, about=about)
        if requests[0].rules.primes_streams:
            channel.prime()
        return channel

    def _channel(self, id: str, *, about: bytes = b"", known: bool = False) -> Channel:
        return Channel(
            self.site.events, self.id, id, self.site.limits, about=about, known=known, ended=self._channel_ended
        )

    def _channel_ended(self, channel: Channel) -> None:
        self._channels.pop(channel.id, None)
        if channel.broken:
            self._broken.add(channel.id)

    async def listen(self, last: bytes | None, receive: Receive, send: Send) -> None:
        """Carry the stream of what belongs to no request, or the one that `Last-Event-ID` names, from there on.

        Raises `Rejected`.
        """
        if self.open >= self.site.limits.streams:
            raise Rejected(429, f"too many streams are open: the limit is {self.site.limits.streams}", _LATER)
        with self:
            channel, after = (self.general, None) if last is None else await self._resume(last)
            stream = Stream(send, self.site.limits, self.headers)
            channel.carry(stream, after)
            await carried(channel, stream, receive)

    async def _resume(self, last: bytes) -> tuple[Channel, int]:
        """The stream that an event belongs to, and the event's number.

        Where events are missing the client is told to begin anew (404), rather than left with a hole.
        """
        place = place_of(last)
        if place is None:
            raise Rejected(400, "Last-Event-ID is none of this server's")
        id, number = place
        live = self._channels.get(id)  # looked for first: it may end while the store is read
        replay = await self._kept(id, number)
        return live or self._channels.get(id) or self._revived(id, replay), number

    async def _kept(self, id: str, number: int) -> Replay:
        """What the store has of a stream after an event. Raises `Rejected`."""
        try:
            replay = await self.site.events.read(self.id, id, number)
        except EventsGone as exc:
            raise Rejected(404, str(exc)) from exc
        except StoreError as exc:
            log.error("accord: a stream could not be read: %s", exc)
            raise Rejected(503, "the server cannot read its streams at the moment") from exc
        if replay is None or id in self._broken:
            raise Rejected(404, "there is no such stream in this session, or it is not kept whole")
        return replay

    def _revived(self, id: str, replay: Replay) -> Channel:
        """A stream that only the store still has: it has ended, or was cut off with the process that had it."""
        channel = self._channels[id] = self._channel(id, known=True)
        if not replay.ended and replay.about:
            for request in msgspec.json.decode(replay.about):
                channel.send(self._cut_off(request))
        channel.end(None)
        return channel

    def _cut_off(self, id: RequestId) -> bytes:
        error = InternalError("the server was restarted while it ran; whether the call took effect is not known")
        return error_bytes(id, error, self.session.rules)

    # --- surviving ---------------------------------------------------------------------------------------------

    async def _save(self) -> None:
        """Keep what the next process must know."""
        session = self.session
        if not self.site.lasting or session.peer is None:
            return
        peer = session.peer
        ready = session.phase is Phase.OPEN
        begun = time.time() - (self.site.loop.time() - self.born)
        record = Record(self.principal, session.rules.revision, ready, begun, peer.info, peer.capabilities)
        await self.site.events.save(self.id, codec.encode(record))

    def restore(self, record: Record) -> HTTPSession:
        """Be what another process has left."""
        session = self.session
        self.born: float = min(self.born, self.site.loop.time() - (time.time() - record.begun))
        session.rules = RULES[record.revision]
        session.phase = Phase.OPEN if record.ready else Phase.SHAKING
        session.peer = Profile(record.info, record.capabilities)
        session.calls.begin_at(secrets.randbits(_ID_BITS))  # or a late answer to the other would be taken for ours
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
        """Keep nothing of it."""
        try:
            await self.site.events.forget(self.id)
        except StoreError as exc:
            log.error("accord: a session that has ended is still kept: %s", exc)
