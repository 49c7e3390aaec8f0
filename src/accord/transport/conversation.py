"""One session at work: requests of the peer are answered, ours are asked, and both sides tell each other things.

Nothing here knows a rule of the protocol, nor how messages come: a `Connection` reads them from a transport, over HTTP
they come one by one. They go where everything goes (`way`), but what belongs to a request that has a way of its own
goes there.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from msgspec import Raw

from accord.errors import AccordError, InternalError, NotConnected, ProtocolError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages.revision import Rules
from accord.session import events
from accord.session.exchange import Exchange
from accord.session.session import Session
from accord.session.stats import Stats
from accord.transport.asking import Asking, NotificationCallback, ProgressCallback, size_of
from accord.transport.base import Resumable, Way
from accord.transport.callbacks import Callback
from accord.transport.reports import Reports

log: logging.Logger = logging.getLogger("accord")

Handler = Callable[[Exchange, Any], Coroutine[Any, Any, Any]]


class Conversation:
    """A session, and the way out.

    `handler(exchange, conversation)` answers a request: it returns a result or raises `ProtocolError`, and nothing
    else. `on_notification(event)` gets what the session does not take itself, in order; it may be async.
    """

    def __init__(
        self,
        session: Session,
        way: Way,
        handler: Handler,
        *,
        on_notification: NotificationCallback | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.session: Session = session
        self.way: Way = way
        self.limits: Limits = limits
        self.closing: bool = False
        """Whether the end is wanted: then it is no loss."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._handler = handler
        self._told = None if on_notification is None else Callback(on_notification, limits.notices, limits.notice_bytes)
        self._asking = Asking(session, way, limits)
        self._reports = Reports(session, way)
        self.reactions: dict[type, Callable[[Any], None]] = self._reactions()
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
        return self._asking.ready

    def fail_all(self, error: AccordError) -> None:
        """It is over: whatever waits for the peer fails now."""
        self._asking.fail_all(error)

    async def restart(self, initialize: Exchange) -> None:
        """End what belongs to the handshake before, when the client sends another `initialize`.

        What we have asked it fails at once. Its requests have `Limits.grace_seconds` to be answered; then they are
        answered with an error, and cancelled. Requests that name their revision belong to no handshake, and go on.
        """
        why = "the client has sent initialize again, which begins a new session"
        self._asking.restart(NotConnected(why))
        own = initialize.method.name
        before = [each for each in self.session.incoming.values() if each.rules.handshake and each.method.name != own]
        if tasks := [each.driver for each in before if each.driver is not None]:
            await asyncio.wait(tasks, timeout=self.limits.grace_seconds)
        self.end_requests(before, why)

    def end_requests(self, exchanges: Iterable[Exchange], why: str) -> None:
        """Answer requests of the peer with an error, unless they are answered by now, and cancel their handlers."""
        for exchange in exchanges:
            if exchange.stage != "active":
                continue
            way, task = exchange.way or self.way, exchange.driver
            if (message := self.session.fail(exchange, InternalError(why))) is not None:  # else its batch waits
                way.send(message)
            if task is not None:
                task.cancel()

    # --- serving -----------------------------------------------------------------------------------------------

    async def answer(self, exchange: Exchange) -> bytes | None:
        """Serve one request: the bytes of its answer, or None when nobody waits for it any more.

        The task that does so is `exchange.driver`. Raises CancelledError when the request was cancelled, or we close.
        """
        try:
            message = self.session.served.respond(exchange, await self._handler(exchange, self))
        except ProtocolError as error:
            message = self.session.fail(exchange, error)
        except asyncio.CancelledError:
            if self.closing or exchange.stage != "active":
                raise
            message = self.session.fail(exchange, InternalError(f"{exchange.method.name}: {_why_cancelled()}"))
        if exchange.held is not None and (held := self.session.held_report(exchange)) is not None:
            (exchange.way or self.way).send(held)
        return message

    def report(self, exchange: Exchange, progress: float, total: float | None, message: str | None) -> None:
        """Tell the peer how far its request is, if it asked to be told. From any thread."""
        self._reports.report(exchange, progress, total, message)

    # --- telling and asking ------------------------------------------------------------------------------------

    def notify(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        rules: Rules | None = None,
        of: Exchange | None = None,
    ) -> None:
        """Send a notification, by the rules of a request or of the session; `meta` goes into its `_meta`. `of` is the
        request of the peer that it belongs to. From any thread. Raises `NotSupported`, and on a server
        `MissingClientCapability`.
        """
        message = self.session.notify(name, params, meta=meta, rules=rules)
        self._on_loop(self._send, of, message)

    def _send(self, of: Exchange | None, message: bytes) -> None:
        (self.way if of is None or of.way is None else of.way).send(message)

    def close_stream(self, of: Exchange, retry: int | None) -> None:
        """Let go of the stream of a request, where that can be taken up again. From any thread."""
        self._on_loop(self._close_stream, of, retry)

    def _close_stream(self, of: Exchange, retry: int | None) -> None:
        if isinstance(of.way, Resumable) and of.rules.primes_streams:
            of.way.close_stream(retry)

    def _on_loop(self, do: Callable[..., None], of: Exchange | None, what: Any) -> None:
        """Do it in the thread of the loop, where nobody answers the request meanwhile."""
        if threading.get_ident() == self._thread:
            do(of, what)
        else:
            self._loop.call_soon_threadsafe(do, of, what)

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
        of: Exchange | None = None,
        on_sent: Callable[[Exchange], None] | None = None,
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
        return self._asking.ask(
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

    def answering(self) -> AbstractContextManager[None]:
        """While we answer a question of the peer, what we have asked it waits for us: that time does not count."""
        return self._asking.answering()

    async def finish_telling(self, seconds: float) -> None:
        """Wait for what `on_notification` still does, at most so long; then it is cancelled."""
        if self._told is not None:
            await self._told.finish(seconds)

    # --- what the session says ---------------------------------------------------------------------------------

    def _reactions(self) -> dict[type, Callable[[Any], None]]:
        return {
            events.ResultReceived: self._asking.on_result,
            events.ErrorReceived: self._asking.on_error,
            events.ProgressReceived: self._asking.on_progress,
            events.ListenEnded: self._asking.on_listen_ended,
            events.NotificationReceived: self._on_told,
            events.CancelReceived: self._on_cancel,
            events.Ready: self._on_ready,
            events.Ignored: self._on_ignored,
        }

    def _on_cancel(self, event: events.CancelReceived) -> None:
        log.debug("%s was cancelled by the peer: %s", event.exchange.method.name, event.reason or "no reason given")
        if event.reply is not None:
            (event.exchange.way or self.way).send(event.reply)
        task = event.exchange.driver
        if task is not None:
            task.cancel()

    def _on_ready(self, event: events.Ready) -> None:
        self._asking.on_ready()

    def _on_told(self, event: events.NotificationReceived) -> None:
        if self._told is not None:
            self._told.call(event, size=size_of(event))
        if event.subscription is not None:
            self._asking.on_told(event)

    def _on_ignored(self, event: events.Ignored) -> None:
        if event.first:
            log.warning("accord: %s: dropped a message (%s) %s", self.way.name, event.kind, event.detail)


def _why_cancelled() -> str:
    task = asyncio.current_task()
    if task is not None and task.cancelling():  # an ASGI server of other people's does so when it ends
        return "whoever runs this server has cancelled it"
    return "the handler cancelled its own task"
