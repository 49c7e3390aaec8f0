"""The sending of a client's requests: metadata, cache, decoding, and input requests.

A request carries the log level in revisions where each request does; its result may come from the cache; and a request
whose result asks for input is sent again with it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar, get_args

from msgspec import Raw

from accord.client.cache import CacheableRequest, ClientCache
from accord.client.multi_round_trip import InputResponder
from accord.client.reconnecting import ReconnectingConnection
from accord.client.results import InputRequiredError, ResultReader
from accord.client.retry import MayRetry, StickyConnection
from accord.errors import (
    InvalidParams,
    LocalProtocolError,
    NotSupported,
    ProtocolError,
    RemoteProtocolError,
    RequestTimeout,
    UrlElicitationRequired,
    log_line,
)
from accord.limits import Limits
from accord.messages.base import LoggingLevel, Meta
from accord.messages.capabilities import TOOL_TASKS
from accord.messages.meta import LOG_LEVEL, CacheableResult, InputResponseParams, PaginatedParams, Result, check_meta
from accord.messages.methods import table
from accord.messages.notifications import SetLevelParams
from accord.session.session import Session
from accord.transport.connection import Connection

log: logging.Logger = logging.getLogger("accord.client")

T = TypeVar("T")
C = TypeVar("C", bound=CacheableResult)
P = TypeVar("P", bound=InputResponseParams)
R = TypeVar("R", bound=Result)

_SET_LEVEL = "logging/setLevel"


async def always_retry() -> bool:
    """Return True, for requests without side effects."""
    return True


async def never_retry() -> bool:
    """Return False, for requests with unknown side effects."""
    return False


class Requests:
    """The requests of one client. `timeout` and `total_timeout` (seconds) are defaults of each request."""

    def __init__(
        self,
        connection: ReconnectingConnection,
        reader: ResultReader,
        responder: InputResponder,
        cache: ClientCache,
        limits: Limits,
        timeout: float | None,
        total_timeout: float | None,
        level: LoggingLevel | None,
    ) -> None:
        self._connection = connection
        self._reader = reader
        self._multi_round_trip = responder
        self._cache = cache
        self._limits = limits
        self.timeout: float | None = timeout
        self.total_timeout: float | None = total_timeout
        self._meta: Meta = {}
        """The `_meta` of every request."""
        self._is_caching = False
        self.may_request_tasks: bool = False
        """Whether a call may ask to run as a task (2025-11-25)."""
        self.accepts_tasks: bool = False
        """Whether the server may decide that a call becomes a task (2026-07-28)."""
        self._level = None if level is None else _check_level(level)

    def raw(
        self,
        method: str,
        params: Any = None,
        *,
        meta: Meta | None = None,
        timeout: float | None = None,
        total_timeout: float | None = None,
        may_repeat: MayRetry = always_retry,
        sticky: StickyConnection | None = None,
        on_progress: Any = None,
        on_sent: Any = None,
    ) -> Coroutine[Any, Any, Raw]:
        """Send a request and return its encoded result. Raises the errors of `ReconnectingConnection.request`, and
        `LocalProtocolError` for an invalid `meta`.
        """
        if meta is not None:
            check_meta(meta)
        return self._connection.request(
            method,
            params,
            meta={**self._meta, **meta} if meta and self._meta else meta or self._meta or None,
            on_progress=on_progress,
            on_sent=on_sent,
            may_repeat=may_repeat,
            sticky=StickyConnection() if sticky is None else sticky,
            timeout=self.timeout if timeout is None else timeout,
            total_timeout=self.total_timeout if total_timeout is None else total_timeout,
        )

    async def read(self, method: str, type_: type[R], params: Any, **options: Any) -> R:
        """Send a request and return its decoded result. Raises also `InvalidResult`."""
        return self._reader.read(method, type_, await self.raw(method, params, **options))

    async def read_open(self, method: str, type_: type[T], params: Any, **options: Any) -> T | Any:
        """Send a request, as `read` does, and accept results of extensions."""
        return self._reader.read_open(method, type_, await self.raw(method, params, **options))

    async def session(self) -> Session:
        """Return the session of the connection, which is opened again if necessary. Raises `ConnectionLost`."""
        return (await self._connection.ready(self.timeout)).session

    def decode(self, method: str, type_: type[R], raw: Raw) -> R:
        """Decode a result that is inside another one. Raises `InvalidResult`."""
        return self._reader.read(method, type_, raw)

    def with_input(
        self, method: str, type_: type[R], params: P, *, total_timeout: float | None = None, **options: Any
    ) -> Coroutine[Any, Any, R]:
        """Send a request, as `read` does, answer its input requests, and send it again.

        The params of a request that is sent again have `input_responses` or `request_state`.
        """
        first = partial(self.read, method, type_, params)
        return self._with_input(first, method, type_, params, total_timeout, options)

    async def _with_input(
        self,
        first: Callable[..., Awaitable[R]],
        method: str,
        type_: type[R],
        params: P,
        total: float | None,
        options: Mapping[str, Any],
    ) -> R:
        """Return the result of `first`, or of the rounds that follow it."""
        sticky = StickyConnection()

        async def send(params: P, total: float | None) -> R:
            return await self.read(method, type_, params, total_timeout=total, sticky=sticky, **options)

        total = self.total_timeout if total is None else total
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            return await first(total_timeout=total, sticky=sticky, **options)
        except UrlElicitationRequired as error:
            self._multi_round_trip.handlers.expect_pages(error)
            raise
        except InputRequiredError as required:
            remaining = None if total is None else total - (loop.time() - started)
            return await self._multi_round_trip.run(required, sticky, params, send, remaining)

    # --- cache -------------------------------------------------------------------------------------------------

    def clear_cache(self) -> None:
        """Clear the cache."""
        self._cache.clear()

    async def cached(
        self, request: CacheableRequest, type_: type[C], params: Any, *, fresh: bool = False, **options: Any
    ) -> C:
        """Return a result as `read` does, or from the cache unless `fresh`."""
        return (await self._cached_or_requested(request, type_, params, fresh, options))[0]

    async def _cached_or_requested(
        self, request: CacheableRequest, type_: type[C], params: Any, fresh: bool, options: Mapping[str, Any]
    ) -> tuple[C, int]:
        """Return a result and its size in bytes, from the cache or from the server."""
        raw = self._raw_from_cache(request, fresh, options)
        if raw is None:
            return await self._request_with_size(request, type_, params, **options)
        return self._reader.read(request.method, type_, raw), len(raw)

    async def cached_with_input(
        self,
        request: CacheableRequest,
        type_: type[C],
        params: P,
        *,
        fresh: bool = False,
        total_timeout: float | None = None,
        **options: Any,
    ) -> C:
        """Return a result as `with_input` does, or from the cache.

        "Results produced by retrying a request [...] MUST NOT be cached, as they depend on inputs that are not part of
        the cache key" (Caching).
        """
        cached = self._from_cache(request, type_, fresh, options)
        if cached is not None:
            return cached
        first = partial(self._request_and_cache, request, type_, params)
        return await self._with_input(first, request.method, type_, params, total_timeout, options)

    def _from_cache(
        self, request: CacheableRequest, type_: type[C], fresh: bool, options: Mapping[str, Any]
    ) -> C | None:
        raw = self._raw_from_cache(request, fresh, options)
        return None if raw is None else self._reader.read(request.method, type_, raw)

    def _raw_from_cache(self, request: CacheableRequest, fresh: bool, options: Mapping[str, Any]) -> Raw | None:
        """Return a cached result; None for a request with its own `meta`, which the result may depend on."""
        return None if fresh or options.get("meta") else self._cache.get(request, time.monotonic())

    async def _request_and_cache(self, request: CacheableRequest, type_: type[C], params: Any, **options: Any) -> C:
        return (await self._request_with_size(request, type_, params, **options))[0]

    async def _request_with_size(
        self, request: CacheableRequest, type_: type[C], params: Any, **options: Any
    ) -> tuple[C, int]:
        changes = self._cache.generation(request.method)
        raw = await self.raw(request.method, params, **options)
        result = self._reader.read(request.method, type_, raw)
        if self._is_caching and not options.get("meta"):
            self._cache.put(request, raw, result, changes, time.monotonic())
        return result, len(raw)

    async def all(
        self, method: str, type_: type[Any], items: Callable[[Any], list[T]], *, fresh: bool = False, **timeouts: Any
    ) -> list[T]:
        """Return all items of a list. Follows all cursors, also an empty one, within the limits.

        Raises `RemoteProtocolError` for a list with more pages, items or bytes.
        """
        collected: list[T] = []
        size = 0
        cursor: str | None = None
        for _ in range(self._limits.client.pages):
            params = None if cursor is None else PaginatedParams(cursor=cursor)
            try:
                result, result_size = await self._cached_or_requested(
                    CacheableRequest(method, cursor), type_, params, fresh, timeouts
                )
            except InvalidParams:
                if cursor is None:
                    raise
                # "the client SHOULD discard all cached pages and re-fetch from the beginning" (Caching)
                self._cache.invalidate_method(method)
                if fresh:
                    raise
                return await self.all(method, type_, items, fresh=True, **timeouts)
            collected += items(result)
            size += result_size
            if len(collected) > self._limits.client.items or size > self._limits.client.list_bytes:
                break
            cursor = result.next_cursor
            if cursor is None:
                return collected
        limits = self._limits.client
        raise RemoteProtocolError(
            f"{method} is too long: {len(collected):,} items in {size:,} bytes so far (limits: {limits.pages:,} pages, "
            f"{limits.items:,} items, {limits.list_bytes:,} bytes: ClientLimits.pages, items, list_bytes)"
        )

    # --- log level ---------------------------------------------------------------------------------------------

    async def set_level(self, level: LoggingLevel) -> None:
        """Request log messages from `level` on: at once, or with each later request.

        Raises `NotSupported` if the revision has a request for it and the server does not support it, and
        `LocalProtocolError` for an invalid level.
        """
        level = _check_level(level)
        if _has_set_level(await self._connection.ready(self.timeout)):
            await self.raw(_SET_LEVEL, SetLevelParams(level=level))
        self._level = level
        self._set_level_meta(self._connection.connection)

    async def use(self, connection: Connection) -> None:
        """Adopt the rules of a new connection, and set its log level.

        Raises `ConnectionLost` when it dies meanwhile.
        """
        self._set_level_meta(connection)
        session = connection.session
        self._is_caching = session.rules.cache_hints
        peer = session.peer_info
        self.accepts_tasks = session.rules.extension_tasks
        self.may_request_tasks = session.rules.requested_tasks and peer is not None and peer.declares(TOOL_TASKS)
        if self._level is None or not _has_set_level(connection):
            return
        try:
            await connection.request(_SET_LEVEL, SetLevelParams(level=self._level), timeout=self.timeout)
        except NotSupported:
            log.info("accord: %s has no log messages", connection.transport.name)
        except (ProtocolError, RequestTimeout) as exc:
            name, reason = connection.transport.name, log_line(exc)
            log.warning("accord: %s does not take the log level %s: %s", name, self._level, reason)

    def _set_level_meta(self, connection: Connection) -> None:
        """Set the log level in `_meta` where the revision has it, as many servers log without declaring it."""
        in_meta = self._level is not None and not _has_set_level(connection)
        self._meta = {LOG_LEVEL: self._level} if in_meta else {}


def _has_set_level(connection: Connection) -> bool:
    """Return whether a request sets the log level of the connection; otherwise each request carries it."""
    return _SET_LEVEL in table(connection.revision, "client")


def _check_level(level: LoggingLevel) -> LoggingLevel:
    if level not in get_args(LoggingLevel):
        raise LocalProtocolError(f"{level!r} is not a log level; use one of {', '.join(get_args(LoggingLevel))}")
    return level
