"""The responses to what a session's client posts (2025-03-26 to 2025-11-25): to one request, or to those of a batch.

As soon as there is something to say before the answer, a channel of its own begins, which a client may take up again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from accord.server.http.channel import Channel
from accord.server.http.post import Outgoing, Post, Response, unless_cancelled
from accord.session.exchange import Exchange
from accord.transport.asgi.answer import Headers
from accord.transport.asgi.request import Receive, Send
from accord.transport.asgi.stream import Stream, watched
from accord.transport.conversation import Conversation

if TYPE_CHECKING:
    from accord.server.http.session import HTTPSession


class SessionPost(Post):
    """The response to a POST that brought one request."""

    __slots__ = ("patience", "session")

    def __init__(self, exchange: Exchange, session: HTTPSession, receive: Receive, response: Send) -> None:
        super().__init__(exchange, session.conversation, receive, response)
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
        return _begun(self, [self.exchange], self.session)

    def close_stream(self, retry: int | None) -> None:
        """End the response now; the client comes back for the rest, after so many milliseconds."""
        if retry is None and (seconds := self.session.site.options.retry_seconds) is not None:
            retry = round(seconds * 1000)
        channel = self.stream()
        if isinstance(channel, Channel):
            channel.close_carrier(retry)


class BatchPost(Response):
    """The response to a POST that brought several: "Receivers MUST support receiving JSON-RPC batches" (2025-03-26)."""

    __slots__ = ("requests",)

    def __init__(self, requests: list[Exchange], conversation: Conversation, receive: Receive, response: Send) -> None:
        super().__init__(conversation, receive, response)
        self.requests: list[Exchange] = requests

    async def serve(self) -> bytes | None:
        """Have the requests handled side by side; their answers, which the last one to end brings.

        None where the last one was cancelled: then what there was to say is said.
        """
        ends = await asyncio.gather(*map(self._serve_one, self.requests))
        return next((answers for answers in ends if answers is not None), None)

    async def _serve_one(self, exchange: Exchange) -> bytes | None:
        exchange.way = self
        exchange.driver = asyncio.current_task()
        return await unless_cancelled(exchange, self.conversation.answer(exchange))


class SessionBatch(BatchPost):
    """The same, in a session."""

    __slots__ = ("session",)

    def __init__(self, requests: list[Exchange], session: HTTPSession, receive: Receive, response: Send) -> None:
        super().__init__(requests, session.conversation, receive, response)
        self.session: HTTPSession = session
        self.headers: Headers = session.headers

    def begin(self) -> tuple[Outgoing, Coroutine[Any, Any, None]]:
        return _begun(self, self.requests, self.session)


def _begun(
    response: Response, requests: list[Exchange], session: HTTPSession
) -> tuple[Outgoing, Coroutine[Any, Any, None]]:
    """A channel for what belongs to these requests, and what writes it."""
    channel = session.open_channel(requests)
    stream = Stream(response.response, session.site.limits, session.headers)
    channel.carry(stream)
    return channel, carried(channel, stream, response.receive)


async def carried(channel: Channel, stream: Stream, receive: Receive) -> None:
    """Write a stream until it ends or the client has gone away."""
    try:
        await watched(stream, receive)
    finally:
        channel.let_go(stream)
