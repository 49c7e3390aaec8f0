"""HTTP+SSE (2024-11-05): one stream for all that goes out, and an address to post to.

"When a client connects, the server MUST send an `endpoint` event containing a URI for the client to use for sending
messages. All subsequent client messages MUST be sent as HTTP POST requests to this endpoint." Deprecated since
2025-03-26; the address is as secret as the id of a session.

2026-07-28 knows no HTTP+SSE, and a client of it may stand behind a bridge from stdio that does: its requests name their
revision in `_meta`, as over stdio, and no header is asked of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from accord.server.http.base_session import BaseHTTPSession
from accord.session.events import ConnectionOpened, ReplyReady, RequestReceived
from accord.session.pending_request import PendingRequest
from accord.transport.asgi.request import Receive, Send
from accord.transport.asgi.responses import send_text
from accord.transport.asgi.sse_response import SSEResponse, write_until_disconnect
from accord.wire import sse

if TYPE_CHECKING:
    from accord.server.core.principal import Principal
    from accord.server.http.http_context import HTTPContext
    from accord.server.http.quotas import BodyCharge


class SSEMessageSink:
    """Messages as events of one stream."""

    name = "HTTP+SSE"

    def __init__(self, stream: SSEResponse) -> None:
        self._stream = stream

    def send(self, message: bytes) -> None:
        self._stream.send(sse.encode(message, event="message"))

    def flush(self) -> None:
        """Nothing is held."""

    async def drain(self) -> None:
        await self._stream.drain()


class SSESession(BaseHTTPSession):
    """A client as long as its stream is open."""

    def __init__(self, site: HTTPContext, who: Principal | None, account: str, id: str, send: Send) -> None:
        self._stream = SSEResponse(send, site.limits, on_unsent=site.unsent_of(account))
        super().__init__(site, who, account, SSEMessageSink(self._stream), id)
        # 2026-07-28 has a stream for each subscription, and thus a connection; here one stream carries any number.
        self.session.incoming_requests.subscription_load = self.session.incoming_requests.load
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, endpoint: str, receive: Receive) -> None:
        """Write the stream until the client goes away or the session is closed."""
        address = f"{quote(endpoint)}?session_id={self.id}"
        self._stream.send(sse.encode(address.encode(), event="endpoint"))
        with self, self.with_stream():
            await write_until_disconnect(self._stream, receive)

    async def post(
        self, body: bytes, send: Send, who: Principal | None, headers: Mapping[bytes, bytes], charge: BodyCharge
    ) -> None:
        """Take what one POST of `who` brought; what it is answered goes out on the stream. Its requests hold `charge`
        until they are answered.
        """
        events = self.receive(body, who, headers, charge)
        self.check_answer(events)
        for event in events:
            if type(event) is RequestReceived:
                task = asyncio.get_running_loop().create_task(self._serve(event.exchange))
                event.exchange.driver = task
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
        await send_text(send, 202, "")

    async def _serve(self, exchange: PendingRequest) -> None:
        message = await self.driver.serve(exchange)
        if message is not None:
            self.driver.sink.send(message)

    def drain(self) -> None:
        """The process is about to end: take nothing new, and end subscriptions."""
        session = self.session
        session.draining = True
        for exchange in [exchange for exchange in session.incoming.values() if exchange.method.stays]:
            for message in session.end_subscription(exchange, "the server is shutting down"):
                self.driver.sink.send(message)
            exchange.driver.cancel()

    async def finish(self) -> None:
        """Wait until its calls are answered, then end its stream."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._stream.end()

    async def close(self, why: str) -> None:
        """End it, and its stream."""
        await super().close(why)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.context.limits.close_seconds / 2)
        self._stream.end()
