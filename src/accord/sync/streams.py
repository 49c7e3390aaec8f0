"""Blocking streams of notifications and subscription events, to iterate over with `for`."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from accord.client import notifications, subscription
from accord.client.notifications import Notice
from accord.client.subscription import Kind, SubscriptionEvent
from accord.errors import NotConnected, RequestTimeout
from accord.messages.notifications import SubscriptionFilter
from accord.sync.background_loop import BackgroundLoop

E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)
S = TypeVar("S", bound="AsyncStream[Any]")
Self = TypeVar("Self", bound="BlockingStream[Any, Any]")


class AsyncStream(Protocol[E_co]):
    """The async stream that is read: `async with source`, then one event after another."""

    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def __anext__(self) -> Coroutine[Any, Any, E_co]: ...


class BlockingStream(Generic[S, E]):
    """A stream of events that blocks until the next one. Enter it first; one thread at a time may read it."""

    def __init__(self, background: BackgroundLoop, source: S, client: object) -> None:
        self._background = background
        self._client = client  # keeps the client from being collected and closed
        self._source: S = source

    def __enter__(self: Self) -> Self:
        self._background.run(self._source.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(NotConnected):  # the client is closed, and the stream with it
            self._background.run(self._source.__aexit__(kind, exc, trace))

    def __iter__(self) -> Iterator[E]:
        return self

    def __next__(self) -> E:
        item = self._wait(None)
        if item is None:
            raise StopIteration
        return item[0]

    def get(self, timeout: float | None = None) -> E | None:
        """Return the next event, or None at the end. Raises `RequestTimeout` after `timeout` seconds."""
        item = self._wait(timeout)
        return None if item is None else item[0]

    def _wait(self, seconds: float | None) -> tuple[E] | None:
        try:
            return self._background.run(self._next(seconds))
        except NotConnected:  # the client is closed: only buffered events remain
            return self._next_buffered()

    def _next_buffered(self) -> tuple[E] | None:
        step = self._source.__anext__()
        try:
            step.send(None)  # runs one step, which needs no loop unless it has to wait
        except StopIteration as stopped:
            return (stopped.value,)
        except StopAsyncIteration:
            return None
        except RuntimeError:
            pass
        raise NotConnected("the client is not connected, so it receives no notifications; call connect() first")

    async def _next(self, seconds: float | None) -> tuple[E] | None:
        try:
            async with asyncio.timeout(seconds):
                return (await self._source.__anext__(),)
        except StopAsyncIteration:
            return None
        except TimeoutError as exc:
            raise RequestTimeout(f"no notification within {seconds:g} s") from exc


class NoticeStream(BlockingStream[notifications.NoticeStream, Notice]):
    """Notifications to iterate over: `with client.notifications(...) as stream`.

    It ends when the client is closed, and raises `ConnectionLost` when the connection is lost for good.
    """

    @property
    def dropped(self) -> int:
        """Return the number of notifications lost because the stream was not read in time: the oldest are dropped."""
        return self._source.dropped


class Subscription(BlockingStream[subscription.Subscription, SubscriptionEvent]):
    """Events to iterate over: `with client.subscribe(...) as subscription`.

    The iteration ends when the server ends the subscription, or the client is closed. It raises `ConnectionLost` when
    the connection is lost for good, and the server's error when it refuses to subscribe again after a reconnect.
    """

    @property
    def wish(self) -> SubscriptionFilter:
        """Return the requested notifications."""
        return self._source.wish

    @property
    def granted(self) -> SubscriptionFilter:
        """Return the notifications that the server granted."""
        return self._source.granted

    @property
    def ended(self) -> bool:
        """Return whether the subscription has ended."""
        return self._source.ended

    @property
    def uris(self) -> list[str]:
        """Return the resources that the server granted."""
        return self._source.uris

    def wants(self, kind: Kind) -> bool:
        """Return whether the server granted notifications for this list."""
        return self._source.wants(kind)
