"""Asking: a request of ours from its sending to its end, with what is told meanwhile and the time it may take.

A request ends once: by its answer, a timeout, the end of the connection, or because the one who awaits it is
cancelled; then the peer is told, and callbacks have finished before the await returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec import Raw, UnsetType

from accord.errors import AccordError, RequestTimeout, copy_error
from accord.limits import Limits
from accord.session import events
from accord.session.pending_request import PendingRequest
from accord.session.session import Session
from accord.session.states import Phase
from accord.transport.base import MessageSink
from accord.transport.callbacks import Callback

ProgressCallback = Callable[[float, float | None, str | None], Any]
NotificationCallback = Callable[[events.NotificationReceived], Any]


def size_of(event: events.NotificationReceived) -> int:
    """The bytes of the params of a notification."""
    return 0 if isinstance(event.params, UnsetType) else len(event.params)


class ResponseWaiter:
    """A request of ours in flight: its future, its callbacks and its timer."""

    __slots__ = (
        "deadline",
        "future",
        "idle",
        "of",
        "on_notification",
        "on_progress",
        "params",
        "paused_at",
        "pauses",
        "timer",
        "total",
    )

    def __init__(
        self,
        future: asyncio.Future[Raw],
        params: Any,
        progress: Callback | None,
        told: Callback | None,
        of: PendingRequest | None,
    ) -> None:
        self.future: asyncio.Future[Raw] = future
        self.params: Any = params
        """What was sent; an error names the tool, prompt or resource in it."""
        self.of: PendingRequest | None = of
        """The request of the peer that it belongs to."""
        self.on_progress: Callback | None = progress
        self.on_notification: Callback | None = told
        self.timer: asyncio.TimerHandle | None = None
        self.idle: float | None = None
        self.total: float | None = None
        self.deadline: float | None = None
        self.pauses: int = 0
        """Questions of the peer that are being answered; meanwhile there is no timer."""
        self.paused_at: float = 0

    def callbacks(self) -> Iterator[Callback]:
        """Those that there are."""
        return (callback for callback in (self.on_progress, self.on_notification) if callback is not None)


class RequestSender:
    """The requests that one connection waits for."""

    def __init__(self, session: Session, way: MessageSink, limits: Limits) -> None:
        self._session = session
        self._sink = way
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._sent = 0  # bytes of requests on `way` since the peer was last known to take them
        self._drain_lock = asyncio.Lock()
        self.ready: asyncio.Event = asyncio.Event()
        """Whether we may ask; on a server that is once the client has said so, and after the end."""
        self.lost: AccordError | None = None
        """Why nobody answers any more."""

    async def request(
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
    ) -> Raw:
        """Send a request; the raw result. As `SessionDriver.request`."""
        session = self._session
        if session.phase is Phase.INITIALIZING and session.role == "server":
            # "The server SHOULD NOT send requests other than pings and logging before [...] `initialized`" (Lifecycle)
            waits, why = self.ready.wait(), "for want of notifications/initialized"
            total_timeout = await self._wait_before_sending(timeout, total_timeout, waits, why)
        if (room := self._backpressure(of)) is not None:
            why = "as what was sent before is not taken yet"
            total_timeout = await self._wait_before_sending(timeout, total_timeout, room, why)
        if self.lost is not None:
            raise copy_error(self.lost)
        exchange, message = session.request(name, params, meta=meta, progress=on_progress is not None, needs=needs)
        if on_sent is not None:
            on_sent(exchange)
        progress = (
            None if on_progress is None else Callback(on_progress, self._limits.notices, self._limits.notice_bytes)
        )
        told = (
            None
            if on_notification is None
            else Callback(on_notification, self._limits.notices, self._limits.notice_bytes)
        )
        waiting = exchange.driver = ResponseWaiter(self._loop.create_future(), params, progress, told, of)
        way = exchange.sink = self._sink_for(of)  # again: the request may have been answered meanwhile
        way.send(message)
        if way is self._sink:
            self._sent += len(message)
        if len(session.outgoing) == 1:  # nothing else is likely to share the write
            way.flush()
        if timeout is not None or total_timeout is not None:
            self._start_timer(exchange, waiting, timeout, total_timeout)
        try:
            return await waiting.future
        except asyncio.CancelledError:
            self._cancel(exchange, waiting, "the caller was cancelled")
            raise
        finally:
            if waiting.timer is not None:
                waiting.timer.cancel()
            for callback in waiting.callbacks():
                await callback.finish(self._limits.callback_seconds)

    def _sink_for(self, of: PendingRequest | None) -> MessageSink:
        """Where a request goes that belongs to one of the peer's, as long as that is not answered."""
        way: MessageSink | None = None if of is None else of.sink
        return self._sink if way is None else way

    async def _wait_before_sending(
        self, idle: float | None, total: float | None, waits: Coroutine[Any, Any, Any], why: str
    ) -> float | None:
        """Wait for something before a request is sent; what is left of `total`. Raises `RequestTimeout`."""
        begun = self._loop.time()
        try:
            async with asyncio.timeout(min((each for each in (idle, total) if each is not None), default=None)):
                await waits
        except TimeoutError:
            raise RequestTimeout(f"{self._sink.name}: a request was not sent, {why}") from None
        return None if total is None else total - (self._loop.time() - begun)

    def _backpressure(self, of: PendingRequest | None) -> Coroutine[Any, Any, None] | None:
        """Back-pressure: what a request waits for, if anything. On a stream of its own that is nobody else's."""
        way = self._sink_for(of)
        if way is not self._sink:
            return way.drain()
        return self._wait_drained() if self._sent >= self._limits.pending_bytes else None

    async def _wait_drained(self) -> None:
        """One after the other, when the peer has taken what was sent before."""
        async with self._drain_lock:
            if self._sent >= self._limits.pending_bytes:
                await self._sink.drain()
                self._sent = 0

    def _cancel(self, exchange: PendingRequest, waiting: ResponseWaiter, why: str) -> None:
        message = self._session.cancel(exchange, why)
        if message is not None:
            exchange.sink.send(message)
        for callback in waiting.callbacks():
            callback.cancel()

    # --- the end -----------------------------------------------------------------------------------------------

    def on_result(self, event: events.ResultReceived) -> None:
        """The answer."""
        waiting = event.exchange.driver
        if waiting is not None and not waiting.future.done():
            waiting.future.set_result(event.result)

    def on_error(self, event: events.ErrorReceived) -> None:
        """The answer is an error, or none."""
        self._settle(event.exchange, event.error)

    def on_subscription_ended(self, event: events.SubscriptionEnded) -> None:
        """The server has ended a subscription: as if by an empty result."""
        waiting = event.exchange.driver
        if not waiting.future.done():
            waiting.future.set_result(Raw(b"{}"))

    def fail_all(self, error: AccordError) -> None:
        """The connection is over: each request that waits gets an exception of its own, and so do those to come."""
        self.lost = error
        self.ready.set()
        for exchange in self._session.close():
            self._settle(exchange, copy_error(error))

    def restart(self, error: AccordError) -> None:
        """The client begins anew: whatever waits for it fails now, and what is asked until it is ready again."""
        self.lost = error
        self.ready.clear()
        for exchange in list(self._session.outgoing.values()):
            self._session.outgoing_requests.abandon(exchange.id)
            if exchange.end("lose"):
                self._settle(exchange, copy_error(error))

    def on_ready(self) -> None:
        """The client may be asked."""
        self.lost = None
        self.ready.set()

    def _settle(self, exchange: PendingRequest, error: Exception) -> None:
        waiting = exchange.driver
        if isinstance(waiting, ResponseWaiter) and not waiting.future.done():
            waiting.future.set_exception(error)

    # --- what is told meanwhile --------------------------------------------------------------------------------

    def on_progress(self, event: events.ProgressReceived) -> None:
        """The request is getting on: a sign of life."""
        waiting = event.exchange.driver
        if not isinstance(waiting, ResponseWaiter):
            return
        if waiting.timer is not None and waiting.idle is not None:
            self._restart_timer(event.exchange, waiting)
        if waiting.on_progress is not None:
            size = len(event.message or "")
            waiting.on_progress.call(event.progress, event.total, event.message, size=size)

    def on_notification(self, event: events.NotificationReceived) -> None:
        """A notification that belongs to a request of ours, a subscription."""
        exchange = self._session.outgoing.get(event.subscription)  # type: ignore[arg-type]
        if (
            exchange is not None and exchange.driver.on_notification is not None
        ):  # None when a callback before has ended it
            exchange.driver.on_notification.call(event, size=size_of(event))

    # --- time --------------------------------------------------------------------------------------------------

    def _start_timer(
        self, exchange: PendingRequest, waiting: ResponseWaiter, idle: float | None, total: float | None
    ) -> None:
        now = self._loop.time()
        waiting.idle, waiting.total = idle, total
        waiting.deadline = None if total is None else now + total
        self._restart_timer(exchange, waiting)

    def _restart_timer(self, exchange: PendingRequest, waiting: ResponseWaiter) -> None:
        """Start the timer again: after progress, up to the deadline that no progress moves."""
        if waiting.timer is not None:
            waiting.timer.cancel()
        ends = [at for at in (waiting.deadline, waiting.idle and self._loop.time() + waiting.idle) if at is not None]
        waiting.timer = self._loop.call_at(min(ends), self._time_out, exchange, waiting)

    def _time_out(self, exchange: PendingRequest, waiting: ResponseWaiter) -> None:
        if waiting.idle is None or (waiting.deadline is not None and self._loop.time() >= waiting.deadline):
            why, option = f"no answer within {waiting.total:.3g} s in total", "total_timeout"
        else:
            why, option = f"no answer or progress for {waiting.idle:g} s", "timeout"
        self._cancel(exchange, waiting, why)
        cure = f"; if it may take longer, raise {option}=" if self._session.role == "client" else ""
        self._settle(exchange, RequestTimeout(f"{_described(exchange, waiting)} to {self._sink.name}: {why}{cure}"))

    @contextmanager
    def pause_timers(self) -> Iterator[None]:
        """While we answer a question of the peer, what we have asked it waits for us: that time does not count."""
        timed = [
            (exchange, waiting)
            for exchange in self._session.outgoing.values()
            if isinstance(waiting := exchange.driver, ResponseWaiter)
            and (waiting.idle, waiting.deadline) != (None, None)
        ]
        for _, waiting in timed:
            self._pause_timer(waiting)
        try:
            yield
        finally:
            for exchange, waiting in timed:
                self._resume_timer(exchange, waiting)

    def _pause_timer(self, waiting: ResponseWaiter) -> None:
        waiting.pauses += 1
        if waiting.timer is not None:
            waiting.timer.cancel()
            waiting.timer, waiting.paused_at = None, self._loop.time()

    def _resume_timer(self, exchange: PendingRequest, waiting: ResponseWaiter) -> None:
        waiting.pauses -= 1
        if waiting.pauses or waiting.future.done():
            return
        if waiting.deadline is not None:
            waiting.deadline += self._loop.time() - waiting.paused_at
        self._restart_timer(exchange, waiting)


def _described(exchange: PendingRequest, waiting: ResponseWaiter) -> str:
    """The method, and the tool, prompt or resource that it names: "tools/call 'forecast'"."""
    method = exchange.method
    name = getattr(waiting.params, method.named_by, None) if method.named_by else None
    return method.name if name is None else f"{method.name} {name!r:.200}"
