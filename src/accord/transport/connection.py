"""The driver: one session over one transport on asyncio, for both roles.

What comes is read in `reading`; what is said is a `SessionDriver`. Nothing here knows a rule of the protocol.
Lifetimes: the reading tasks belong to the connection, `start` and `close` only begin and end them, so both may be
called from any task.

Opening a connection as a client, in bounded time; what is said meanwhile is the session's business.
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
    """How the opening of one connection goes. `revision` is set once it is open."""

    def __init__(self, session: Session, transport: Transport, limits: Limits) -> None:
        self._session = session
        self._transport = transport
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self.revision: asyncio.Future[str] = self._loop.create_future()

    async def open(self, *, handshake: bool) -> str:
        """Open as a client; the revision agreed on. Raises `ConnectError` or `ConnectionLost`."""
        session, seconds, begin = self._session, self._limits.connect_seconds, self._session.handshake
        assert isinstance(begin, ClientHandshake)
        self._transport.send(begin.start(handshake=handshake))
        knock = self._loop.call_later(self._limits.probe_seconds, self._on_probe_timeout, begin)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(self.revision)
        except TimeoutError as exc:
            raise ConnectError(
                f"{self._transport.name} did not answer {_AWAITED[session.phase]} in {seconds:g} s"
            ) from exc
        finally:
            knock.cancel()

    def _on_probe_timeout(self, opening: ClientHandshake) -> None:
        message = opening.on_probe_timeout()
        if message is not None:
            self._transport.send(message)

    def on_opened(self, event: events.ConnectionOpened) -> None:
        """Both sides agree."""
        if event.reply is not None:
            self._transport.send(event.reply)
        if not self.revision.done():
            self.revision.set_result(event.revision)

    def on_failed(self, event: events.HandshakeFailed) -> None:
        """The server cannot or will not be opened."""
        name, why = self._transport.name, str(event.error)
        error = ConnectError(why if name in why else f"{name}: {why}")
        error.__cause__ = event.error
        self.fail(error)

    def fail(self, error: AccordError) -> None:
        """It will not be open any more, if it is not by now."""
        if not self.revision.done():
            self.revision.set_exception(error)
            self.revision.exception()  # seen: nobody may be waiting


class Connection(SessionDriver):
    """A conversation that reads a transport, from its opening to its end. Arguments are those of `SessionDriver`."""

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
        """What handlers need: it is left when they have ended, and the transport is still there."""
        self._handshake = HandshakeDriver(session, transport, limits)
        self._read_loop = ReadLoop(session, transport, limits, self.serve, self._read_event_handlers(), self._end)

    # --- lifetime ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the transport and begin to read. Raises `ConnectError`."""
        await self.transport.open()
        self.start_reading()

    def start_reading(self) -> None:
        """Begin to read, from a transport that is open."""
        self._read_loop.start_reader()

    async def close(self) -> None:
        """End everything: the handlers, the requests in flight, the transport. From any task, any number of times.

        Handlers are cancelled, and have half of `Limits.close_seconds` to clean up.
        """
        self.closing = self._read_loop.closing = True
        self.fail_all(NotConnected("the connection was closed"))
        try:
            await self._read_loop.end(self.limits.close_seconds / 2)
            await self.finish_callbacks(self.limits.close_seconds / 2)
        finally:
            await self._release()

    async def _release(self) -> None:
        """Each of them, also where the one before fails, or is cancelled because it takes too long."""
        try:
            await self.resources.aclose()
        finally:
            try:
                await self.transport.close()
            finally:
                self.ended.set()

    async def finish(self, seconds: float | None) -> bool:
        """Take no new requests and wait until those being served are answered, at most `seconds`. Whether all were.

        Subscriptions of the peer end at once.
        """
        self.session.draining = True
        for exchange in [exchange for exchange in self.session.incoming.values() if exchange.method.stays]:
            self.end_subscription(exchange, "the server is shutting down")
        pending = [exchange.driver for exchange in self.session.incoming.values() if exchange.driver is not None]
        if pending:
            await asyncio.wait(pending, timeout=seconds)
        self.transport.flush()
        return not self.session.incoming

    async def open_client(self, *, handshake: bool = False) -> str:
        """Open as a client; the revision agreed on. Raises `ConnectError` or `ConnectionLost`."""
        return await self._handshake.open(handshake=handshake)

    def _end(self, lost: ConnectionLost) -> None:
        """The peer is gone: whatever waits for it fails now."""
        self.fail_all(lost)
        self.ended.set()

    def fail_all(self, error: AccordError) -> None:
        """Whatever waits for the peer fails now, the opening too."""
        self._handshake.fail(error)
        super().fail_all(error)

    # --- serving -----------------------------------------------------------------------------------------------

    def end_subscription(self, exchange: PendingRequest, reason: str | None = None) -> None:
        """End a subscription of the peer from our side, and cancel the handler that serves it."""
        messages = self.session.end_subscription(exchange, reason)
        for message in messages:
            self.transport.send(message)
        if messages and exchange.driver is not asyncio.current_task():
            exchange.driver.cancel()

    # --- what the session says ---------------------------------------------------------------------------------

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
