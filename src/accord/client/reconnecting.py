"""The connection of a client, which a `Reconnect` opens again when it dies.

`ReconnectingConnection` owns and watches the current connection. Without `Reconnect`, a lost connection is only
reported, except for a session that the server has ended (HTTP): the client opens another one and sends the refused
request again, once. With `Reconnect`, the server is started again after a pause that doubles and has full jitter, and
calls wait for it. Requests in flight are sent again only if that is safe (`may_repeat`); otherwise their outcome is
unknown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Literal

from msgspec import Raw

from accord.client.connect import Connector
from accord.client.retry import (
    Backoff,
    MayRetry,
    Reconnect,
    StickyConnection,
    StickyConnectionLost,
    TimeBudget,
    connection_loss,
    is_retry_allowed,
    outcome_unknown,
    retries_exhausted,
    wait_before_retry,
)
from accord.errors import (
    AccordError,
    ConnectError,
    ConnectionLost,
    LoginNeeded,
    NotConnected,
    NotExecuted,
    RequestTimeout,
    SessionEnded,
    copy_error,
    log_line,
)
from accord.transport.connection import Connection

log: logging.Logger = logging.getLogger("accord.client")

ConnectionState = Literal["closed", "connecting", "connected", "reconnecting", "lost"]
"""`lost`: the connection ended, and is not opened again unless `connect` is called."""

_MIN_SESSION_SECONDS = 1.0
"""A session that ends sooner counts as failed: the next one is opened after a pause."""


class ReconnectingConnection:
    """The current connection of a client.

    `prepare(connection, again)` initializes a new connection; its exception fails the attempt. `ended(error)` is called
    when the connection is lost, or closed (None), and will not be reopened unless `open` is called.
    """

    def __init__(
        self,
        connector: Connector,
        reconnect: Reconnect | None,
        *,
        prepare: Callable[[Connection, bool], Awaitable[None]],
        ended: Callable[[ConnectionLost | None], None],
        prepare_seconds: float,
    ) -> None:
        self._connector = connector
        self._reconnect = reconnect
        self._prepare = prepare
        self._on_ended = ended
        self._prepare_seconds = prepare_seconds
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()
        self._closes = 0
        self._opening: asyncio.Task[None] | None = None
        self._watch_task: asyncio.Task[None] | None = None
        self._close_task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._failure: ConnectionLost | None = None
        self._opened_before = False
        self.state: ConnectionState = "closed"
        self.on_state: Callable[[ConnectionState, AccordError | None], None] | None = None
        """Called with each new state and, where one is the cause, the error."""

    @property
    def is_open(self) -> bool:
        """Return whether there is a live connection."""
        return self._connection is not None and not self._connection.ended.is_set()

    @property
    def connection(self) -> Connection:
        """Return the connection, also a lost one. Raises `NotConnected`."""
        if self._connection is None:
            raise NotConnected("the client is not connected; use `async with Client(...)` or `await connect()`")
        return self._connection

    # --- lifetime ----------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Open a closed connection. Raises `ConnectError`, `ConnectionLost`; `NotConnected` if closed meanwhile."""
        closes = self._closes
        async with self._lock:  # a second task waits for the connection of the first
            await _wait_until_done(self._close_task)  # it would end parts of the new connection
            if closes == self._closes and self._is_lost:
                await self._end(self.connection)
            if closes != self._closes:
                raise NotConnected("the client was closed while it waited to connect")
            if self.is_open:
                return
            if self._is_reopening:
                await self.ready(None)
                return
            self._opening = asyncio.get_running_loop().create_task(self._start(Backoff(self._reconnect or Reconnect())))
            await self._wait_opened(self._opening)

    @property
    def _is_reopening(self) -> bool:
        is_watched = self._watch_task is not None and not self._watch_task.done()
        return self._connection is not None and self._reopens(self._connection) and is_watched

    @property
    def _is_lost(self) -> bool:
        return self._connection is not None and not self.is_open and not self._is_reopening

    def _reopens(self, connection: Connection) -> bool:
        """Return whether a lost connection is followed by another one; after a session that the server ended it always
        is.

        "it MUST start a new session by sending a new `InitializeRequest`" (Streamable HTTP, Session Management).
        """
        return self._reconnect is not None or isinstance(connection.transport.lost(), SessionEnded)

    async def _wait_opened(self, opening: asyncio.Task[None]) -> None:
        try:
            await opening
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or not task.cancelling():
                raise NotConnected("the client was closed while it was connecting") from None
            if _has_succeeded(opening):  # in the same turn of the loop: nobody would close the connection
                await asyncio.shield(self._begin_close())
            raise
        finally:
            self._opening = None

    def _set_state(self, state: ConnectionState, error: AccordError | None = None) -> None:
        self.state = state
        if self.on_state is not None:
            self.on_state(state, error)

    async def _start(self, backoff: Backoff) -> None:
        """Open the connection, and start to watch it."""
        self._set_state("connecting")
        try:
            await self._connect()
        except BaseException as exc:
            self._set_state("closed", exc if isinstance(exc, AccordError) else None)
            raise
        self._watch_task = asyncio.get_running_loop().create_task(self._watch(backoff))
        self._watch_task.add_done_callback(self._on_watch_done)

    async def _connect(self) -> None:
        connection = await self._connector.open()
        try:
            await self._prepare_authorized(connection)
        except BaseException:
            await asyncio.shield(self._end(connection))
            raise
        self._connection, self._opened_before, self._failure = connection, True, None
        self._set_state("connected")
        self._notify_waiters()

    async def _prepare_authorized(self, connection: Connection) -> None:
        """Prepare a connection, after a login if that needs one: a token may have expired meanwhile."""
        prepare = partial(self._prepare_connection, connection)
        try:
            await prepare()
        except AccordError as exc:
            await self._connector.authorization.after_login(exc, prepare)

    async def _prepare_connection(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(self._prepare_seconds) as limit:
                await self._prepare(connection, self._opened_before)
        except TimeoutError as exc:
            if not limit.expired():
                raise
            name = connection.transport.name
            raise ConnectError(
                f"{name} did not respond to the first requests after the handshake in {self._prepare_seconds:g} s"
            ) from exc

    def _notify_waiters(self) -> None:
        """Wake the tasks that wait for a change."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def close(self) -> None:
        """Close the connection and end a server that is a child process; bounded in time, from any task."""
        self._closes += 1
        await asyncio.shield(self._begin_close())  # continues when the caller is cancelled

    def _begin_close(self) -> asyncio.Task[None]:
        self._close_task = asyncio.get_running_loop().create_task(self._close(self._close_task))
        return self._close_task

    async def _close(self, previous: asyncio.Task[None] | None) -> None:
        await _wait_until_done(previous)  # a second cancellation would interrupt the clean-up
        await _cancel_and_wait(self._opening)
        await _cancel_and_wait(self._watch_task)
        connection, self._connection = self._connection, None
        if self.state != "closed":
            self._set_state("closed")
        self._on_ended(None)
        self._notify_waiters()
        if connection is not None:
            await self._end(connection)

    async def _end(self, connection: Connection) -> None:
        """Clean up the connection: a process that may still run, a server in this process."""
        await connection.close()
        await self._connector.close()

    # --- reconnecting ------------------------------------------------------------------------------------------

    async def _watch(self, backoff: Backoff) -> None:
        time = asyncio.get_running_loop().time
        while True:
            started, connection = time(), self.connection
            await connection.ended.wait()
            lost = connection.transport.lost()
            if not self._reopens(connection):
                self._set_state("lost", lost)
                return self._on_ended(lost)
            if not await self._reopen(lost, backoff, time() - started):
                return None

    async def _reopen(self, lost: ConnectionLost, backoff: Backoff, lifetime: float) -> bool:
        """Open the connection again; return False after the last attempt, which is reported."""
        error: AccordError = lost
        while (pause := self._pause(error, backoff, lifetime)) is not None:
            self._set_state("reconnecting", error)
            log.warning("accord: %s; trying again in %.2g s", log_line(error), pause)
            await self._end(self.connection)
            await asyncio.sleep(pause)
            try:
                await self._connect()
                return True
            except AccordError as exc:
                error, lifetime = exc, 0
        reason = f"given up after {self._attempts} attempts in a row (Reconnect.attempts)"
        self._give_up(
            ConnectionLost(
                f"{error}; {reason if self._reconnect is not None else 'connect() opens it again'}",
                exit_code=lost.exit_code,
                stderr=lost.stderr,
            )
        )
        return False

    def _pause(self, error: AccordError, backoff: Backoff, lifetime: float) -> float | None:
        """Return the pause before the next attempt, or None to give up. A used session is reopened at once."""
        if isinstance(error, SessionEnded) and lifetime >= _MIN_SESSION_SECONDS:
            return 0
        if self._reconnect is None and not isinstance(error, SessionEnded):
            return None
        return backoff.after(lifetime)

    @property
    def _attempts(self) -> int:
        """Return how often a request is sent again, and a connection reopened, at most: once without a `Reconnect`."""
        return self._reconnect.attempts if self._reconnect is not None else 1

    def _give_up(self, failure: ConnectionLost) -> None:
        self._failure = failure
        self._set_state("lost", failure)
        self._on_ended(failure)
        self._notify_waiters()

    def _on_watch_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (exc := task.exception()) is not None:
            log.error("accord: a defect in what watches the connection", exc_info=exc)
            self._give_up(ConnectionLost(f"the connection could not be opened again: {exc!r}"))

    # --- requests ----------------------------------------------------------------------------------------------

    async def ready(self, seconds: float | None) -> Connection:
        """Return the connection, and wait for it while it is being reopened.

        Raises `NotConnected`, `ConnectionLost` after the last attempt, `RequestTimeout` after `seconds`.
        """
        try:
            async with asyncio.timeout(seconds):
                while self.connection.ended.is_set() and self._reopens(self.connection):
                    if self._failure is not None:
                        raise copy_error(self._failure)
                    await self._changed.wait()
        except TimeoutError:
            name = self.connection.transport.name
            raise RequestTimeout(f"{name} has exited and did not reconnect within {seconds:.2g} s") from None
        return self.connection

    async def request(
        self,
        method: str,
        params: Any,
        *,
        may_repeat: MayRetry,
        sticky: StickyConnection,
        timeout: float | None,
        total_timeout: float | None,
        **options: Any,
    ) -> Raw:
        """Send a request, as `Connection.ask` does. With a `Reconnect`, wait for a connection, and send the request
        again if it was not executed or may be repeated.

        Raises `OutcomeUnknown` for a request that may not be repeated, and `StickyConnectionLost` for a repeatable one
        that is bound to the lost connection of `sticky`.
        """
        clock = TimeBudget(total_timeout)
        backoff: Backoff | None = None
        for _ in range(1 + self._attempts):
            connection = sticky.connection or self._connection
            if connection is None or (connection.ended.is_set() and connection is not sticky.connection):
                connection = await self.ready(clock.at_most(timeout))
            try:
                try:
                    answer = await connection.request(
                        method, params, timeout=timeout, total_timeout=clock.left, **options
                    )
                except LoginNeeded as exc:
                    send = partial(connection.request, method, params, timeout=timeout, **options)
                    answer = await self._send_after_login(exc, send, clock)
            except (ConnectionLost, NotConnected) as exc:
                lost = connection_loss(connection, exc)
                if self._connection is None or not self._may_retry(lost):  # the client was closed
                    raise
                if not isinstance(lost, NotExecuted) and not await is_retry_allowed(may_repeat, clock.at_most(timeout)):
                    raise outcome_unknown(method, lost) from exc
                if sticky.connection is not None:
                    raise StickyConnectionLost(f"{method} cannot go on: {lost}") from exc
                backoff = backoff or Backoff(self._reconnect or Reconnect())
                await wait_before_retry(connection, lost, backoff, clock.at_most(timeout))
            else:
                sticky.connection = connection
                return answer
        raise retries_exhausted(method, 1 + self._attempts, lost)

    async def _send_after_login(
        self, error: LoginNeeded, send: Callable[..., Awaitable[Raw]], clock: TimeBudget
    ) -> Raw:
        """Send a request again after a login. A login takes as long as its user: meanwhile, no time of the request
        passes, but the session may end, as it does for another user.
        """

        async def send_again() -> Raw:
            clock.resume()
            try:
                return await send(total_timeout=clock.left)
            finally:
                clock.suspend()

        clock.suspend()
        try:
            return await self._connector.authorization.after_login(error, send_again)
        finally:
            clock.resume()

    def _may_retry(self, lost: ConnectionLost) -> bool:
        """Return whether a request may be sent again."""
        return self._reconnect is not None or isinstance(lost, SessionEnded)


async def _cancel_and_wait(task: asyncio.Task[None] | None) -> None:
    """Cancel a task, and wait for its clean-up."""
    if task is not None:
        task.cancel()
    await _wait_until_done(task)


async def _wait_until_done(task: asyncio.Task[None] | None) -> None:
    if task is not None and not task.done():  # one that is done may be of an event loop that is closed
        await asyncio.wait([task])


def _has_succeeded(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None
