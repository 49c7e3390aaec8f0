"""Requests of this side, from their sending to their end, with their notifications and timeouts.

A request ends once: by its response, a timeout, the end of the connection, or the cancellation of the caller; then the
peer is notified, and callbacks have finished before the await returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import Raw, UnsetType

from accord.errors import AccordError, RequestTimeout, copy_error
from accord.limits import Limits
from accord.session import events
from accord.session.pending_request import PendingRequest
from accord.session.session import Session
from accord.session.states import Phase
from accord.transport.base import MessageSink, sends_now
from accord.transport.callbacks import Callback

ProgressCallback = Callable[[float, float | None, str | None], Any]
NotificationCallback = Callable[[events.NotificationReceived], Any]


def size_of(event: events.NotificationReceived) -> int:
    """Return the size of the params of a notification, in bytes."""
    return 0 if isinstance(event.params, UnsetType) else len(event.params)


class ResponseWaiter(msgspec.Struct, eq=False):
    """A request of this side in flight: its future, its callbacks and its timer."""

    future: asyncio.Future[Raw]
    params: Any
    """The params of the request; an error names the tool, prompt or resource in them."""
    on_progress: Callback | None
    on_notification: Callback | None
    of: PendingRequest | None
    """The peer's request to which it belongs."""
    timer: asyncio.TimerHandle | None = None
    idle: float | None = None
    total: float | None = None
    deadline: float | None = None
    pauses: int = 0
    """Number of peer's requests that are being answered; meanwhile there is no timer."""
    paused_at: float = 0
    pauses_begun: int = 0
    pauses_most: int = 0
    """The limit on `pauses_begun`; beyond it, requests of the peer no longer stop or restart the timer."""

    def callbacks(self) -> Iterator[Callback]:
        """Return the callbacks of the request."""
        return filter(None, (self.on_progress, self.on_notification))


