"""A request of a client, from its params to what the server made of it.

On its way out it takes the log level with it, where the revision has it in each request; it may be answered from the
cache; its answer is read; and where that asks for input, it goes out again with it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar, get_args

from msgspec import Raw

from accord.client.answers import InputRequired, Reader
from accord.client.cache import Kept, Request
from accord.client.repeat import MayRepeat, Stay
from accord.client.rounds import Rounds
from accord.client.supervise import Link
from accord.errors import (
    InvalidParams,
    LocalProtocolError,
    NotSupported,
    ProtocolError,
    RemoteProtocolError,
    RequestTimeout,
    UrlElicitationRequired,
)
from accord.limits import Limits
from accord.messages.base import LoggingLevel, Meta
from accord.messages.logging import SetLevelParams
from accord.messages.meta import LOG_LEVEL, CacheableResult, InputResponseParams, PaginatedParams, Result, check_meta
from accord.messages.methods import table
from accord.transport.connection import Connection

log: logging.Logger = logging.getLogger("accord.client")

T = TypeVar("T")
C = TypeVar("C", bound=CacheableResult)
P = TypeVar("P", bound=InputResponseParams)
R = TypeVar("R", bound=Result)

_SET_LEVEL = "logging/setLevel"


async def safely() -> bool:
    """A request that changes nothing may be sent twice."""
    return True


async def never() -> bool:
    """A request that nothing is known of must not be sent twice."""
    return False


class Requests:
    """The requests of one client. `timeout` and `total_timeout` (seconds) hold where a request has none of its own."""

    def __init__(
        self,
        link: Link,
        reader: Reader,
        rounds: Rounds,
        kept: Kept,
        limits: Limits,
        timeout: float | None,
        total_timeout: float | None,
        level: LoggingLevel | None,
    ) -> None:
        self._link = link
        self._reader = reader
        self._rounds = rounds
        self._kept = kept
        self._limits = limits
        self.timeout: float | None = timeout
        self.total_timeout: float | None = total_timeout
        self._meta: Meta = {}
        """What every request carries."""
        self._keeps = False
        self._level = None if level is None else _checked(level)

    async def raw(
        self,
        method: str,
        params: Any = None,
        *,
        meta: Meta | None = None,
        timeout: float | None = None,
        total_timeout: float | None = None,
        may_repeat: MayRepeat = safely,
        stay: Stay | None = None,
        on_progress: Any = None,
        on_sent: Any = None,
    ) -> Raw:
        """Ask; the result as it came. Raises what `Link.ask` raises, and `LocalProtocolError` for a wrong `meta`."""
        if meta is not None:
            check_meta(meta)
        return await self._link.ask(
            method,
            params,
            meta={**self._meta, **meta} if meta and self._meta else meta or self._meta or None,
            on_progress=on_progress,
            on_sent=on_sent,
            may_repeat=may_repeat,
            stay=Stay() if stay is None else stay,
            timeout=self.timeout if timeout is None else timeout,
            total_timeout=self.total_timeout if total_timeout is None else total_timeout,
        )

    async def read(self, method: str, type_: type[R], params: Any, **options: Any) -> R:
        """Ask, and read the result. Raises `InvalidResult` too."""
        return self._reader.read(method, type_, await self.raw(method, params, **options))

    async def read_open(self, method: str, type_: type[T], params: Any, **options: Any) -> T | Any:
        """As `read`, with the results that extensions have."""
        return self._reader.read_open(method, type_, await self.raw(method, params, **options))

    async def in_rounds(
        self, method: str, type_: type[R], params: P, *, total_timeout: float | None = None, **options: Any
    ) -> R:
        """As `read`; what the server needs to know for it is answered, and the request sent again.

        The params of a request that is sent again say so: they have `input_responses` or `request_state`.
        """
        first = partial(self.read, method, type_, params)
        return await self._in_rounds(first, method, type_, params, total_timeout, options)

    async def _in_rounds(
        self,
        first: Callable[..., Awaitable[R]],
        method: str,
        type_: type[R],
        params: P,
        total: float | None,
        options: Mapping[str, Any],
    ) -> R:
        """The result of `first`, or of the rounds that begin with it."""
        stay = Stay()

        async def send(params: P, total: float | None) -> R:
            return await self.read(method, type_, params, total_timeout=total, stay=stay, **options)

        total = self.total_timeout if total is None else total
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            return await first(total_timeout=total, stay=stay, **options)
        except UrlElicitationRequired as error:
            self._rounds.asked.must_visit(error)
            raise
        except InputRequired as required:
            left = None if total is None else total - (loop.time() - began)
            return await self._rounds.run(required, stay, params, send, left)

    # --- what may be kept --------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Keep nothing."""
        self._kept.clear()

    async def kept(self, request: Request, type_: type[C], params: Any, *, fresh: bool = False, **options: Any) -> C:
        """As `read`, or from the cache; `fresh` asks the server in any case."""
        return (await self._kept_or_asked(request, type_, params, fresh, options))[0]

    async def _kept_or_asked(
        self, request: Request, type_: type[C], params: Any, fresh: bool, options: Mapping[str, Any]
    ) -> tuple[C, int]:
        """A result and its bytes, from the cache or from the server."""
        raw = self._raw_from_cache(request, fresh, options)
        if raw is None:
            return await self._ask_and_keep(request, type_, params, **options)
        return self._reader.read(request.method, type_, raw), len(raw)

    async def kept_in_rounds(
        self,
        request: Request,
        type_: type[C],
        params: P,
        *,
        fresh: bool = False,
        total_timeout: float | None = None,
        **options: Any,
    ) -> C:
        """As `in_rounds`, or from the cache.

        "Results produced by retrying a request [...] MUST NOT be cached, as they depend on inputs that are not part
        of the cache key" (Caching).
        """
        found = self._from_cache(request, type_, fresh, options)
        if found is not None:
            return found
        first = partial(self._keep, request, type_, params)
        return await self._in_rounds(first, request.method, type_, params, total_timeout, options)

    def _from_cache(self, request: Request, type_: type[C], fresh: bool, options: Mapping[str, Any]) -> C | None:
        raw = self._raw_from_cache(request, fresh, options)
        return None if raw is None else self._reader.read(request.method, type_, raw)

    def _raw_from_cache(self, request: Request, fresh: bool, options: Mapping[str, Any]) -> Raw | None:
        """What was kept; nothing for a request with a `meta` of its own, which the answer may depend on."""
        return None if fresh or options.get("meta") else self._kept.get(request, time.monotonic())

    async def _keep(self, request: Request, type_: type[C], params: Any, **options: Any) -> C:
        return (await self._ask_and_keep(request, type_, params, **options))[0]

    async def _ask_and_keep(self, request: Request, type_: type[C], params: Any, **options: Any) -> tuple[C, int]:
        changes = self._kept.changes(request.method)
        raw = await self.raw(request.method, params, **options)
        result = self._reader.read(request.method, type_, raw)
        if self._keeps and not options.get("meta"):
            self._kept.put(request, raw, result, changes, time.monotonic())
        return result, len(raw)

    async def all(
        self, method: str, type_: type[Any], items: Callable[[Any], list[T]], *, fresh: bool = False, **timeouts: Any
    ) -> list[T]:
        """All items of a list. Follows the cursors: an empty one too, and no further than the limits.

        Raises `RemoteProtocolError` for a list with more pages, items or bytes.
        """
        found: list[T] = []
        size = 0
        cursor: str | None = None
        for _ in range(self._limits.pages):
            params = None if cursor is None else PaginatedParams(cursor=cursor)
            try:
                result, taken = await self._kept_or_asked(Request(method, cursor), type_, params, fresh, timeouts)
            except InvalidParams:
                if cursor is None:
                    raise
                # "the client SHOULD discard all cached pages and re-fetch from the beginning" (Caching)
                self._kept.changed(method)
                if fresh:
                    raise
                return await self.all(method, type_, items, fresh=True, **timeouts)
            found += items(result)
            size += taken
            if len(found) > self._limits.items or size > self._limits.list_bytes:
                break
            cursor = result.next_cursor
            if cursor is None:
                return found
        limits = self._limits
        raise RemoteProtocolError(
            f"{method} is too long: {len(found):,} items in {size:,} bytes so far (limits: {limits.pages:,} pages, "
            f"{limits.items:,} items, {limits.list_bytes:,} bytes)"
        )

    # --- log level ---------------------------------------------------------------------------------------------

    async def set_level(self, level: LoggingLevel) -> None:
        """Ask for log messages from `level` on: at once, or with each request from now on.

        Raises `NotSupported` when that is asked for by a request and the server has none, `LocalProtocolError` for what
        is no level.
        """
        level = _checked(level)
        if _is_asked_for(await self._link.ready(self.timeout)):
            await self.raw(_SET_LEVEL, SetLevelParams(level=level))
        self._level = level
        self._carry(self._link.connection)

    async def use(self, connection: Connection) -> None:
        """Go by the rules of another connection, and want the same log messages from it.

        Raises `ConnectionLost` when it dies meanwhile.
        """
        self._carry(connection)
        self._keeps = connection.session.rules.cache_hints
        if self._level is None or not _is_asked_for(connection):
            return
        try:
            await connection.ask(_SET_LEVEL, SetLevelParams(level=self._level), timeout=self.timeout)
        except NotSupported:
            log.info("accord: %s has no log messages", connection.transport.name)
        except (ProtocolError, RequestTimeout) as exc:
            log.warning("accord: %s does not take the log level %s: %s", connection.transport.name, self._level, exc)

    def _carry(self, connection: Connection) -> None:
        """Where each request carries the level it does, whatever the server says it offers: many send logs unsaid."""
        carries = self._level is not None and not _is_asked_for(connection)
        self._meta = {LOG_LEVEL: self._level} if carries else {}


def _is_asked_for(connection: Connection) -> bool:
    """Whether a request sets the log level for the connection; otherwise each request carries it."""
    return _SET_LEVEL in table(connection.revision, "client")


def _checked(level: LoggingLevel) -> LoggingLevel:
    if level not in get_args(LoggingLevel):
        raise LocalProtocolError(f"{level!r} is no log level; there are {', '.join(get_args(LoggingLevel))}")
    return level
