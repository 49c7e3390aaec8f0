"""The scripted server over HTTP+SSE (2024-11-05): a stream for all that it says, and a place to post to for each."""

from __future__ import annotations

import secrets

from accord.check.clients.conversation import Conversation
from accord.check.clients.endpoint import EVENTS
from accord.check.clients.stand import Stand
from accord.check.clients.web import Exchange, Reply, Site
from accord.wire.sse import encode

STREAM_PATH = "/sse"
"""Of the stream, by which many clients know this transport."""
_MESSAGES = "/messages"


class Streams:
    """Serves a stand over HTTP+SSE. `places` are the targets that its streams named, with the streams."""

    def __init__(self, stand: Stand) -> None:
        self.stand: Stand = stand
        self.site: Site = Site(self._answer, stand.room)
        self.places: dict[str, Stream] = {}

    @property
    def path(self) -> str:
        """Where the stream is."""
        return self.stand.scene.path or STREAM_PATH

    @property
    def target(self) -> str:
        """The URL for the client."""
        return self.site.url + self.path

    async def open(self) -> None:
        """Listen."""
        await self.site.open()

    async def close(self) -> None:
        """Close the port, and cut every connection."""
        await self.site.close()

    def place(self) -> str:
        """A new place to post to."""
        return f"{_MESSAGES}?session_id={secrets.token_urlsafe()}"

    async def stream(self, exchange: Exchange, reply: Reply, place: str, *beginning: bytes) -> None:
        """Open a stream that begins with these pieces, and keep it open; what is said at the place belongs to it."""
        conversation = self.stand.conversation()
        way = self.places[place] = Stream(exchange, reply, conversation)
        conversation.standing = way
        await reply.begin(200, content_type=EVENTS, cache_control="no-store")
        for piece in beginning:
            await reply.piece(piece)
        await reply.gone.wait()

    async def _answer(self, exchange: Exchange, reply: Reply) -> None:
        if self.stand.scene.http is not None and await self.stand.scene.http(self, exchange, reply):
            self.stand.turned()
        elif exchange.verb == "GET" and exchange.path == self.path:
            place = self.place()
            await self.stream(exchange, reply, place, encode(place.encode(), event="endpoint"))
        elif exchange.path == self.path:
            await reply.whole(405, allow="GET")
        else:
            await self._take(exchange, reply)

    async def _take(self, exchange: Exchange, reply: Reply) -> None:
        """A message: "All subsequent client messages MUST be sent as HTTP POST requests to this endpoint"."""
        way = self._stream_of(exchange)
        if way is None or way.closed or exchange.verb != "POST":
            await reply.whole(404)
            return
        await reply.whole(202, b"Accepted", content_type="text/plain")
        for request in way.conversation.hear(exchange.body, exchange.number):
            self.stand.serve(way.conversation, request, way)

    def _stream_of(self, exchange: Exchange) -> Stream | None:
        """Where a message belongs; without the query it is taken for one of the last stream, which a rule tells."""
        if exchange.target == _MESSAGES and self.places:
            return [*self.places.values()][-1]
        return self.places.get(exchange.target)


class Stream:
    """One stream, and the conversation on it."""

    def __init__(self, exchange: Exchange, reply: Reply, conversation: Conversation) -> None:
        self.reply: Reply = reply
        self.conversation: Conversation = conversation
        self.stream: int = exchange.number

    @property
    def closed(self) -> bool:
        """Whether nothing can be said on it any more."""
        return self.reply.done or self.reply.gone.is_set()

    async def send(self, raw: bytes, *, last: bool = False) -> None:
        if not self.closed:
            await self.reply.piece(encode(raw, event="message"))

    async def drop(self) -> None:
        """Cut the connection."""
        self.reply.cut()
