"""The driver: one session over one transport on asyncio, for both roles.

One task reads; it acts on each event of the session, and awaits the handler of a request itself until that waits
(`lead`). Nothing here knows a rule of the protocol. Lifetimes: the reading tasks belong to the connection, `open`
and `close` only start and end them, so both may be called from any task.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from msgspec import Raw

from accord.errors import (
    AccordError,
    ConnectError,
    ConnectionLost,
    InternalError,
    NotConnected,
    ProtocolError,
    RequestTimeout,
)
from accord.limits import DEFAULT_LIMITS, Limits
from accord.session import events
from accord.session.exchange import Exchange
from accord.session.session import Session
from accord.session.states import Phase
from accord.session.stats import Stats
from accord.transport.base import Transport, Unreadable
from accord.transport.lead import lead

log: logging.Logger = logging.getLogger("accord")

Handler = Callable[[Exchange, Any], Coroutine[Any, Any, Any]]
ProgressCallback = Callable[[float, float | None, str | None], Any]


_KNOCKS = {
    Phase.NEW: "anything",
    Phase.PROBING: "server/discover",
    Phase.SHAKING: "initialize",
    Phase.OPEN: "in time",
    Phase.CLOSED: "any more",
}


class Waiting:
    """A request of ours in flight: its future, its progress callback and its timer."""

    __slots__ = ("deadline", "future", "idle", "on_progress", "timer")

    def __init__(self, future: asyncio.Future[Raw], on_progress: ProgressCallback | None) -> None:
        self.future: asyncio.Future[Raw] = future
        self.on_progress: ProgressCallback | None = on_progress
        self.timer: asyncio.TimerHandle | None = None
        self.idle: float | None = None
        self.deadline: float | None = None


class Connection:
    """A session that runs.

    `handler(exchange, connection)` answers a request: it returns a result or raises `ProtocolError`, and nothing else.
    `on_notification(event)` gets what the session does not take itself.
    """

    def __init__(
        self,
        session: Session,
        transport: Transport,
        handler: Handler,
        *,
        on_notification: Callable[[events.NotificationReceived], None] | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.session = session
        self.transport = transport
        self.limits = limits
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self.opened: asyncio.Future[str] = self._loop.create_future()
        self.ended: asyncio.Event = asyncio.Event()
        self._handler = handler
        self._on_notification = on_notification
        self._inbox: deque[bytes | Unreadable] = deque()
        self._events: deque[events.Event] = deque()
        self._reader: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._lost: ConnectionLost | None = None
        self._closing = False
        self._owed = 0  # bytes sent in answer since the peer was last known to take them

    @property
    def stats(self) -> Stats:
        """Counters of this connection."""
        return self.session.stats

    @property
    def revision(self) -> str:
        """The revision agreed on, or an empty string before that."""
        return self.session.rules.revision

    # --- lifetime ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the transport and begin to read. Raises `ConnectError`."""
        await self.transport.open()
        self._read_on()

    async def close(self) -> None:
        """End everything: the handlers, the requests in flight, the transport. From any task, any number of times."""
        self._closing = True
        self._fail_all(NotConnected("the connection was closed"))
        for task in [self._reader, *self._tasks]:
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        self.transport.flush()
        await self.transport.close()
        self.ended.set()

    async def finish(self, seconds: float | None) -> bool:
        """Take no new requests and wait until those being served are answered, at most `seconds`. Whether all were."""
        self.session.draining = True
        pending = [exchange.driver for exchange in self.session.incoming.values() if exchange.driver is not None]
        if pending:
            await asyncio.wait(pending, timeout=seconds)
        self.transport.flush()
        return not self.session.incoming

    # --- reading -----------------------------------------------------------------------------------------------

    def _read_on(self) -> None:
        """Another task reads from here on; the one that did so far ends when its handler has ended.

        What was read already goes on at once, a task for each request: where one handler waits, others of the same
        kind are likely to, and a turn of the loop for each of them costs more than the tasks.
        """
        while self._owed < self.limits.pending_bytes and (event := self._next_event()) is not None:
            if type(event) is events.RequestReceived:
                task = event.exchange.driver = self._loop.create_task(self._serve(event.exchange))
                self._own(task)
            else:
                _REACT[type(event)](self, event)
        self._reader = self._loop.create_task(self._read())
        self._own(self._reader)

    def _own(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _next_event(self) -> events.Event | None:
        """What the next message of those at hand means; None when there is none left."""
        happened, inbox = self._events, self._inbox
        while not happened and inbox:
            message = inbox.popleft()
            if type(message) is bytes:
                happened.extend(self.session.receive(message))
            else:
                happened.append(self.session.unreadable(message.reason, message.head))  # type: ignore[union-attr]
        return happened.popleft() if happened else None

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            if task is self._reader and not self._closing:
                self._end(ConnectionLost("the task that reads was cancelled"))
        elif (exc := task.exception()) is not None:
            log.error("accord: a defect in the driver of %s", self.transport.name, exc_info=exc)
            self._end(ConnectionLost(f"the driver failed: {exc!r}"))

    async def _read(self) -> None:
        me = asyncio.current_task()
        while self._reader is me:
            if self._owed >= self.limits.pending_bytes and self._may_wait():
                self._owed = 0
                await self.transport.drain()
            event = self._next_event()
            if event is None:
                self.transport.flush()
                messages = await self.transport.receive()
                if not messages:
                    self._end(self.transport.lost())
                    break
                self._inbox.extend(messages)
            elif type(event) is events.RequestReceived:
                event.exchange.driver = me
                await lead(self._serve(event.exchange), self._read_on)
                if self._reader is me and me is not None and me.cancelling() and not self._closing:
                    self._read_on()  # the handler has cancelled its own task, which is this one
            else:
                _REACT[type(event)](self, event)

    def _may_wait(self) -> bool:
        """Whether reading may stop until the peer has taken its answers. Not while it owes us some, short of a flood:
        it may have stopped reading for the same reason, and two such peers would wait for ever.
        """
        return not self.session.outgoing or self._owed >= self.limits.line_bytes

    def _end(self, lost: ConnectionLost) -> None:
        """The peer is gone: whatever waits for it fails now."""
        self._lost = lost
        self._fail_all(lost)
        self.ended.set()

    def _fail_all(self, error: AccordError) -> None:
        if not self.opened.done():
            self.opened.set_exception(error)
            self.opened.exception()  # seen: nobody may be waiting
        for exchange in self.session.lose():
            self._settle(exchange, error)

    # --- serving -----------------------------------------------------------------------------------------------

    async def _serve(self, exchange: Exchange) -> None:
        """Answer one request; `exchange.driver` is the task that does."""
        session, send = self.session, self.transport.send
        try:
            message = session.respond(exchange, await self._handler(exchange, self))
        except ProtocolError as error:
            message = session.fail(exchange, error)
        except asyncio.CancelledError:
            if self._closing or exchange.stage != "active":
                raise
            message = session.fail(
                exchange, InternalError(f"{exchange.method.name}: the handler cancelled its own task")
            )
        if exchange.held is not None and (held := session.held_report(exchange)) is not None:
            send(held)
        if message is not None:
            send(message)
            self._owed += len(message)

    def report(self, exchange: Exchange, progress: float, total: float | None, message: str | None) -> None:
        """Tell the peer how far its request is, if it asked to be told. From any thread."""
        if threading.get_ident() == self._thread:
            self._report(exchange, progress, total, message)
        else:
            self._loop.call_soon_threadsafe(self._report, exchange, progress, total, message)

    def _report(self, exchange: Exchange, progress: float, total: float | None, message: str | None) -> None:
        self.send(self.session.report(exchange, progress, total, message, self._loop.time()))

    def send(self, message: bytes | None) -> None:
        """Queue bytes that the session gave, if it gave any."""
        if message is not None:
            self.transport.send(message)

    # --- asking ------------------------------------------------------------------------------------------------

    async def ask(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: ProgressCallback | None = None,
        timeout: float | None = None,
        total_timeout: float | None = None,
    ) -> Raw:
        """Send a request; the raw result.

        `timeout` (seconds) counts from the last sign of life, progress included; `total_timeout` from the start.
        Raises `ProtocolError` for the peer's error, `RequestTimeout`, `ConnectionLost`, `NotSupported`,
        `NotConnected`. Cancelling the await cancels the request.
        """
        if self._lost is not None:
            raise self._lost.with_traceback(None)
        exchange, message = self.session.request(name, params, meta=meta, progress=on_progress is not None)
        waiting = exchange.driver = Waiting(self._loop.create_future(), on_progress)
        self.transport.send(message)
        if len(self.session.outgoing) == 1:  # nothing else is likely to share the write
            self.transport.flush()
        if timeout is not None or total_timeout is not None:
            self._arm(exchange, waiting, timeout, total_timeout)
        try:
            return await waiting.future
        except asyncio.CancelledError:
            self.send(self.session.cancel(exchange, "the caller was cancelled"))
            raise
        finally:
            if waiting.timer is not None:
                waiting.timer.cancel()

    def _arm(self, exchange: Exchange, waiting: Waiting, idle: float | None, total: float | None) -> None:
        now = self._loop.time()
        waiting.idle = idle
        waiting.deadline = None if total is None else now + total
        self._rearm(exchange, waiting)

    def _rearm(self, exchange: Exchange, waiting: Waiting) -> None:
        """Start the timer again: after progress, up to the deadline that no progress moves."""
        if waiting.timer is not None:
            waiting.timer.cancel()
        ends = [at for at in (waiting.deadline, waiting.idle and self._loop.time() + waiting.idle) if at is not None]
        waiting.timer = self._loop.call_at(min(ends), self._time_out, exchange, waiting)

    def _time_out(self, exchange: Exchange, waiting: Waiting) -> None:
        by_total = waiting.idle is None or (waiting.deadline is not None and self._loop.time() >= waiting.deadline)
        why = "the total time allowed is over" if by_total else f"no answer or progress for {waiting.idle:g} s"
        self.send(self.session.cancel(exchange, why))
        self._settle(exchange, RequestTimeout(f"{exchange.method.name} to {self.transport.name}: {why}"))

    def _settle(self, exchange: Exchange, error: Exception) -> None:
        waiting = exchange.driver
        if isinstance(waiting, Waiting) and not waiting.future.done():
            waiting.future.set_exception(error)

    # --- what the session says ---------------------------------------------------------------------------------

    def _on_result(self, event: events.ResultReceived) -> None:
        waiting = event.exchange.driver
        if waiting is not None and not waiting.future.done():
            waiting.future.set_result(event.result)

    def _on_error(self, event: events.ErrorReceived) -> None:
        self._settle(event.exchange, event.error)

    def _on_progress(self, event: events.ProgressReceived) -> None:
        waiting = event.exchange.driver
        if not isinstance(waiting, Waiting):
            return
        if waiting.timer is not None and waiting.idle is not None:
            self._rearm(event.exchange, waiting)
        if waiting.on_progress is not None:
            self._call(waiting.on_progress, event.progress, event.total, event.message)

    def _call(self, callback: Callable[..., Any], *args: Any) -> None:
        """Run a user's callback, plain or async; what it raises is logged and harms nobody."""
        try:
            returned = callback(*args)
        except Exception:
            log.exception("accord: a callback failed")
            return
        if asyncio.iscoroutine(returned):
            task = self._loop.create_task(returned)
            self._tasks.add(task)
            task.add_done_callback(self._callback_done)

    def _callback_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (exc := task.exception()) is not None:
            log.error("accord: a callback failed", exc_info=exc)

    def _on_cancel(self, event: events.CancelReceived) -> None:
        log.debug("%s was cancelled by the peer: %s", event.exchange.method.name, event.reason or "no reason given")
        self.send(event.reply)
        task = event.exchange.driver
        if task is not None:
            task.cancel()

    def _on_reply(self, event: events.Reply) -> None:
        self.transport.send(event.message)
        self._owed += len(event.message)

    def _on_opened(self, event: events.Opened) -> None:
        self.send(event.reply)
        if not self.opened.done():
            self.opened.set_result(event.revision)

    def _on_opening_failed(self, event: events.OpeningFailed) -> None:
        if not self.opened.done():
            error = ConnectError(f"{self.transport.name}: {event.error}")
            error.__cause__ = event.error
            self.opened.set_exception(error)

    def _on_told(self, event: events.NotificationReceived) -> None:
        if self._on_notification is not None:
            self._call(self._on_notification, event)

    def _on_ignored(self, event: events.Ignored) -> None:
        if event.first:
            log.warning("accord: %s: dropped a message (%s) %s", self.transport.name, event.kind, event.detail)

    async def open_client(self, *, handshake: bool = False) -> str:
        """Open as a client; the revision agreed on. Raises `ConnectError` or `ConnectionLost`."""
        session = self.session
        self.transport.send(session.opening.begin(handshake=handshake))  # type: ignore[union-attr]
        knock = self._loop.call_later(self.limits.probe_seconds, self._knock_again)
        try:
            async with asyncio.timeout(self.limits.connect_seconds):
                return await asyncio.shield(self.opened)
        except TimeoutError as exc:
            raise ConnectError(
                f"{self.transport.name} did not answer {_KNOCKS[session.phase]} in {self.limits.connect_seconds:g} s"
            ) from exc
        finally:
            knock.cancel()

    def _knock_again(self) -> None:
        if self.session.phase is Phase.PROBING:
            self.send(self.session.opening.silent())  # type: ignore[union-attr]


_REACT: dict[type, Callable[[Connection, Any], None]] = {
    events.ResultReceived: Connection._on_result,
    events.ErrorReceived: Connection._on_error,
    events.ProgressReceived: Connection._on_progress,
    events.CancelReceived: Connection._on_cancel,
    events.Reply: Connection._on_reply,
    events.Opened: Connection._on_opened,
    events.OpeningFailed: Connection._on_opening_failed,
    events.NotificationReceived: Connection._on_told,
    events.Ignored: Connection._on_ignored,
}
