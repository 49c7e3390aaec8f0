"""Responses to a POST: one JSON body, or an event stream if messages precede the response.

A subclass of `BasePostResponse` defines the stream (`make_stream`) and the action when the handler first waits
(`on_suspended`).

A POST of 2026-07-28 is stateless: "Closing the SSE response stream MUST be treated by the server as cancellation of
that request" (Streamable HTTP, Cancellation); so is a disconnect while a JSON response is pending. A
`subscriptions/listen` is a peer of its own while its stream is open.

A POST of a session (2025-03-26 to 2025-11-25) has one request or a batch. If messages precede the response, they open a
stream that the client can resume.
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
    """A stream of messages with an end."""

    def send(self, message: bytes) -> None:
        """Queue a message."""

    def end(self, message: bytes | None) -> None:
        """Queue the last message, if there is one."""

    async def drain(self) -> None:
        """Wait until few bytes are unwritten."""


class BasePostResponse:
    """The response to one POST with one request or several."""

    __slots__ = ("asgi_send", "driver", "event_stream", "headers", "receive", "writer_task")

    name = "HTTP"

    def __init__(self, driver: SessionDriver, receive: Receive, asgi_send: Send) -> None:
        self.driver: SessionDriver = driver
        self.receive: Receive = receive
        self.asgi_send: Send = asgi_send
        self.headers: Headers = ()
        """Headers of the response, as JSON or as a stream."""
        self.event_stream: ResponseStream | None = None
        self.writer_task: asyncio.Task[None] | None = None
        """The task that writes the stream, if there is one."""

    # --- message sink ------------------------------------------------------------------------------------------

    def send(self, message: bytes) -> None:
        self.open_stream().send(message)

    def open_stream(self) -> ResponseStream:
        """Return the stream, opened on first use."""
        if self.event_stream is None:
            self.event_stream, writes = self.make_stream()
            self.writer_task = asyncio.get_running_loop().create_task(writes)
            self.writer_task.add_done_callback(self.on_written)
        return self.event_stream

    def flush(self) -> None:
        """Do nothing: messages are not buffered."""

    async def drain(self) -> None:
        if self.event_stream is not None:
            await self.event_stream.drain()

    async def finish(self, message: bytes | None, status: int = 200) -> None:
        """Send the last message, and end the response."""
        if self.event_stream is None and message is not None:
            return await send_json(self.asgi_send, status, message, self.headers)
        self.open_stream().end(message)  # an empty stream, without a message
        if self.writer_task is not None:
            await self.writer_task
        return None

    # --- for subclasses ----------------------------------------------------------------------------------------

    def make_stream(self) -> tuple[ResponseStream, Coroutine[Any, Any, None]]:
        """Return a stream, and the coroutine that writes it to its end."""
        raise NotImplementedError  # each subclass has a stream of its own

    def on_written(self, writing: asyncio.Task[None]) -> None:
        """Handle the end of the stream: written completely, or the client has disconnected."""


class PostResponse(BasePostResponse):
    """The response to a POST with one request."""

    __slots__ = ("pending",)

    def __init__(self, pending: PendingRequest, driver: SessionDriver, receive: Receive, asgi_send: Send) -> None:
        super().__init__(driver, receive, asgi_send)
        self.pending: PendingRequest = pending

    async def serve(self) -> bytes | None:
        """Handle the request in this task, and return its response, or None if it was cancelled."""
        self.pending.sink = self
        answer = self.driver.serve(self.pending)
        try:
            waits_for = answer.send(None)
        except StopIteration as done:  # most handlers never wait, and so need no cancellation
            message: bytes | None = done.value
            return message
        else:
            return await self._wait(answer, waits_for)
        finally:
            self.pending.sink = None

    async def _wait(self, answer: Coroutine[Any, Any, bytes | None], waits_for: Any) -> bytes | None:
        """Continue a handler that waits, which from now on can be cancelled."""
        self.pending.driver = asyncio.current_task()
        self.on_suspended()
        try:
            return await unless_cancelled(self.pending, resume(answer, waits_for))
        finally:
            self.pending.driver = None
            self.on_done()

    def on_suspended(self) -> None:
        """Called when the handler first waits."""

    def on_done(self) -> None:
        """Called when a handler that waited has ended."""


async def unless_cancelled(pending: PendingRequest, answer: Awaitable[bytes | None]) -> bytes | None:
    """Return the response to a request that this task serves, or None if the request was cancelled."""
    try:
        return await answer
    except asyncio.CancelledError:
        if pending.stage == "active":  # the task itself is cancelled, not the request
            raise
        pending.driver.uncancel()
        return None


class UnnumberedEventStream:
    """A stream of events without ids: "Resumable SSE streams via `Last-Event-ID` are not supported"."""

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
    """The response to a stateless request other than `subscriptions/listen`."""

    __slots__ = ("_disconnect_task",)

    async def answer(self) -> None:
        """Handle the request, and send its response. Raises `ClientDisconnected`."""
        message = await self.serve()
        if message is None and self.event_stream is None:
            raise ClientDisconnected
        await self.finish(message, status_of(self.pending.code))

    def on_suspended(self) -> None:
        """Watch for a disconnect of the client."""
        self._disconnect_task = asyncio.get_running_loop().create_task(
            wait_for_disconnect(self.receive, self._on_disconnect)
        )

    def on_done(self) -> None:
        self._disconnect_task.cancel()

    def _on_disconnect(self) -> None:
        self.driver.session.incoming_requests.abandon(self.pending)
        if self.pending.driver is not None:
            self.pending.driver.cancel()

    def make_stream(self) -> tuple[ResponseStream, Coroutine[Any, Any, None]]:
        stream = SSEResponse(self.asgi_send, self.driver.limits, self.headers, self.driver.on_unsent)
        return UnnumberedEventStream(stream), stream.run()

    def on_written(self, writing: asyncio.Task[None]) -> None:
        """Cancel a request that is still active: its client does not read, and was disconnected."""
        if self.pending.stage == "active":
            self._on_disconnect()


class ListenResponse(StatelessResponse):
    """The response to a `subscriptions/listen`."""

    __slots__ = ("peer",)

    def __init__(
        self,
        pending: PendingRequest,
        session: Session,
        account: str,
        context: HTTPContext,
        receive: Receive,
        asgi_send: Send,
    ) -> None:
        driver = SessionDriver(
            session,
            self,
            lambda pending, _: context.dispatcher.handle(pending, self.peer),
            limits=context.limits,
            on_unsent=context.unsent_of(account),
        )
        super().__init__(pending, driver, receive, asgi_send)
        self.peer: Peer = context.peer(driver, pending.principal, account)
        """The peer that receives the notifications."""

    def shut_down(self) -> None:
        """End the subscription for the server's shutdown: over HTTP with the result, not a cancellation (Subscriptions,
        Graceful Closure).
        """
        task = self.pending.driver
        messages = self.driver.session.end_subscription(self.pending)
        if messages:
            self.send(messages[-1])
            task.cancel()


class StreamSession(Protocol):
    """The part of a session that its responses use."""

    driver: SessionDriver
    headers: Headers
    context: HTTPContext

    def open_stream(self, requests: list[PendingRequest]) -> EventStream:
        """Open a stream for the messages of these requests."""


class SessionResponse(PostResponse):
    """The response to a session's POST with one request."""

    __slots__ = ("priming_timer", "session")

    def __init__(self, pending: PendingRequest, session: StreamSession, receive: Receive, asgi_send: Send) -> None:
        super().__init__(pending, session.driver, receive, asgi_send)
        self.session: StreamSession = session
        self.headers: Headers = session.headers
        self.priming_timer: asyncio.TimerHandle | None = None

    def on_suspended(self) -> None:
        """Schedule the stream of a slow call, whose first event id lets the client reconnect."""
        if self.pending.rules.primes_streams:
            seconds = self.driver.limits.http.patience_seconds
            self.priming_timer = asyncio.get_running_loop().call_later(seconds, self._prime)

    def _prime(self) -> None:
        if self.pending.stage == "active":
            self.open_stream()

    def on_done(self) -> None:
        if self.priming_timer is not None:
            self.priming_timer.cancel()

    def make_stream(self) -> tuple[ResponseStream, Coroutine[Any, Any, None]]:
        return _make_stream(self, [self.pending], self.session)

    def close_stream(self, retry: int | None) -> None:
        """End the response now; the client reconnects for the rest, after `retry` milliseconds."""
        if retry is None and (seconds := self.session.context.options.retry_seconds) is not None:
            retry = round(seconds * 1000)
        event_stream = self.open_stream()
        if isinstance(event_stream, EventStream):
            event_stream.close_response(retry)


