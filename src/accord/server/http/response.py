"""The response to one POST: one JSON body, or events as soon as there is something to say before the answer.

It is the way of what belongs to the request. Who subclasses it says what a stream is (`make_stream`), and what happens
when the handler waits for the first time (`on_suspended`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, Protocol

from accord.session.pending_request import PendingRequest
from accord.transport.asgi.request import Receive, Send
from accord.transport.asgi.responses import Headers, send_json
from accord.transport.deadlines import resume
from accord.transport.session_driver import SessionDriver


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
