"""Notifications of a server, for callbacks and streams.

A slow reader does not block the connection: notifications wait in order, and at the bound (`Limits.notices`) the
oldest is dropped and counted. An exception in a callback is logged and has no other effect.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import wraps
from types import TracebackType
from typing import Any, Generic, TypeVar

import msgspec

from accord.errors import InvalidParams, NotConnected, log_line
from accord.limits import Limits
from accord.messages import codec
from accord.messages.base import RequestId
from accord.session.events import NotificationReceived
from accord.transport.callbacks import Callback

T = TypeVar("T")

log: logging.Logger = logging.getLogger("accord.client")


class Notice(msgspec.Struct, frozen=True):
    """A notification: its method, its decoded params, and the id of its subscription, if any."""

    method: str
    params: Any
    subscription: RequestId | None = None


class NotificationBuffer(Generic[T]):
    """The items that wait for one reader, up to `most` items and `most_bytes`; it ends with or without an error.
    `dropped` counts the losses.
    """

    def __init__(self, most: int, most_bytes: int | None = None) -> None:
        self._waiting: deque[tuple[T, int]] = deque()
        self._max_items = most
        self._max_bytes = most_bytes
        self._bytes = 0
        self._changed = asyncio.Event()
        self._ended = False
        self._error: Exception | None = None
        self.dropped: int = 0

    @property
    def ended(self) -> bool:
        """Return whether the buffer is closed."""
        return self._ended

    def put(self, item: T, size: int = 0) -> bool:
        """Add an item of `size` bytes; return False when it displaced older ones. A closed buffer ignores it."""
        if self._ended:
            return True
        before = self.dropped
        while self._waiting and self._is_full(size):
            self._pop()
            self.dropped += 1
        self._waiting.append((item, size))
        self._bytes += size
        self._changed.set()
        return self.dropped == before

    def _is_full(self, size: int) -> bool:
        too_large = self._max_bytes is not None and self._bytes + size > self._max_bytes
        return too_large or len(self._waiting) >= self._max_items

    def _pop(self) -> T:
        item, size = self._waiting.popleft()
        self._bytes -= size
        return item

    def clear(self) -> None:
        """Drop the waiting items."""
        self._waiting.clear()
        self._bytes = 0

    def close(self, error: Exception | None = None) -> None:
        """Close the buffer; waiting items can still be read, followed by the error, if there is one."""
        if not self._ended:
            self._ended, self._error = True, error
            self._changed.set()

    async def get(self) -> T:
        """Return the next item. Raises `StopAsyncIteration` at the end, or the error of `close`."""
        while not self._waiting:
            if self._error is not None:
                raise self._error.with_traceback(None)
            if self._ended:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        return self._pop()


class NoticeStream:
    """Notifications to iterate over, from when it is entered: `async with client.notifications(...) as stream`.

    It ends when the client is closed, and raises `ConnectionLost` when the connection is lost for good. `dropped`
    counts the notifications that were lost.
    """

    def __init__(self, router: NotificationRouter, methods: frozenset[str]) -> None:
        self._router = router
        self._methods = methods
        self._queue: NotificationBuffer[Notice] = NotificationBuffer(router.limits.notices, router.limits.notice_bytes)

    @property
    def dropped(self) -> int:
        """Return the number of notifications lost because the stream was not read in time: the oldest are dropped."""
        return self._queue.dropped

    def deliver(self, notice: Notice, size: int = 0) -> None:
        """Add a notification of `size` bytes, if the stream includes its method."""
        if not self._methods or notice.method in self._methods:
            self._queue.put(notice, size)

    def end(self, error: Exception | None) -> None:
        """Close the stream."""
        self._queue.close(error)

    async def __aenter__(self) -> NoticeStream:
        if not self._router.is_live or self._queue.ended:
            raise NotConnected("the client is not connected, so it receives no notifications; call connect() first")
        self._router.streams.append(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._router.streams.remove(self)

    def __aiter__(self) -> AsyncIterator[Notice]:
        return self

    async def __anext__(self) -> Notice:
        return await self._queue.get()


class NotificationRouter:
    """The callbacks and streams of one client, by method."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.streams: list[NoticeStream] = []
        self._callbacks: dict[str | None, list[Callback]] = {}
        self._removed: list[Callback] = []  # callbacks that were still running when they were removed
        self._malformed: set[str] = set()
        self.is_live: bool = False
        """Whether the client is connected, or will reconnect."""

    def on(self, method: str | None, callback: Callable[[Notice], Any]) -> Callable[[], None]:
        """Call `callback(notice)` for notifications of `method`, or all with None; the returned function removes it."""
        callbacks = self._callbacks.setdefault(method, [])

        @wraps(callback)
        def call_if_registered(notice: Notice) -> Any:
            return callback(notice) if registered in callbacks else None

        def remove() -> None:
            if registered in callbacks:
                callbacks.remove(registered)
                self._removed = [removed for removed in (*self._removed, registered) if removed.is_running]

        registered = Callback(call_if_registered, self.limits.notices, self.limits.notice_bytes)
        callbacks.append(registered)
        return remove

    def read(self, event: NotificationReceived) -> Notice | None:
        """Return a notification with decoded params, or None for invalid params, which are logged once per method."""
        name = event.method.name
        try:
            params = codec.decode_params(event.method.params, event.params)
        except InvalidParams as exc:
            if name not in self._malformed:
                log.warning("accord: dropped a malformed %s: %s", name, log_line(exc.message))
                self._malformed.add(name)
            return None
        return Notice(name, params, event.subscription)

    def dispatch(self, notice: Notice, size: int = 0) -> None:
        """Pass a notification to its callbacks and streams, in order of registration. `size` is that of its params."""
        for callback in [*self._callbacks.get(notice.method, ()), *self._callbacks.get(None, ())]:
            callback.call(notice, size=size)
        for stream in self.streams:
            stream.deliver(notice, size)

    def end(self, error: Exception | None = None) -> None:
        """Close the streams."""
        self.is_live = False
        for stream in self.streams:
            stream.end(error)

    async def finish_callbacks(self) -> None:
        """Wait for the callbacks, at most `ClientLimits.callback_seconds`."""
        time = asyncio.get_running_loop().time
        deadline = time() + self.limits.client.callback_seconds
        for callback in [
            *self._removed,
            *(registered for callbacks in self._callbacks.values() for registered in callbacks),
        ]:
            # In this task, because a callback may be the caller of close().
            await callback.finish(max(0, deadline - time()))
