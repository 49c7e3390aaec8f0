"""The responses to what a session's client posts (2025-03-26 to 2025-11-25): to one request, or to those of a batch.

As soon as there is something to say before the answer, a channel of its own begins, which a client may take up again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from accord.server.http.event_stream import EventStream
from accord.server.http.response import BasePostResponse, PostResponse, ResponseStream, unless_cancelled
from accord.session.pending_request import PendingRequest
from accord.transport.asgi.request import Receive, Send
from accord.transport.asgi.responses import Headers
from accord.transport.asgi.sse_response import SSEResponse, write_until_disconnect
from accord.transport.session_driver import SessionDriver

if TYPE_CHECKING:
    from accord.server.http.session import HTTPSession


class SessionResponse(PostResponse):
    """The response to a POST that brought one request."""

    __slots__ = ("priming_timer", "session")

    def __init__(self, exchange: PendingRequest, session: HTTPSession, receive: Receive, response: Send) -> None:
        super().__init__(exchange, session.driver, receive, response)
        self.session: HTTPSession = session
        self.headers: Headers = session.headers
        self.priming_timer: asyncio.TimerHandle | None = None

    def on_suspended(self) -> None:
        """A call that takes long is given an event id to come back with."""
        if self.exchange.rules.primes_streams:
            seconds = self.driver.limits.patience_seconds
            self.priming_timer = asyncio.get_running_loop().call_later(seconds, self._prime)

    def _prime(self) -> None:
        if self.exchange.stage == "active":
            self.open_stream()

    def on_done(self) -> None:
        if self.priming_timer is not None:
            self.priming_timer.cancel()

    def make_stream(self) -> tuple[ResponseStream, Coroutine[Any, Any, None]]:
        return _make_stream(self, [self.exchange], self.session)

    def close_stream(self, retry: int | None) -> None:
        """End the response now; the client comes back for the rest, after so many milliseconds."""
        if retry is None and (seconds := self.session.context.options.retry_seconds) is not None:
            retry = round(seconds * 1000)
        channel = self.open_stream()
        if isinstance(channel, EventStream):
            channel.close_response(retry)


class BatchResponse(BasePostResponse):
    """The response to a POST that brought several: "Receivers MUST support receiving JSON-RPC batches" (2025-03-26)."""

    __slots__ = ("requests",)

    def __init__(
        self, requests: list[PendingRequest], conversation: SessionDriver, receive: Receive, response: Send
    ) -> None:
        super().__init__(conversation, receive, response)
        self.requests: list[PendingRequest] = requests

    async def serve(self) -> bytes | None:
        """Have the requests handled side by side; their answers, which the last one to end brings.

        None where the last one was cancelled: then what there was to say is said.
        """
        ends = await asyncio.gather(*map(self._serve_one, self.requests))
        return next((answers for answers in ends if answers is not None), None)

    async def _serve_one(self, exchange: PendingRequest) -> bytes | None:
        exchange.sink = self
        exchange.driver = asyncio.current_task()
        return await unless_cancelled(exchange, self.driver.serve(exchange))


class SessionBatchResponse(BatchResponse):
    """The same, in a session."""

    __slots__ = ("session",)

    def __init__(self, requests: list[PendingRequest], session: HTTPSession, receive: Receive, response: Send) -> None:
        super().__init__(requests, session.driver, receive, response)
        self.session: HTTPSession = session
        self.headers: Headers = session.headers

    def make_stream(self) -> tuple[ResponseStream, Coroutine[Any, Any, None]]:
        return _make_stream(self, self.requests, self.session)


def _make_stream(
    response: BasePostResponse, requests: list[PendingRequest], session: HTTPSession
) -> tuple[ResponseStream, Coroutine[Any, Any, None]]:
    """A channel for what belongs to these requests, and what writes it."""
    channel = session.open_stream(requests)
    stream = SSEResponse(response.asgi_send, session.context.limits, session.headers, session.driver.on_unsent)
    channel.attach(stream)
    return channel, write_event_stream(channel, stream, response.receive)


async def write_event_stream(channel: EventStream, stream: SSEResponse, receive: Receive) -> None:
    """Write a stream until it ends or the client has gone away."""
    try:
        await write_until_disconnect(stream, receive)
    finally:
        channel.detach(stream)
