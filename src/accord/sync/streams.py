"""Subscriptions and notifications to iterate over with `for`."""

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
    """What is read: `async with source`, then one event after the other."""

    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def __anext__(self) -> Coroutine[Any, Any, E_co]: ...


class BlockingStream(Generic[S, E]):
    """Events to wait for, one after the other. Enter it first; it is read by one thread at a time."""

    def __init__(self, background: BackgroundLoop, source: S, client: object) -> None:
        self._background = background
        self._client = client  # it is closed when nobody has it any more
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
        found = self._wait(None)
        if found is None:
            raise StopIteration
        return found[0]

    def get(self, timeout: float | None = None) -> E | None:
        """The next event; None at the end. Raises `RequestTimeout` when none has come in `timeout` seconds."""
        found = self._wait(timeout)
        return None if found is None else found[0]

    def _wait(self, seconds: float | None) -> tuple[E] | None:
        try:
            return self._background.run(self._next(seconds))
        except NotConnected:  # the client is closed: nothing more comes, but what has come can be read
            return self._next_buffered()

    def _next_buffered(self) -> tuple[E] | None:
        reading = self._source.__anext__()
        try:
            reading.send(None)  # a step, which needs no loop unless it has to wait
        except StopIteration as found:
            return (found.value,)
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
        """Notifications that were lost because nobody read them in time: the oldest of those that waited."""
        return self._source.dropped


class Subscription(BlockingStream[subscription.Subscription, SubscriptionEvent]):
    """Events to iterate over: `with client.subscribe(...) as subscription`.

    The iteration ends when the server ends the subscription, or the client is closed. It raises `ConnectionLost` when
    the connection is lost for good, and what the server answers when it refuses to subscribe again on the next one.
    """

    @property
    def wish(self) -> SubscriptionFilter:
        """What was asked for."""
        return self._source.wish

    @property
    def granted(self) -> SubscriptionFilter:
        """What of it the server has agreed to."""
        return self._source.granted

    @property
    def ended(self) -> bool:
        """Whether no more will come."""
        return self._source.ended

    @property
    def uris(self) -> list[str]:
        """The resources that the server has agreed to tell of."""
        return self._source.uris

    def wants(self, kind: Kind) -> bool:
        """Whether the server has agreed to tell when that list changes."""
        return self._source.wants(kind)
