"""The driver of one session: it answers the peer's requests, and sends requests and notifications.

No rule of the protocol is here, and no reading: a `Connection` reads messages from a transport, over HTTP they arrive
one by one. Messages go to the common `sink`, or to the sink of the request to which they belong, if it has one.

Progress notifications are sent from any thread, and within the session's rate limit.
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
    """The progress notifications of one connection. A held one is sent when the rate allows it, or before the
    response."""

    def __init__(self, session: Session, sink: MessageSink) -> None:
        self._session = session
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._waiting: set[PendingRequest] = set()  # requests with a held notification and a timer

    def report(self, request: PendingRequest, progress: float, total: float | None, message: str | None) -> None:
        """See `Connection.report`."""
        if threading.get_ident() == self._thread:
            self._report(request, progress, total, message)
        else:
            self._loop.call_soon_threadsafe(self._report, request, progress, total, message)

    def _report(self, request: PendingRequest, progress: float, total: float | None, message: str | None) -> None:
        self._send(request, self._session.report(request, progress, total, message, self._loop.time()))

    def _release(self, request: PendingRequest) -> None:
        self._waiting.discard(request)
        self._send(request, self._session.progress.release_held(request, self._loop.time()))

    def _send(self, request: PendingRequest, message: bytes | None) -> None:
        if message is not None:
            (request.sink or self._sink).send(message)
        if request.held_report is None or request in self._waiting:
            return
        wait = self._session.progress.delay(request, self._loop.time())
        if isfinite(wait):
            self._waiting.add(request)
            self._loop.call_later(wait, self._release, request)


log: logging.Logger = logging.getLogger("accord")

Handler = Callable[[PendingRequest, Any], Coroutine[Any, Any, Any]]


class SessionDriver:
    """A session with the sink for its messages.

    `handler(request, driver)` answers a request: it returns a result or raises `ProtocolError`, and nothing else. Its
    second argument is `handler_argument` once that is set.
    `on_notification(event)` gets the notifications that the session does not process, in order; it may be async.
    """

    def __init__(
        self,
        session: Session,
        sink: MessageSink,
        handler: Handler,
        *,
        on_notification: NotificationCallback | None = None,
        limits: Limits = DEFAULT_LIMITS,
        on_unsent: Callable[[Any, int], None] | None = None,
    ) -> None:
        self.session: Session = session
        self.sink: MessageSink = sink
        self.limits: Limits = limits
        self.on_unsent: Callable[[Any, int], None] | None = on_unsent
        """Called with the unsent bytes of an event stream whose client reads too slowly (HTTP)."""
        self.closing: bool = False
        """Whether this side closes the connection: then its end is not a loss."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._handler = handler
        self.handler_argument: Any = self
        """The second argument of the handler."""
        self._notification_callback = (
            None if on_notification is None else Callback(on_notification, limits.notices, limits.notice_bytes)
        )
        if session.role == "client":
            session.outgoing_requests.peer_name = sink.name
        self._request_sender = RequestSender(session, sink, limits)
        self._progress_reporter = ProgressReporter(session, sink)
        self.event_handlers: dict[type, Callable[[Any], None]] = self._make_event_handlers()
        """The handlers of all events except requests."""

    @property
    def stats(self) -> Stats:
        """Return the counters of this session."""
        return self.session.stats

    @property
    def revision(self) -> str:
        """Return the agreed revision, or an empty string before the handshake."""
        return self.session.rules.revision

    @property
    def ready(self) -> asyncio.Event:
        """Return the event that is set when this side may send requests: on a server after `notifications/initialized`,
        and after the end."""
        return self._request_sender.ready

    def fail_all(self, error: AccordError) -> None:
        """Fail all pending requests at the end of the connection."""
        self._request_sender.fail_all(error)

    async def restart(self, initialize: PendingRequest) -> None:
        """End the requests of the previous handshake when the client sends another `initialize`.

        The requests of this side fail at once. Those of the client have `Limits.grace_seconds`; then they are answered
        with an error, and cancelled. Requests that carry their revision belong to no handshake, and go on.
        """
        reason = "the client has sent initialize again, which begins a new session"
        self._request_sender.restart(NotConnected(reason))
        own = initialize.method.name
        before = [each for each in self.session.incoming.values() if each.rules.handshake and each.method.name != own]
        if tasks := [each.driver for each in before if each.driver is not None]:
            await asyncio.wait(tasks, timeout=self.limits.grace_seconds)
        self.end_requests(before, reason)

    def end_requests(self, requests: Iterable[PendingRequest], reason: str) -> None:
        """Answer the peer's requests that are still in flight with an error, and cancel their handlers."""
        for request in requests:
            if request.stage != "active":
                continue
            sink, task = request.sink or self.sink, request.driver
            if (message := self.session.fail(request, InternalError(reason))) is not None:  # otherwise its batch waits
                sink.send(message)
            if task is not None:
                task.cancel()

    # --- serving -----------------------------------------------------------------------------------------------

    async def serve(self, request: PendingRequest) -> bytes | None:
        """Serve one request: return the bytes of its response, or None if there is nothing to send.

        The serving task is `request.driver`. Raises CancelledError if the request was cancelled, or the connection
        closes.
        """
        try:
            message = self.session.incoming_requests.respond(
                request, await self._handler(request, self.handler_argument)
            )
        except ProtocolError as error:
            message = self.session.fail(request, error)
        except asyncio.CancelledError:
            if self.closing or request.stage != "active":
                raise
            message = self.session.fail(request, InternalError(f"{request.method.name}: {_cancellation_reason()}"))
        finally:
            if request.held is not None:
                request.held.close()
        if request.held_report is not None and (held := self.session.pop_held_report(request)) is not None:
            (request.sink or self.sink).send(held)
        return message

    def report(self, request: PendingRequest, progress: float, total: float | None, message: str | None) -> None:
        """Send progress of the peer's request, if the peer asked for it. From any thread."""
        self._progress_reporter.report(request, progress, total, message)

    # --- notifications and requests ----------------------------------------------------------------------------

    def notify(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        rules: Rules | None = None,
        of: PendingRequest | None = None,
    ) -> None:
        """Send a notification, under the rules of a request or of the session; `meta` goes into its `_meta`. `of` is
        the peer's request to which it belongs. From any thread. Raises `NotSupported`, and on a server
        `MissingClientCapability`."""
        if of is not None and of.message_meta is not None:
            meta = {**(meta or {}), **of.message_meta}
        message = self.session.notify(name, params, meta=meta, rules=rules)
        self._on_loop(self._send, of, message)

    def _send(self, of: PendingRequest | None, message: bytes) -> None:
        (self.sink if of is None or of.sink is None else of.sink).send(message)

    def close_stream(self, of: PendingRequest, retry: int | None) -> None:
        """Close the stream of a request, if the client can resume it. From any thread."""
        self._on_loop(self._close_stream, of, retry)

    def _close_stream(self, of: PendingRequest, retry: int | None) -> None:
        if isinstance(of.sink, ResumableSink) and of.rules.primes_streams:
            of.sink.close_stream(retry)

    def _on_loop(self, function: Callable[..., None], of: PendingRequest | None, argument: Any) -> None:
        """Call a function in the thread of the event loop, which also answers the request."""
        if threading.get_ident() == self._thread:
            function(of, argument)
        else:
            self._loop.call_soon_threadsafe(function, of, argument)

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
        """Send a request and return the raw result.

        `timeout` (seconds) counts from the last sign of activity, progress included; `total_timeout` from the start.
        `needs` is the capability that the peer must have declared, if the method's own is not enough. `of` is the
        peer's request to which it belongs. `on_sent` is called when it has its id. Callbacks, plain or async, are
        called in order, and have finished when this returns: `on_progress` with progress notifications,
        `on_notification` with the notifications of a subscription. On a server, a request waits until the client is
        ready. When the server ends a subscription the result may be empty.

        Raises `ProtocolError` for the peer's error, `RequestTimeout`, `ConnectionLost`, `NotSupported`, `NotConnected`,
        and on a server `MissingClientCapability`. Cancelling the await cancels the request.
        """
        if of is not None and of.message_meta is not None:
            meta = {**(meta or {}), **of.message_meta}
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
        """Suspend the timers of pending requests while a request of the peer is answered: the peer may wait for that
        answer."""
        return self._request_sender.pause_timers()

    async def finish_callbacks(self, seconds: float) -> None:
        """Wait for unfinished `on_notification` calls, at most `seconds`; then cancel them."""
        if self._notification_callback is not None:
            await self._notification_callback.finish(seconds)

    # --- events of the session ---------------------------------------------------------------------------------

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
        reason = log_line(event.reason or "no reason given")
        log.debug("%s was cancelled by the peer: %s", event.pending.method.name, reason)
        if event.reply is not None:
            (event.pending.sink or self.sink).send(event.reply)
        task = event.pending.driver
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
    if task is not None and task.cancelling():  # an ASGI server does so at its end
        return "whoever runs this server has cancelled it"
    return "the handler cancelled its own task"
