"""HTTP+SSE (2024-11-05): one stream for all messages of the server, and a URL to post to.

"When a client connects, the server MUST send an `endpoint` event containing a URI for the client to use for sending
messages. All subsequent client messages MUST be sent as HTTP POST requests to this endpoint." Deprecated since
2025-03-26; the URL is as secret as a session id.

HTTP+SSE does not exist in 2026-07-28, but a client of it may connect through a bridge from stdio: its requests name
their revision in `_meta`, as over stdio, and no header is required.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import quote

from accord.server.http.base_session import BaseHTTPSession, until_expiry
from accord.session.events import ConnectionOpened, ReplyReady, RequestReceived
from accord.session.pending_request import PendingRequest
from accord.transport.asgi.request import ASGIRequest, Receive, send_text
from accord.transport.asgi.sse_response import SSEResponse, write_until_disconnect
from accord.wire import sse

if TYPE_CHECKING:
    from accord.server.http.http_context import HTTPContext
    from accord.server.http.quotas import BodyCharge


class SSESession(BaseHTTPSession):
    """A client's session, which lasts as long as its stream."""

    def __init__(self, context: HTTPContext, request: ASGIRequest, account: str, id: str) -> None:
        unsent = context.unsent_of(account)
        self._stream = SSEResponse(request.send, context.limits, on_unsent=unsent, event="message", name="HTTP+SSE")
        super().__init__(context, request.principal, account, self._stream, id)
        # 2026-07-28 has a stream for each subscription, and thus a connection; here one stream carries any number.
        self.session.incoming_requests.subscription_load = self.session.incoming_requests.load
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, endpoint: str, receive: Receive) -> None:
        """Write the stream until the client disconnects or the session is closed."""
        address = f"{quote(endpoint)}?session_id={self.id}"
        self._stream.send_event(sse.encode(address.encode(), event="endpoint"))
        with self, self.with_stream(), until_expiry(self.peer.identity, self._expire):
            await write_until_disconnect(self._stream, receive)

    async def post(self, body: bytes, request: ASGIRequest, charge: BodyCharge) -> None:
        """Process one POST; responses are sent on the stream. Its requests hold `charge` until they are
        answered.
        """
        events = self.receive(body, request, charge)
        self.check_answer(events)
        requests = [event.pending for event in events if type(event) is RequestReceived]
        self.context.check_scopes(requests, request.principal, self.driver, self.peer)
        for event in events:
            if type(event) is RequestReceived:
                task = asyncio.get_running_loop().create_task(self._serve(event.pending))
                event.pending.driver = task
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                charge.hold()
                task.add_done_callback(lambda _: charge.release())
            elif type(event) is ReplyReady:
                self.driver.sink.send(event.message)
            elif type(event) is ConnectionOpened:
                self.driver.sink.send(event.reply or b"")
            else:
                self.driver.event_handlers[type(event)](event)
        await self.driver.sink.drain()
        await send_text(request.send, 202, "")

    async def _serve(self, pending: PendingRequest) -> None:
        message = await self.driver.serve(pending)
        if message is not None:
            self.driver.sink.send(message)

    def drain(self) -> None:
        """Prepare for shutdown: refuse new work, and end subscriptions."""
        session = self.session
        session.draining = True
        for pending in [pending for pending in session.incoming.values() if pending.method.stays]:
            for message in session.end_subscription(pending, "the server is shutting down"):
                self.driver.sink.send(message)
            pending.driver.cancel()

    def _expire(self) -> None:
        """End the stream after the running calls: the token that opened it has expired."""
        self.drain()
        self._ending = asyncio.get_running_loop().create_task(self.finish())

    async def finish(self) -> None:
        """Wait for running calls, then end the stream."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._stream.end()

    async def close(self, reason: str) -> None:
        """Close the session and its stream."""
        await super().close(reason)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.context.limits.close_seconds / 2)
        self._stream.end()
