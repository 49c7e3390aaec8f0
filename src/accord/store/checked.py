"""A store of anyone's making, of which nothing is raised but what `Events` says: the server knows what to do then."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import ParamSpec, TypeVar

from accord.errors import StoreError
from accord.store.base import Events, Replay

log: logging.Logger = logging.getLogger("accord")

T = TypeVar("T")
P = ParamSpec("P")


class CheckedEvents:
    """`Events` that are kept by `events`. What else that raises is logged, and raised as a `StoreError`."""

    def __init__(self, events: Events) -> None:
        self._events = events

    async def open(self) -> None:
        """See `Events.open`."""
        await _as_store_error(self._events.open)

    async def close(self) -> None:
        """See `Events.close`."""
        await _as_store_error(self._events.close)

    async def save(self, session: str, record: bytes) -> None:
        """See `Events.save`."""
        await _as_store_error(self._events.save, session, record)

    async def load(self, session: str) -> bytes | None:
        """See `Events.load`."""
        return await _as_store_error(self._events.load, session)

    async def forget(self, session: str) -> None:
        """See `Events.forget`."""
        await _as_store_error(self._events.forget, session)

    async def begin(self, session: str, stream: str, about: bytes) -> None:
        """See `Events.begin`."""
        await _as_store_error(self._events.begin, session, stream, about)

    async def append(self, session: str, stream: str, messages: Sequence[bytes], *, ends: bool = False) -> int:
        """See `Events.append`."""
        return await _as_store_error(self._events.append, session, stream, messages, ends=ends)

    async def end(self, session: str, stream: str) -> None:
        """See `Events.end`."""
        await _as_store_error(self._events.end, session, stream)

    async def read(self, session: str, stream: str, after: int, most: int | None = None) -> Replay | None:
        """See `Events.read`."""
        return await _as_store_error(self._events.read, session, stream, after, most)

    async def last(self, session: str, stream: str) -> int | None:
        """See `Events.last`."""
        return await _as_store_error(self._events.last, session, stream)


async def _as_store_error(method: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return await method(*args, **kwargs)
    except StoreError:
        raise
    except Exception as exc:
        log.exception("accord: the event store raised an exception of its own")
        what = getattr(method, "__qualname__", repr(method))
        raise StoreError(f"{what} of the event store raised {type(exc).__name__}: {exc}") from exc