class BatchResponse(BasePostResponse):
    """The response to a POST with several requests: "Receivers MUST support receiving JSON-RPC batches"
    (2025-03-26).
    """

    __slots__ = ("requests",)

    def __init__(
        self, requests: list[PendingRequest], driver: SessionDriver, receive: Receive, asgi_send: Send
    ) -> None:
        super().__init__(driver, receive, asgi_send)
        self.requests: list[PendingRequest] = requests

    async def serve(self) -> bytes | None:
        """Handle the requests concurrently, and return their responses, which the last one to end returns.

        None if the last one was cancelled: then the other responses are on the stream.
        """
        ends = await asyncio.gather(*map(self._serve_one, self.requests))
        return next((answers for answers in ends if answers is not None), None)

    async def _serve_one(self, pending: PendingRequest) -> bytes | None:
        pending.sink = self
        pending.driver = asyncio.current_task()
        return await unless_cancelled(pending, self.driver.serve(pending))


class SessionBatchResponse(BatchResponse):
    """The response to a batch in a session."""

    __slots__ = ("session",)

    def __init__(
        self, requests: list[PendingRequest], session: StreamSession, receive: Receive, asgi_send: Send
    ) -> None:
        super().__init__(requests, session.driver, receive, asgi_send)
        self.session: StreamSession = session
        self.headers: Headers = session.headers

    def make_stream(self) -> tuple[ResponseStream, Coroutine[Any, Any, None]]:
        return _make_stream(self, self.requests, self.session)


def _make_stream(
    response: BasePostResponse, requests: list[PendingRequest], session: StreamSession
) -> tuple[ResponseStream, Coroutine[Any, Any, None]]:
    """Return a stream for the messages of these requests, and the coroutine that writes it."""
    event_stream = session.open_stream(requests)
    stream = SSEResponse(response.asgi_send, session.context.limits, session.headers, session.driver.on_unsent)
    event_stream.attach(stream)
    return event_stream, write_event_stream(event_stream, stream, response.receive)


async def write_event_stream(event_stream: EventStream, stream: SSEResponse, receive: Receive) -> None:
    """Write a stream until it ends or the client disconnects."""
    try:
        await write_until_disconnect(stream, receive)
    finally:
        event_stream.detach(stream)
