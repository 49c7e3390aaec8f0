"""One session at work: requests of the peer are answered, ours are asked, and both sides tell each other things.

Nothing here knows a rule of the protocol, nor how messages come: a `Connection` reads them from a transport, over HTTP
they come one by one. They go where everything goes (`sink`), but what belongs to a request that has a way of its own
goes there.

Reports of progress on their way out: from any thread, and no more often than the session lets them go.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager
from math import isfinite
from typing import Any

from msgspec import Raw

from accord.errors import AccordError, InternalError, NotConnected, ProtocolError, log_line
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages.revision import Rules
from accord.session import events
from accord.session.pending_request import PendingRequest
from accord.session.session import Session
from accord.session.stats import Stats
from accord.transport.base import MessageSink, ResumableSink
from accord.transport.callbacks import Callback
from accord.transport.request_sender import NotificationCallback, ProgressCallback, RequestSender, size_of


class ProgressReporter:
    """The reports of one connection. One that is held goes out when the rate allows it, or before the answer."""

    def __init__(self, session: Session, way: MessageSink) -> None:
        self._session = session
        self._sink = way
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._waiting: set[PendingRequest] = set()  # whose report is held, with a timer

    def report(self, exchange: PendingRequest, progress: float, total: float | None, message: str | None) -> None:
        """As `Connection.report`."""
        if threading.get_ident() == self._thread:
            self._report(exchange, progress, total, message)
        else:
            self._loop.call_soon_threadsafe(self._report, exchange, progress, total, message)

    def _report(self, exchange: PendingRequest, progress: float, total: float | None, message: str | None) -> None:
        self._send(exchange, self._session.report(exchange, progress, total, message, self._loop.time()))

    def _release(self, exchange: PendingRequest) -> None:
        self._waiting.discard(exchange)
        self._send(exchange, self._session.progress.release_held(exchange, self._loop.time()))

    def _send(self, exchange: PendingRequest, message: bytes | None) -> None:
        if message is not None:
            (exchange.sink or self._sink).send(message)
        if exchange.held_report is None or exchange in self._waiting:
            return
        wait = self._session.progress.delay(exchange, self._loop.time())
        if isfinite(wait):
            self._waiting.add(exchange)
            self._loop.call_later(wait, self._release, exchange)


log: logging.Logger = logging.getLogger("accord")

Handler = Callable[[PendingRequest, Any], Coroutine[Any, Any, Any]]


class SessionDriver:
    """A session, and the way out.

    `handler(exchange, conversation)` answers a request: it returns a result or raises `ProtocolError`, and nothing
    else. `on_notification(event)` gets what the session does not take itself, in order; it may be async.
    """

    def __init__(
        self,
        session: Session,
        way: MessageSink,
        handler: Handler,
        *,
        on_notification: NotificationCallback | None = None,
        limits: Limits = DEFAULT_LIMITS,
        on_unsent: Callable[[Any, int], None] | None = None,
    ) -> None:
        self.session: Session = session
        self.sink: MessageSink = way
        self.limits: Limits = limits
        self.on_unsent: Callable[[Any, int], None] | None = on_unsent
        """What its streams of events tell of clients that take too little of them (HTTP)."""
        self.closing: bool = False
        """Whether the end is wanted: then it is no loss."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._handler = handler
        self._notification_callback = (
            None if on_notification is None else Callback(on_notification, limits.notices, limits.notice_bytes)
        )
        self._request_sender = RequestSender(session, way, limits)
        self._progress_reporter = ProgressReporter(session, way)
        self.event_handlers: dict[type, Callable[[Any], None]] = self._make_event_handlers()
        """What to do for each event that is no request."""

    @property
    def stats(self) -> Stats:
        """Counters of this conversation."""
        return self.session.stats

    @property
    def revision(self) -> str:
        """The revision agreed on, or an empty string before that."""
        return self.session.rules.revision

    @property
    def ready(self) -> asyncio.Event:
        """Set when we may ask: on a server when the client has said `notifications/initialized`, and after the end."""
        return self._request_sender.ready

    def fail_all(self, error: AccordError) -> None:
        """It is over: whatever waits for the peer fails now."""
        self._request_sender.fail_all(error)

    async def restart(self, initialize: PendingRequest) -> None:
        """End what belongs to the handshake before, when the client sends another `initialize`.

        What we have asked it fails at once. Its requests have `Limits.grace_seconds` to be answered; then they are
        answered with an error, and cancelled. Requests that name their revision belong to no handshake, and go on.
        """
        why = "the client has sent initialize again, which begins a new session"
        self._request_sender.restart(NotConnected(why))
        own = initialize.method.name
        before = [each for each in self.session.incoming.values() if each.rules.handshake and each.method.name != own]
        if tasks := [each.driver for each in before if each.driver is not None]:
            await asyncio.wait(tasks, timeout=self.limits.grace_seconds)
        self.end_requests(before, why)

    def end_requests(self, exchanges: Iterable[PendingRequest], why: str) -> None:
        """Answer requests of the peer with an error, unless they are answered by now, and cancel their handlers."""
        for exchange in exchanges:
            if exchange.stage != "active":
                continue
            way, task = exchange.sink or self.sink, exchange.driver
            if (message := self.session.fail(exchange, InternalError(why))) is not None:  # else its batch waits
                way.send(message)
            if task is not None:
                task.cancel()

    # --- serving -----------------------------------------------------------------------------------------------

    async def serve(self, exchange: PendingRequest) -> bytes | None:
        """Serve one request: the bytes of its answer, or None when nobody waits for it any more.

        The task that does so is `exchange.driver`. Raises CancelledError when the request was cancelled, or we close.
        """
        try:
            message = self.session.incoming_requests.respond(exchange, await self._handler(exchange, self))
        except ProtocolError as error:
            message = self.session.fail(exchange, error)
        except asyncio.CancelledError:
            if self.closing or exchange.stage != "active":
                raise
            message = self.session.fail(exchange, InternalError(f"{exchange.method.name}: {_cancellation_reason()}"))
        finally:
            if exchange.held is not None:
                exchange.held.close()
        if exchange.held_report is not None and (held := self.session.pop_held_report(exchange)) is not None:
            (exchange.sink or self.sink).send(held)
        return message

    def report(self, exchange: PendingRequest, progress: float, total: float | None, message: str | None) -> None:
        """Tell the peer how far its request is, if it asked to be told. From any thread."""
        self._progress_reporter.report(exchange, progress, total, message)

    # --- telling and asking ------------------------------------------------------------------------------------

    def notify(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        rules: Rules | None = None,
        of: PendingRequest | None = None,
    ) -> None:
        """Send a notification, by the rules of a request or of the session; `meta` goes into its `_meta`. `of` is the
        request of the peer that it belongs to. From any thread. Raises `NotSupported`, and on a server
        `MissingClientCapability`.
        """
        message = self.session.notify(name, params, meta=meta, rules=rules)
        self._on_loop(self._send, of, message)

    def _send(self, of: PendingRequest | None, message: bytes) -> None:
        (self.sink if of is None or of.sink is None else of.sink).send(message)

    def close_stream(self, of: PendingRequest, retry: int | None) -> None:
        """Let go of the stream of a request, where that can be taken up again. From any thread."""
        self._on_loop(self._close_stream, of, retry)

    def _close_stream(self, of: PendingRequest, retry: int | None) -> None:
        if isinstance(of.sink, ResumableSink) and of.rules.primes_streams:
            of.sink.close_stream(retry)

    def _on_loop(self, do: Callable[..., None], of: PendingRequest | None, what: Any) -> None:
        """Do it in the thread of the loop, where nobody answers the request meanwhile."""
        if threading.get_ident() == self._thread:
            do(of, what)
        else:
            self._loop.call_soon_threadsafe(do, of, what)

    def request(
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
        of: PendingRequest | None = None,
        on_sent: Callable[[PendingRequest], None] | None = None,
    ) -> Coroutine[Any, Any, Raw]:
        """Send a request; the raw result.

        `timeout` (seconds) counts from the last sign of life, progress included; `total_timeout` from the start.
        `needs` is the capability that the peer must have declared, where that is more than the method says. `of` is
        the request of the peer that it belongs to. `on_sent` is called when it has its id.
        Callbacks, plain or async, are called in order, and have finished when this returns: `on_progress` with the
        reports, `on_notification` with the notifications of a subscription. A server that asks before the client is
        ready waits for that. When the server ends a subscription the result may be empty.

        Raises `ProtocolError` for the peer's error, `RequestTimeout`, `ConnectionLost`, `NotSupported`,
        `NotConnected`, and on a server `MissingClientCapability`. Cancelling the await cancels the request.
        """
        return self._request_sender.request(
            name,
            params,
            meta=meta,
            needs=needs,
            on_progress=on_progress,
            on_notification=on_notification,
            timeout=timeout,
            total_timeout=total_timeout,
            of=of,
            on_sent=on_sent,
        )

    def pause_timers(self) -> AbstractContextManager[None]:
        """While we answer a question of the peer, what we have asked it waits for us: that time does not count."""
        return self._request_sender.pause_timers()

    async def finish_callbacks(self, seconds: float) -> None:
        """Wait for what `on_notification` still does, at most so long; then it is cancelled."""
        if self._notification_callback is not None:
            await self._notification_callback.finish(seconds)

    # --- what the session says ---------------------------------------------------------------------------------

    def _make_event_handlers(self) -> dict[type, Callable[[Any], None]]:
        return {
            events.ResultReceived: self._request_sender.on_result,
            events.ErrorReceived: self._request_sender.on_error,
            events.ProgressReceived: self._request_sender.on_progress,
            events.SubscriptionEnded: self._request_sender.on_subscription_ended,
            events.NotificationReceived: self._on_notification,
            events.CancelReceived: self._on_cancel,
            events.InitializedReceived: self._on_ready,
            events.MessageIgnored: self._on_ignored,
        }

    def _on_cancel(self, event: events.CancelReceived) -> None:
        why = log_line(event.reason or "no reason given")
        log.debug("%s was cancelled by the peer: %s", event.exchange.method.name, why)
        if event.reply is not None:
            (event.exchange.sink or self.sink).send(event.reply)
        task = event.exchange.driver
        if task is not None:
            task.cancel()

    def _on_ready(self, event: events.InitializedReceived) -> None:
        self._request_sender.on_ready()

    def _on_notification(self, event: events.NotificationReceived) -> None:
        if self._notification_callback is not None:
            self._notification_callback.call(event, size=size_of(event))
        if event.subscription is not None:
            self._request_sender.on_notification(event)

    def _on_ignored(self, event: events.MessageIgnored) -> None:
        if event.first:
            log.warning("accord: %s: dropped a message (%s) %s", self.sink.name, event.kind, log_line(event.detail))


def _cancellation_reason() -> str:
    task = asyncio.current_task()
    if task is not None and task.cancelling():  # an ASGI server of other people's does so when it ends
        return "whoever runs this server has cancelled it"
    return "the handler cancelled its own task"
