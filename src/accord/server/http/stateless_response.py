"""The response to a POST of 2026-07-28, which is an exchange of its own.

"Closing the SSE response stream MUST be treated by the server as cancellation of that request" (Streamable HTTP,
Cancellation): so is going away while a JSON answer is pending. A `subscriptions/listen` is a client of its own, as long
as its stream is open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from accord.server.http.response import PostResponse, ResponseStream
from accord.server.peer import Peer
from accord.session.pending_request import PendingRequest
from accord.session.session import Session
from accord.transport.asgi.request import ClientDisconnected, Receive, Send
from accord.transport.asgi.sse_response import SSEResponse, wait_for_disconnect
from accord.transport.session_driver import SessionDriver
from accord.wire import sse
from accord.wire.request_headers import status_of

if TYPE_CHECKING:
    from accord.server.http.http_context import HTTPContext


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