class RequestSender:
    """The requests of this side on one connection."""

    def __init__(self, session: Session, sink: MessageSink, limits: Limits) -> None:
        self._session = session
        self._sink = sink
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._sent = 0  # bytes of requests on `sink` since the peer last read all of them
        self._drain_lock = asyncio.Lock()
        self.ready: asyncio.Event = asyncio.Event()
        """Whether this side may send requests; on a server, set after `notifications/initialized`, and after the
        end."""
        self.lost: AccordError | None = None
        """The error for all further requests, after the end of the connection."""

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
        """Send a request and return the raw result. See `SessionDriver.request`."""
        session = self._session
        if session.phase is Phase.INITIALIZING and session.role == "server":
            # "The server SHOULD NOT send requests other than pings and logging before [...] `initialized`" (Lifecycle)
            waits, reason = self.ready.wait(), "the client has not sent notifications/initialized"
            total_timeout = await self._wait_before_sending(timeout, total_timeout, waits, reason)
        if (room := self._backpressure(of)) is not None:
            reason = "the peer has not read earlier messages"
            total_timeout = await self._wait_before_sending(timeout, total_timeout, room, reason)
        if self.lost is not None:
            raise copy_error(self.lost)
        request, message = session.request(name, params, meta=meta, progress=on_progress is not None, needs=needs)
        if on_sent is not None:
            on_sent(request)
        progress = (
            None if on_progress is None else Callback(on_progress, self._limits.notices, self._limits.notice_bytes)
        )
        notification = (
            None
            if on_notification is None
            else Callback(on_notification, self._limits.notices, self._limits.notice_bytes)
        )
        waiting = request.driver = ResponseWaiter(self._loop.create_future(), params, progress, notification, of)
        sink = request.sink = self._sink_for(of)  # again: the request may have been answered meanwhile
        self._send(sink, message)
        if timeout is not None or total_timeout is not None:
            self._start_timer(request, waiting, timeout, total_timeout)
        try:
            return await waiting.future
        except asyncio.CancelledError:
            self._cancel(request, waiting, "the caller was cancelled")
            raise
        finally:
            if waiting.timer is not None:
                waiting.timer.cancel()
            for callback in waiting.callbacks():
                await callback.finish(self._limits.client.callback_seconds)

    def _send(self, sink: MessageSink, message: bytes) -> None:
        """Send a request; at once if no other is in flight, because nothing else is likely to share the write."""
        if sink is self._sink:
            self._sent += len(message)
        if len(self._session.outgoing) > 1:
            sink.send(message)
        elif sends_now(sink):
            sink.send_now(message)
        else:
            sink.send(message)
            sink.flush()

    def _sink_for(self, of: PendingRequest | None) -> MessageSink:
        """Return the sink of a request: that of the peer's request to which it belongs, while that is in flight."""
        sink: MessageSink | None = None if of is None else of.sink
        return self._sink if sink is None else sink

    async def _wait_before_sending(
        self, idle: float | None, total: float | None, waits: Coroutine[Any, Any, Any], reason: str
    ) -> float | None:
        """Await `waits` before a request is sent; return the rest of `total`. Raises `RequestTimeout`."""
        begun = self._loop.time()
        try:
            async with asyncio.timeout(min((each for each in (idle, total) if each is not None), default=None)):
                await waits
        except TimeoutError:
            raise RequestTimeout(f"{self._sink.name}: a request was not sent: {reason}") from None
        return None if total is None else total - (self._loop.time() - begun)

    def _backpressure(self, of: PendingRequest | None) -> Coroutine[Any, Any, None] | None:
        """Return what a request must await before it is sent, or None: the drain of its sink."""
        sink = self._sink_for(of)
        if sink is not self._sink:
            return sink.drain()
        return self._wait_drained() if self._sent >= self._limits.pending_bytes else None

    async def _wait_drained(self) -> None:
        """Wait until the peer has read the earlier requests; one task at a time."""
        async with self._drain_lock:
            if self._sent >= self._limits.pending_bytes:
                await self._sink.drain()
                self._sent = 0

    def _cancel(self, request: PendingRequest, waiting: ResponseWaiter, reason: str) -> None:
        message = self._session.cancel(request, reason)
        if message is not None:
            request.sink.send(message)
        for callback in waiting.callbacks():
            callback.cancel()

    # --- results and errors ------------------------------------------------------------------------------------

    def on_result(self, event: events.ResultReceived) -> None:
        """Set the result of the request."""
        waiting = event.pending.driver
        if waiting is not None and not waiting.future.done():
            waiting.future.set_result(event.result)

    def on_error(self, event: events.ErrorReceived) -> None:
        """Set the error of the request."""
        self._settle(event.pending, event.error)

    def on_subscription_ended(self, event: events.SubscriptionEnded) -> None:
        """End the subscription that the server has ended, with an empty result."""
        waiting = event.pending.driver
        if not waiting.future.done():
            waiting.future.set_result(Raw(b"{}"))

    def fail_all(self, error: AccordError) -> None:
        """Close the session: each pending request gets an exception of its own, and so does each further request."""
        self.lost = error
        self.ready.set()
        for request in self._session.close():
            self._settle(request, copy_error(error))

    def restart(self, error: AccordError) -> None:
        """Fail all pending requests, and further ones until the client is ready again: the client repeats the
        handshake."""
        self.lost = error
        self.ready.clear()
        for request in list(self._session.outgoing.values()):
            self._session.outgoing_requests.abandon(request.id)
            if request.end("lose"):
                self._settle(request, copy_error(error))

    def on_ready(self) -> None:
        """Allow requests to the client."""
        self.lost = None
        self.ready.set()

    def _settle(self, request: PendingRequest, error: Exception) -> None:
        waiting = request.driver
        if isinstance(waiting, ResponseWaiter) and not waiting.future.done():
            waiting.future.set_exception(error)

    # --- progress and notifications ----------------------------------------------------------------------------

    def on_progress(self, event: events.ProgressReceived) -> None:
        """Call the progress callback, and restart the timer."""
        waiting = event.pending.driver
        if not isinstance(waiting, ResponseWaiter):
            return
        if waiting.timer is not None and waiting.idle is not None:
            self._restart_timer(event.pending, waiting)
        if waiting.on_progress is not None:
            size = len(event.message or "")
            waiting.on_progress.call(event.progress, event.total, event.message, size=size)

    def on_notification(self, event: events.NotificationReceived) -> None:
        """Call the callback of the subscription to which a notification belongs."""
        request = self._session.outgoing.get(event.subscription)  # type: ignore[arg-type]
        if (
            request is not None and request.driver.on_notification is not None
        ):  # None if an earlier callback has ended it
            request.driver.on_notification.call(event, size=size_of(event))

    # --- timeouts ----------------------------------------------------------------------------------------------

    def _start_timer(
        self, request: PendingRequest, waiting: ResponseWaiter, idle: float | None, total: float | None
    ) -> None:
        now = self._loop.time()
        waiting.idle, waiting.total = idle, total
        waiting.deadline = None if total is None else now + total
        self._restart_timer(request, waiting)

    def _restart_timer(self, request: PendingRequest, waiting: ResponseWaiter) -> None:
        """Restart the timer after progress, at most until the total deadline."""
        if waiting.timer is not None:
            waiting.timer.cancel()
        ends = [at for at in (waiting.deadline, waiting.idle and self._loop.time() + waiting.idle) if at is not None]
        waiting.timer = self._loop.call_at(min(ends), self._time_out, request, waiting)

    def _time_out(self, request: PendingRequest, waiting: ResponseWaiter) -> None:
        if waiting.idle is None or (waiting.deadline is not None and self._loop.time() >= waiting.deadline):
            reason, option = f"no answer within {waiting.total:.3g} s in total", "total_timeout"
        else:
            reason, option = f"no answer or progress for {waiting.idle:g} s", "timeout"
        self._cancel(request, waiting, reason)
        hint = f"; if it may take longer, raise {option}=" if self._session.role == "client" else ""
        self._settle(
            request, RequestTimeout(f"{_describe_request(request, waiting)} to {self._sink.name}: {reason}{hint}")
        )

    @contextmanager
    def pause_timers(self) -> Iterator[None]:
        """Suspend the timers of pending requests while a request of the peer is answered: the peer may wait for that
        answer, as often as `ClientLimits.rounds` allows. Which request the peer's belongs to is unknown: each may have
        been meant for any of the requests in flight."""
        timed = [
            (request, waiting)
            for request in self._session.outgoing.values()
            if isinstance(waiting := request.driver, ResponseWaiter)
            and (waiting.idle, waiting.deadline) != (None, None)
        ]
        most = self._limits.client.rounds * len(timed)
        timed = [each for each in timed if self._pause_timer(each[1], most)]
        try:
            yield
        finally:
            for request, waiting in timed:
                self._resume_timer(request, waiting)

    def _pause_timer(self, waiting: ResponseWaiter, most: int) -> bool:
        """Stop the timer and return True, unless it has been stopped too often. `most` rises with the requests in
        flight, and does not fall when one of them ends."""
        waiting.pauses_most = max(waiting.pauses_most, most)
        if waiting.pauses_begun >= waiting.pauses_most:
            return False
        waiting.pauses_begun += 1
        waiting.pauses += 1
        if waiting.timer is not None:
            waiting.timer.cancel()
            waiting.timer, waiting.paused_at = None, self._loop.time()
        return True

    def _resume_timer(self, request: PendingRequest, waiting: ResponseWaiter) -> None:
        waiting.pauses -= 1
        if waiting.pauses or waiting.future.done():
            return
        if waiting.deadline is not None:
            waiting.deadline += self._loop.time() - waiting.paused_at
        self._restart_timer(request, waiting)


def _describe_request(request: PendingRequest, waiting: ResponseWaiter) -> str:
    """Return the method, and the tool, prompt or resource of the request: "tools/call 'forecast'"."""
    method = request.method
    name = getattr(waiting.params, method.named_by, None) if method.named_by else None
    return method.name if name is None else f"{method.name} {name!r:.200}"
