"""The response to a POST of 2026-07-28, which is an exchange of its own.

"Closing the SSE response stream MUST be treated by the server as cancellation of that request" (Streamable HTTP,
Cancellation): so is going away while a JSON answer is pending. A `subscriptions/listen` is a client of its own, as long
as its stream is open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from accord.server.http.post import Outgoing, Post
from accord.server.peer import Peer
from accord.session.exchange import Exchange
from accord.session.session import Session
from accord.transport.asgi.request import Disconnected, Receive, Send
from accord.transport.asgi.stream import Stream, watch
from accord.transport.conversation import Conversation
from accord.wire import sse
from accord.wire.streamable import status_of

if TYPE_CHECKING:
    from accord.server.http.site import Site


class Unnumbered:
    """Messages as events without ids: "Resumable SSE streams via `Last-Event-ID` are not supported"."""

    __slots__ = ("_stream",)

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def send(self, message: bytes) -> None:
        self._stream.put(sse.encode(message))

    def end(self, message: bytes | None) -> None:
        if message is not None:
            self._stream.put(sse.encode(message))
        self._stream.end()

    async def drain(self) -> None:
        await self._stream.drain()


class AlonePost(Post):
    """The response to a request that ends by itself."""

    __slots__ = ("_watching",)

    async def answer(self) -> None:
        """Have the request handled, and send its answer. Raises `Disconnected` when nobody waits for it any more."""
        message = await self.serve()
        if message is None and self.out is None:
            raise Disconnected
        await self.finish(message, status_of(self.exchange.code))

    def suspended(self) -> None:
        """From here on the client may go away before there is an answer."""
        self._watching = asyncio.get_running_loop().create_task(watch(self.receive, self._gone))

    def done(self) -> None:
        self._watching.cancel()

    def _gone(self) -> None:
        self.conversation.session.served.abandon(self.exchange)
        if self.exchange.driver is not None:
            self.exchange.driver.cancel()

    def begin(self) -> tuple[Outgoing, Coroutine[Any, Any, None]]:
        stream = Stream(self.response, self.conversation.limits, self.headers)
        return Unnumbered(stream), stream.run()

    def written(self, writing: asyncio.Task[None]) -> None:
        """If the request is not over, then its client does not read, and was cut off."""
        if self.exchange.stage == "active":
            self._gone()


class ListenPost(AlonePost):
    """The response to a `subscriptions/listen`."""

    __slots__ = ("peer",)

    def __init__(
        self, exchange: Exchange, session: Session, account: str, site: Site, receive: Receive, response: Send
    ) -> None:
        line = Conversation(
            session, self, lambda exchange, _: site.dispatch.handle(exchange, self.peer), limits=site.limits
        )
        super().__init__(exchange, line, receive, response)
        self.peer: Peer = site.peer(line, exchange.who, account)
        """The client that hears of what it subscribes to."""

    def leave(self) -> None:
        """The server is about to end: over HTTP the result is told, and no cancel (Subscriptions, Graceful Closure)."""
        task = self.exchange.driver
        messages = self.conversation.session.end_listen(self.exchange)
        if messages:
            self.send(messages[-1])
            task.cancel()
