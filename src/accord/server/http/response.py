"""The response to one POST: one JSON body, or events as soon as there is something to say before the answer.

It is the way of what belongs to the request. Who subclasses it says what a stream is (`make_stream`), and what happens
when the handler waits for the first time (`on_suspended`).

The response to a POST of 2026-07-28, which is an exchange of its own.

"Closing the SSE response stream MUST be treated by the server as cancellation of that request" (Streamable HTTP,
Cancellation): so is going away while a JSON answer is pending. A `subscriptions/listen` is a client of its own, as long
as its stream is open.

The responses to what a session's client posts (2025-03-26 to 2025-11-25): to one request, or to those of a batch.

As soon as there is something to say before the answer, a channel of its own begins, which a client may take up again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from accord.server.core.peer import Peer
from accord.server.http.event_stream import EventStream
from accord.session.pending_request import PendingRequest
from accord.session.session import Session
from accord.transport.asgi.request import ClientDisconnected, Receive, Send
from accord.transport.asgi.responses import Headers, send_json
from accord.transport.asgi.sse_response import SSEResponse, wait_for_disconnect, write_until_disconnect
from accord.transport.deadlines import resume
from accord.transport.session_driver import SessionDriver
from accord.wire import sse
from accord.wire.request_headers import status_of

if TYPE_CHECKING:
    from accord.server.http.http_context import HTTPContext


class ResponseStream(Protocol):
    """A stream of messages that has an end."""

    def send(self, message: bytes) -> None:
        """Queue a message."""

    def end(self, message: bytes | None) -> None:
        """Queue the last one, if there is one."""

    async def drain(self) -> None:
        """Return when little is left to write."""


class BasePostResponse:
    """The response to one POST, whatever that brought."""

    __slots__ = ("asgi_send", "driver", "event_stream", "headers", "receive", "writer_task")

    name = "HTTP"

    def __init__(self, conversation: SessionDriver, receive: Receive, response: Send) -> None:
        self.driver: SessionDriver = conversation
        self.receive: Receive = receive
        self.asgi_send: Send = response
        self.headers: Headers = ()
        """Headers of the response, of either kind."""
        self.event_stream: ResponseStream | None = None
        self.writer_task: asyncio.Task[None] | None = None
        """What writes the stream, if there is one."""

    # --- the way of what belongs to the POST -------------------------------------------------------------------

    def send(self, message: bytes) -> None:
        self.open_stream().send(message)

    def open_stream(self) -> ResponseStream:
        """The stream, begun if it was not."""
        if self.event_stream is None:
            self.event_stream, writes = self.make_stream()
            self.writer_task = asyncio.get_running_loop().create_task(writes)
            self.writer_task.add_done_callback(self.on_written)
        return self.event_stream

    def flush(self) -> None:
        """Nothing is held."""

    async def drain(self) -> None:
        if self.event_stream is not None:
            await self.event_stream.drain()

    async def finish(self, message: bytes | None, status: int = 200) -> None:
        """Send the answer, and end the response."""
        if self.event_stream is None and message is not None:
            return await send_json(self.asgi_send, status, message, self.headers)
        self.open_stream().end(message)  # one without events, where there is nothing to say
        if self.writer_task is not None:
            await self.writer_task
        return None

    # --- what is different from era to era ---------------------------------------------------------------------

    def make_stream(self) -> tuple[ResponseStream, Coroutine[Any, Any, None]]:
        """A stream, and what writes it to its end."""
        raise NotImplementedError  # each era has a stream of its own

    def on_written(self, writing: asyncio.Task[None]) -> None:
        """The stream was written to its end, or the client is gone."""


class PostResponse(BasePostResponse):
    """The response to a POST that brought one request."""

    __slots__ = ("exchange",)

    def __init__(self, exchange: PendingRequest, conversation: SessionDriver, receive: Receive, response: Send) -> None:
        super().__init__(conversation, receive, response)
        self.exchange: PendingRequest = exchange

    async def serve(self) -> bytes | None:
        """Have the request handled in this task; its answer, or None when it was cancelled."""
        self.exchange.sink = self
        answer = self.driver.serve(self.exchange)
        try:
            waits_for = answer.send(None)
        except StopIteration as done:  # most handlers never wait, and so never need what is for those that do
            message: bytes | None = done.value
            return message
        else:
            return await self._wait(answer, waits_for)
        finally:
            self.exchange.sink = None

    async def _wait(self, answer: Coroutine[Any, Any, bytes | None], waits_for: Any) -> bytes | None:
        """From the first wait of the handler on, until which nobody could have cancelled it."""
        self.exchange.driver = asyncio.current_task()
        self.on_suspended()
        try:
            return await unless_cancelled(self.exchange, resume(answer, waits_for))
        finally:
            self.exchange.driver = None
            self.on_done()

    def on_suspended(self) -> None:
        """The handler waits for the first time."""

    def on_done(self) -> None:
        """A handler that has waited has ended."""


async def unless_cancelled(exchange: PendingRequest, answer: Awaitable[bytes | None]) -> bytes | None:
    """The answer to a request that this task, its `driver`, serves; None where the request was cancelled meanwhile."""
    try:
        return await answer
    except asyncio.CancelledError:
        if exchange.stage == "active":  # not we, but who runs this task, wants its end
            raise
        exchange.driver.uncancel()
        return None


class UnnumberedEventStream:
    """Messages as events without ids: "Resumable SSE streams via `Last-Event-ID` are not supported"."""

    __slots__ = ("_stream",)

    def __init__(self, stream: SSEResponse) -> None:
        self._stream = stream

    def send(self, message: bytes) -> None:
        self._stream.send(sse.encode(message))

    def end(self, message: bytes | None) -> None:
        if message is not None:
            self._stream.send(sse.encode(message))
        self._stream.end()

    async def drain(self) -> None:
        await self._stream.drain()


class StatelessResponse(PostResponse):
    """The response to a request that ends by itself."""

    __slots__ = ("_disconnect_task",)

    async def answer(self) -> None:
        """Have the request handled, and send its answer. Raises `ClientDisconnected` when nobody waits for it any
        more."""
        message = await self.serve()
        if message is None and self.event_stream is None:
            raise ClientDisconnected
        await self.finish(message, status_of(self.exchange.code))

    def on_suspended(self) -> None:
        """From here on the client may go away before there is an answer."""
        self._disconnect_task = asyncio.get_running_loop().create_task(
            wait_for_disconnect(self.receive, self._on_disconnect)
        )

    def on_done(self) -> None:
        self._disconnect_task.cancel()

    def _on_disconnect(self) -> None:
        self.driver.session.incoming_requests.abandon(self.exchange)
        if self.exchange.driver is not None:
            self.exchange.driver.cancel()

    def make_stream(self) -> tuple[ResponseStream, Coroutine[Any, Any, None]]:
        stream = SSEResponse(self.asgi_send, self.driver.limits, self.headers, self.driver.on_unsent)
        return UnnumberedEventStream(stream), stream.run()

    def on_written(self, writing: asyncio.Task[None]) -> None:
        """If the request is not over, then its client does not read, and was cut off."""
        if self.exchange.stage == "active":
            self._on_disconnect()


class ListenResponse(StatelessResponse):
    """The response to a `subscriptions/listen`."""

    __slots__ = ("peer",)

    def __init__(
        self,
        exchange: PendingRequest,
        session: Session,
        account: str,
        site: HTTPContext,
        receive: Receive,
        response: Send,
    ) -> None:
        line = SessionDriver(
            session,
            self,
            lambda exchange, _: site.dispatcher.handle(exchange, self.peer),
            limits=site.limits,
            on_unsent=site.unsent_of(account),
        )
        super().__init__(exchange, line, receive, response)
        self.peer: Peer = site.peer(line, exchange.principal, account)
        """The client that hears of what it subscribes to."""

    def shut_down(self) -> None:
        """The server is about to end: over HTTP the result is told, and no cancel (Subscriptions, Graceful Closure)."""
        task = self.exchange.driver
        messages = self.driver.session.end_subscription(self.exchange)
        if messages:
            self.send(messages[-1])
            task.cancel()


class StreamSession(Protocol):
    """The session that a POST belongs to, as its response uses it."""

    driver: SessionDriver
    headers: Headers
    context: HTTPContext

    def open_stream(self, requests: list[PendingRequest]) -> EventStream:
        """Open a stream for what belongs to these requests."""


class SessionResponse(PostResponse):
    """The response to a POST that brought one request."""

    __slots__ = ("priming_timer", "session")

    def __init__(self, exchange: PendingRequest, session: StreamSession, receive: Receive, response: Send) -> None:
        super().__init__(exchange, session.driver, receive, response)
        self.session: StreamSession = session
        self.headers: Headers = session.headers
        self.priming_timer: asyncio.TimerHandle | None = None

    def on_suspended(self) -> None:
        """A call that takes long is given an event id to come back with."""
        if self.exchange.rules.primes_streams:
            seconds = self.driver.limits.http.patience_seconds
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

    def __init__(
        self, requests: list[PendingRequest], session: StreamSession, receive: Receive, response: Send
    ) -> None:
        super().__init__(requests, session.driver, receive, response)
        self.session: StreamSession = session
        self.headers: Headers = session.headers

    def make_stream(self) -> tuple[ResponseStream, Coroutine[Any, Any, None]]:
        return _make_stream(self, self.requests, self.session)


def _make_stream(
    response: BasePostResponse, requests: list[PendingRequest], session: StreamSession
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
