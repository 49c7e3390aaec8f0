"""What a server tells its client unasked: to callbacks, and to whoever reads a stream of it.

Whoever is told slowly does not hold up the connection: what comes meanwhile waits, in order, and at the bound
(`Limits.notices`) the oldest is dropped and counted. What a callback raises is logged and harms nobody.
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
    """A notification: its method, its params as the type of that method, and the subscription it belongs to, if any."""

    method: str
    params: Any
    subscription: RequestId | None = None


class NotificationBuffer(Generic[T]):
    """What waits for one reader, up to `most` items and `most_bytes`; it ends with an error or without one. `dropped`
    counts the losses.
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
        """Whether no more will come."""
        return self._ended

    def put(self, item: T, size: int = 0) -> bool:
        """Add one of so many bytes; False when older ones had to go for it. After the end nothing is taken."""
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
        """Drop what waits."""
        self._waiting.clear()
        self._bytes = 0

    def close(self, error: Exception | None = None) -> None:
        """No more will come; what waits can still be read, then comes the error, if there is one."""
        if not self._ended:
            self._ended, self._error = True, error
            self._changed.set()

    async def get(self) -> T:
        """The next one. Raises `StopAsyncIteration` at the end, or the error it ended with."""
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
    counts what came too fast.
    """

    def __init__(self, notices: NotificationRouter, methods: frozenset[str]) -> None:
        self._router = notices
        self._methods = methods
        self._queue: NotificationBuffer[Notice] = NotificationBuffer(
            notices.limits.notices, notices.limits.notice_bytes
        )

    @property
    def dropped(self) -> int:
        """Notifications that were lost because nobody read them in time: the oldest of those that waited."""
        return self._queue.dropped

    def deliver(self, notice: Notice, size: int = 0) -> None:
        """Take one of so many bytes, if it is of a method that was asked for."""
        if not self._methods or notice.method in self._methods:
            self._queue.put(notice, size)

    def end(self, error: Exception | None) -> None:
        """No more will come."""
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
    """Who wants to hear what of one client's server."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.streams: list[NoticeStream] = []
        self._callbacks: dict[str | None, list[Callback]] = {}
        self._removed: list[Callback] = []  # those that were still at work then
        self._malformed: set[str] = set()
        self.is_live: bool = False
        """Whether there is a connection, or there will be one again."""

    def on(self, method: str | None, callback: Callable[[Notice], Any]) -> Callable[[], None]:
        """Call `callback(notice)` for each notification of `method`, or of any with None, until the returned function
        is called.
        """
        callbacks = self._callbacks.setdefault(method, [])

        @wraps(callback)
        def tell(notice: Notice) -> Any:
            return callback(notice) if told in callbacks else None

        def remove() -> None:
            if told in callbacks:
                callbacks.remove(told)
                self._removed = [each for each in (*self._removed, told) if each.is_running]

        told = Callback(tell, self.limits.notices, self.limits.notice_bytes)
        callbacks.append(told)
        return remove

    def read(self, event: NotificationReceived) -> Notice | None:
        """A notification with its params as their type; None where they do not fit, which is logged once."""
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
        """Tell everybody who wants to know, in the order in which they asked to. `size` is that of its params."""
        for callback in [*self._callbacks.get(notice.method, ()), *self._callbacks.get(None, ())]:
            callback.call(notice, size=size)
        for stream in self.streams:
            stream.deliver(notice, size)

    def end(self, error: Exception | None = None) -> None:
        """No more will come: end the streams."""
        self.is_live = False
        for stream in self.streams:
            stream.end(error)

    async def close(self) -> None:
        """End the streams, and let the callbacks finish, at most `ClientLimits.callback_seconds`."""
        self.end()
        time = asyncio.get_running_loop().time
        until = time() + self.limits.client.callback_seconds
        for callback in [*self._removed, *(each for all_ in self._callbacks.values() for each in all_)]:
            await callback.finish(max(0, until - time()))  # in this task: one of them may be what closes
