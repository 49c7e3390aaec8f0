"""The driver: one session over one transport on asyncio, for both roles.

`read_loop` reads messages, and `SessionDriver` sends them. No rule of the protocol is here. The reading tasks belong to
the connection, `start` and `close` only start and end them, so both may be called from any task.

`HandshakeDriver` opens a connection as a client, in bounded time; the session chooses the messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from accord.errors import AccordError, ConnectError, ConnectionLost, NotConnected
from accord.limits import DEFAULT_LIMITS, Limits
from accord.session import events
from accord.session.handshake import ClientHandshake
from accord.session.pending_request import PendingRequest
from accord.session.session import Session
from accord.session.states import Phase
from accord.transport.base import Transport
from accord.transport.read_loop import ReadLoop
from accord.transport.request_sender import NotificationCallback
from accord.transport.session_driver import Handler, SessionDriver

_AWAITED = {
    Phase.NEW: "anything",
    Phase.DISCOVERING: "server/discover",
    Phase.INITIALIZING: "initialize",
    Phase.OPEN: "in time",
    Phase.CLOSED: "any more",
}


class HandshakeDriver:
    """The progress of the handshake of one connection. `revision` is set once the connection is open."""

    def __init__(self, session: Session, transport: Transport, limits: Limits) -> None:
        self._session = session
        self._transport = transport
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self.revision: asyncio.Future[str] = self._loop.create_future()

    async def open(self, *, handshake: bool) -> str:
        """Open the connection as a client, and return the revision. Raises `ConnectError` or `ConnectionLost`."""
        session, timeout, client_handshake = self._session, self._limits.client.connect_seconds, self._session.handshake
        assert isinstance(client_handshake, ClientHandshake)
        self._transport.send(client_handshake.start(handshake=handshake))
        probe_timer = self._loop.call_later(self._limits.client.probe_seconds, self._on_probe_timeout, client_handshake)
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.shield(self.revision)
        except TimeoutError as exc:
            raise ConnectError(
                f"{self._transport.name} did not answer {_AWAITED[session.phase]} in {timeout:g} s"
            ) from exc
        finally:
            probe_timer.cancel()

    def _on_probe_timeout(self, client_handshake: ClientHandshake) -> None:
        message = client_handshake.on_probe_timeout()
        if message is not None:
            self._transport.send(message)

    def on_opened(self, event: events.ConnectionOpened) -> None:
        """Set the agreed revision."""
        if event.reply is not None:
            self._transport.send(event.reply)
        if not self.revision.done():
            self.revision.set_result(event.revision)

    def on_failed(self, event: events.HandshakeFailed) -> None:
        """Fail the handshake with the error of the event."""
        name, reason = self._transport.name, str(event.error)
        error = ConnectError(reason if name in reason else f"{name}: {reason}")
        error.__cause__ = event.error
        self.fail(error)

    def fail(self, error: AccordError) -> None:
        """Fail the handshake, unless it has succeeded."""
        if not self.revision.done():
            self.revision.set_exception(error)
            self.revision.exception()  # mark as retrieved: no task may be waiting


class Connection(SessionDriver):
    """A `SessionDriver` that reads a transport, from its start to its end. The arguments are those of
    `SessionDriver`."""

    def __init__(
        self,
        session: Session,
        transport: Transport,
        handler: Handler,
        *,
        on_notification: NotificationCallback | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(session, transport, handler, on_notification=on_notification, limits=limits)
        self.transport: Transport = transport
        self.ended: asyncio.Event = asyncio.Event()
        self.resources: AsyncExitStack = AsyncExitStack()
        """Resources of handlers: closed after the handlers have ended, before the transport is closed."""
        self._handshake = HandshakeDriver(session, transport, limits)
        self._read_loop = ReadLoop(session, transport, limits, self.serve, self._read_event_handlers(), self._end)

    # --- lifetime ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the transport and start to read. Raises `ConnectError`."""
        await self.transport.open()
        self.start_reading()

    def start_reading(self) -> None:
        """Start to read from an open transport."""
        self._read_loop.start_reader()

    async def close(self) -> None:
        """Cancel the handlers, fail the requests in flight, and close the transport. From any task, any number of
        times.

        Cancelled handlers have half of `Limits.close_seconds` to clean up.
        """
        self.closing = self._read_loop.closing = True
        self.fail_all(NotConnected("the connection was closed"))
        try:
            await self._read_loop.end(self.limits.close_seconds / 2)
            await self.finish_callbacks(self.limits.close_seconds / 2)
        finally:
            await self._release()

    async def _release(self) -> None:
        """Close the resources and the transport, each also if the previous one fails or is cancelled after a
        timeout."""
        try:
            await self.resources.aclose()
        finally:
            try:
                await self.transport.close()
            finally:
                self.ended.set()

    async def finish(self, seconds: float | None) -> bool:
        """Refuse new requests, and wait at most `seconds` for those in flight. Return whether all were answered.

        Subscriptions of the peer end at once.
        """
        self.session.draining = True
        for request in [request for request in self.session.incoming.values() if request.method.stays]:
            self.end_subscription(request, "the server is shutting down")
        pending = [request.driver for request in self.session.incoming.values() if request.driver is not None]
        if pending:
            await asyncio.wait(pending, timeout=seconds)
        self.transport.flush()
        return not self.session.incoming

    async def open_client(self, *, handshake: bool = False) -> str:
        """Open the connection as a client, and return the revision. Raises `ConnectError` or `ConnectionLost`."""
        return await self._handshake.open(handshake=handshake)

    def _end(self, lost: ConnectionLost) -> None:
        """Fail all pending requests: the peer is gone."""
        self.fail_all(lost)
        self.ended.set()

    def fail_all(self, error: AccordError) -> None:
        """Fail all pending requests, and the handshake."""
        self._handshake.fail(error)
        super().fail_all(error)

    # --- serving -----------------------------------------------------------------------------------------------

    def end_subscription(self, request: PendingRequest, reason: str | None = None) -> None:
        """End a subscription of the peer from this side, and cancel its handler."""
        messages = self.session.end_subscription(request, reason)
        for message in messages:
            self.transport.send(message)
        if messages and request.driver is not asyncio.current_task():
            request.driver.cancel()

    # --- events of the session ---------------------------------------------------------------------------------

    def _read_event_handlers(self) -> dict[type, Callable[[Any], None]]:
        return {
            **self.event_handlers,
            events.ReplyReady: self._on_reply,
            events.ConnectionOpened: self._on_opened,
            events.HandshakeFailed: self._handshake.on_failed,
        }

    def _on_reply(self, event: events.ReplyReady) -> None:
        self._read_loop.send_answer(event.message)

    def _on_opened(self, event: events.ConnectionOpened) -> None:
        if self.session.role == "client":
            self.ready.set()
        self._handshake.on_opened(event)
