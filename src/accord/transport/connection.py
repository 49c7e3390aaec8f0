"""The driver: one session over one transport on asyncio, for both roles.

What comes is read in `reading`; requests of the peer are answered here, our own are in `asking`. Nothing here knows a
rule of the protocol. Lifetimes: the reading tasks belong to the connection, `start` and `close` only begin and end
them, so both may be called from any task.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager
from typing import Any

from msgspec import Raw

from accord.errors import AccordError, ConnectionLost, InternalError, NotConnected, ProtocolError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages.revision import Rules
from accord.session import events
from accord.session.exchange import Exchange
from accord.session.session import Session
from accord.session.stats import Stats
from accord.transport.asking import Asking, NotificationCallback, ProgressCallback
from accord.transport.base import Transport
from accord.transport.callbacks import Callback
from accord.transport.opening import Opening
from accord.transport.reading import Reading
from accord.transport.reports import Reports

log: logging.Logger = logging.getLogger("accord")

Handler = Callable[[Exchange, Any], Coroutine[Any, Any, Any]]


class Connection:
    """A session that runs.

    `handler(exchange, connection)` answers a request: it returns a result or raises `ProtocolError`, and nothing else.
    `on_notification(event)` gets what the session does not take itself, in order; it may be async.
    """

    def __init__(
        self,
        session: Session,
        transport: Transport,
        handler: Handler,
        *,
        on_notification: NotificationCallback | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.session = session
        self.transport = transport
        self.limits = limits
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self.ended: asyncio.Event = asyncio.Event()
        self._handler = handler
        self._told = None if on_notification is None else Callback(on_notification, limits.notices)
        self._asking = Asking(session, transport, limits)
        self._opening = Opening(session, transport, limits)
        self._reports = Reports(session, transport)
        self._reading = Reading(session, transport, limits, self._serve, self._reactions(), self._end)

    @property
    def stats(self) -> Stats:
        """Counters of this connection."""
        return self.session.stats

    @property
    def revision(self) -> str:
        """The revision agreed on, or an empty string before that."""
        return self.session.rules.revision

    @property
    def ready(self) -> asyncio.Event:
        """Set when we may ask: on a server when the client has said `notifications/initialized`, and after the end."""
        return self._asking.ready

    # --- lifetime ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the transport and begin to read. Raises `ConnectError`."""
        await self.transport.open()
        self._reading.read_on()

    async def close(self) -> None:
        """End everything: the handlers, the requests in flight, the transport. From any task, any number of times.

        Handlers are cancelled, and have half of `Limits.close_seconds` to clean up.
        """
        self._reading.closing = True
        self._fail_all(NotConnected("the connection was closed"))
        try:
            await self._reading.end(self.limits.close_seconds / 2)
            if self._told is not None:
                await self._told.finish(self.limits.close_seconds / 2)
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
            self.end_listen(exchange, "the server is shutting down")
        pending = [exchange.driver for exchange in self.session.incoming.values() if exchange.driver is not None]
        if pending:
            await asyncio.wait(pending, timeout=seconds)
        self.transport.flush()
        return not self.session.incoming

    async def open_client(self, *, handshake: bool = False) -> str:
        """Open as a client; the revision agreed on. Raises `ConnectError` or `ConnectionLost`."""
        return await self._opening.open(handshake=handshake)

    def _end(self, lost: ConnectionLost) -> None:
        """The peer is gone: whatever waits for it fails now."""
        self._fail_all(lost)
        self.ended.set()

    def _fail_all(self, error: AccordError) -> None:
        self._opening.fail(error)
        self._asking.fail_all(error)

    # --- serving -----------------------------------------------------------------------------------------------

    async def _serve(self, exchange: Exchange) -> None:
        """Answer one request; `exchange.driver` is the task that does."""
        session, send = self.session, self.transport.send
        try:
            message = session.respond(exchange, await self._handler(exchange, self))
        except ProtocolError as error:
            message = session.fail(exchange, error)
        except asyncio.CancelledError:
            if self._reading.closing or exchange.stage != "active":
                raise
            message = session.fail(
                exchange, InternalError(f"{exchange.method.name}: the handler cancelled its own task")
            )
        if exchange.held is not None and (held := session.held_report(exchange)) is not None:
            send(held)
        if message is not None:
            send(message)
            self._reading.owed += len(message)

    def report(self, exchange: Exchange, progress: float, total: float | None, message: str | None) -> None:
        """Tell the peer how far its request is, if it asked to be told. From any thread."""
        self._reports.report(exchange, progress, total, message)

    def end_listen(self, exchange: Exchange, reason: str | None = None) -> None:
        """End a subscription of the peer from our side, and cancel the handler that serves it."""
        messages = self.session.end_listen(exchange, reason)
        for message in messages:
            self.transport.send(message)
        if messages and exchange.driver is not asyncio.current_task():
            exchange.driver.cancel()

    # --- telling and asking ------------------------------------------------------------------------------------

    def notify(
        self, name: str, params: Any = None, *, meta: Mapping[str, Any] | None = None, rules: Rules | None = None
    ) -> None:
        """Send a notification, by the rules of a request or of the connection; `meta` goes into its `_meta`. From any
        thread. Raises `NotSupported`, and on a server `MissingClientCapability`.
        """
        message = self.session.notify(name, params, meta=meta, rules=rules)
        if threading.get_ident() == self._thread:
            self.transport.send(message)
        else:
            self._loop.call_soon_threadsafe(self.transport.send, message)

    def send(self, message: bytes | None) -> None:
        """Queue bytes that the session gave, if it gave any."""
        if message is not None:
            self.transport.send(message)

    def ask(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        needs: str | None = None,
        on_progress: ProgressCallback | None = None,
        on_notification: NotificationCallback | None = None,
        timeout: float | None = None,
        total_timeout: float | None = None,
    ) -> Coroutine[Any, Any, Raw]:
        """Send a request; the raw result.

        `timeout` (seconds) counts from the last sign of life, progress included; `total_timeout` from the start.
        `needs` is the capability that the peer must have declared, where that is more than the method says.
        Callbacks, plain or async, are called in order, and have finished when this returns: `on_progress` with the
        reports, `on_notification` with the notifications of a subscription. A server that asks before the client is
        ready waits for that. When the server ends a subscription the result may be empty.

        Raises `ProtocolError` for the peer's error, `RequestTimeout`, `ConnectionLost`, `NotSupported`,
        `NotConnected`, and on a server `MissingClientCapability`. Cancelling the await cancels the request.
        """
        return self._asking.ask(
            name,
            params,
            meta=meta,
            needs=needs,
            on_progress=on_progress,
            on_notification=on_notification,
            timeout=timeout,
            total_timeout=total_timeout,
        )

    def answering(self) -> AbstractContextManager[None]:
        """While we answer a question of the peer, what we have asked it waits for us: that time does not count."""
        return self._asking.answering()

    # --- what the session says ---------------------------------------------------------------------------------

    def _reactions(self) -> dict[type, Callable[[Any], None]]:
        return {
            events.ResultReceived: self._asking.on_result,
            events.ErrorReceived: self._asking.on_error,
            events.ProgressReceived: self._asking.on_progress,
            events.ListenEnded: self._asking.on_listen_ended,
            events.NotificationReceived: self._on_told,
            events.CancelReceived: self._on_cancel,
            events.Reply: self._on_reply,
            events.Opened: self._on_opened,
            events.Ready: self._on_ready,
            events.OpeningFailed: self._opening.on_failed,
            events.Ignored: self._on_ignored,
        }

    def _on_cancel(self, event: events.CancelReceived) -> None:
        log.debug("%s was cancelled by the peer: %s", event.exchange.method.name, event.reason or "no reason given")
        self.send(event.reply)
        task = event.exchange.driver
        if task is not None:
            task.cancel()

    def _on_reply(self, event: events.Reply) -> None:
        self.transport.send(event.message)
        self._reading.owed += len(event.message)

    def _on_opened(self, event: events.Opened) -> None:
        if self.session.role == "client":
            self.ready.set()
        self._opening.on_opened(event)

    def _on_ready(self, event: events.Ready) -> None:
        self.ready.set()

    def _on_told(self, event: events.NotificationReceived) -> None:
        if self._told is not None:
            self._told.call(event)
        if event.subscription is not None:
            self._asking.on_told(event)

    def _on_ignored(self, event: events.Ignored) -> None:
        if event.first:
            log.warning("accord: %s: dropped a message (%s) %s", self.transport.name, event.kind, event.detail)
