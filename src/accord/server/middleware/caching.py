"""`Caching`: a middleware that reuses results of equal requests; and its stores: the contract, and the memory of this
process.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, Set
from hashlib import blake2b
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from msgspec import Raw

from accord.errors import DeclarationError
from accord.messages import codec
from accord.messages.duplicate_members import has_duplicates
from accord.messages.prompts import GetPromptResult
from accord.messages.resources import ReadResourceResult
from accord.schema.json_values import ordered_json, to_json
from accord.server.core.context import RunningServer
from accord.server.core.principal import Principal
from accord.server.core.results import EncodedToolResult
from accord.server.input.request_state import canonical
from accord.server.middleware.request import CallNext, Request
from accord.session.pending_request import PendingRequest

_Result = tuple[bytes, float]
"""The encoded result, and its expiry."""


class ResultStore(Protocol):
    """A store of results by key. The public contract for stores of your own, which several processes may share.

    Any method may raise: then the result is not cached, and the error is logged. A key begins with its method, up to
    the first space.
    """

    async def get(self, key: str) -> bytes | None:
        """Return the stored value; None if there is none or it has expired."""

    async def put(self, key: str, value: bytes, seconds: float) -> None:
        """Store a value for `seconds`, replacing the previous one; or not, without room."""

    async def clear(self, prefix: str = "") -> None:
        """Remove all keys with this prefix."""


class MemoryResults:
    """A `ResultStore` in the memory of this process: at most `most` results, of `bytes` together.

    The least recently used one is evicted first. `clock` returns seconds. Raises `DeclarationError` for bounds below 1.
    """

    def __init__(self, most: int = 1000, bytes: int = 16 << 20, *, clock: Callable[[], float] = time.monotonic) -> None:
        if most < 1 or bytes < 1:
            raise DeclarationError(f"most and bytes must be 1 or more, not {most} and {bytes}")
        self._most = most
        self._bytes = bytes
        self._clock = clock
        self._results: OrderedDict[str, _Result] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._results)

    async def get(self, key: str) -> bytes | None:
        """See `ResultStore.get`."""
        value, ends = self._results.get(key, (None, 0.0))
        if value is None:
            return None
        if self._clock() >= ends:
            self._drop(key)
            return None
        self._results.move_to_end(key)
        return value

    async def put(self, key: str, value: bytes, seconds: float) -> None:
        """See `ResultStore.put`. A value larger than `bytes` is not stored."""
        self._drop(key)
        if len(value) > self._bytes:
            return
        self._results[key] = value, self._clock() + seconds
        self._size += len(value)
        while len(self._results) > self._most or self._size > self._bytes:
            self._drop(next(iter(self._results)))

    async def clear(self, prefix: str = "") -> None:
        """See `ResultStore.clear`."""
        for key in [key for key in self._results if key.startswith(prefix)]:
            self._drop(key)

    def _drop(self, key: str) -> None:
        value, _ = self._results.pop(key, (b"", 0.0))
        self._size -= len(value)


log: logging.Logger = logging.getLogger("accord.server")

READ = "resources/read"
_RESULTS: dict[str, type] = {"tools/call": EncodedToolResult, "prompts/get": GetPromptResult, READ: ReadResourceResult}


class Caching:
    """A middleware that caches results for `seconds`, and returns them for equal requests: `Caching(seconds=60)`.

    Applies to resources, prompts, and tools marked `readOnlyHint`; or to the named `tools`, whatever their annotations.
    Requests are equal with the same server, principal and scopes, method, name, version, arguments, revision, and
    `key(request)`, for results that depend on more (None: not cached). Never cached: errors, results of calls that
    requested input from the client, and of those that read something else of the client (`Request.reads`: headers,
    roots, client, `_meta`, session, state), unless `key` has read that too.

    Concurrent equal requests run once, unless the function takes a context: then it may wait for a user. The cache is
    cleared when the registrations of the server change, resources when `resource_updated` reports a change, and by
    `clear()`. It holds at most `most` results of `bytes` together; or as many as a `store` of your own. Raises
    `DeclarationError` for invalid bounds.
    """

    def __init__(
        self,
        seconds: float = 60,
        most: int = 1000,
        *,
        bytes: int = 16 << 20,
        tools: Collection[str] | None = None,
        key: Callable[[Request], str | None] | None = None,
        store: ResultStore | None = None,
    ) -> None:
        if not seconds > 0:
            raise DeclarationError(f"seconds must be more than 0, not {seconds}")
        self._seconds = seconds
        self._tools = None if tools is None else frozenset(tools)
        self._extra = key
        self._store: ResultStore = MemoryResults(most, bytes) if store is None else store
        self._in_flight: dict[tuple[asyncio.AbstractEventLoop, str], asyncio.Future[bool]] = {}
        self._entered: set[PendingRequest] = set()
        """Requests that it caches: it may be around a call a second time, as of a server and of a mounted one."""
        self._servers: WeakKeyDictionary[RunningServer, str] = WeakKeyDictionary()
        self._named: Counter[str] = Counter()
        self._edition = 0
        self._stale: dict[str, int] = {}
        """The prefixes of keys that the store may have stale results of, by the edition since which."""
        self._clearing: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}

    async def clear(self) -> None:
        """Remove all results. Results of running requests are not cached either."""
        self._invalidate("")
        await self._clear_stale()

    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        """See `Server.add_middleware`."""
        before = dict(request.reads)
        extra = self._extra(request) if self._extra is not None else ""
        covered = {*_read_since(before, request), "principal"}
        if not request.apart[1]:
            covered.add("state")  # empty for all: values in it come from inner middleware and the handler
        pending = request.inside[3]
        if extra is None or pending in self._entered or not self._is_cacheable(request):
            return await call_next(request)
        key = self._key(request, extra)
        if key is None:
            return await call_next(request)
        self._entered.add(pending)
        try:
            return await self._get_or_compute(request, call_next, key, covered)
        finally:
            self._entered.discard(pending)

    async def _get_or_compute(self, request: Request, call_next: CallNext, key: str, covered: Collection[str]) -> Any:
        cached = await self._cached(request, key)
        if cached is not None:
            return cached
        if request.may_ask:
            return await self._compute(request, call_next, key, covered)
        return await self._single_flight(request, call_next, key, covered)

    # --- keys --------------------------------------------------------------------------------------------------

    def _key(self, request: Request, extra: str) -> str | None:
        """Return the key of equal requests; None if the principal has an attribute that is not JSON, and for arguments
        with a duplicate member, which the handler refuses.
        """
        identity = [self._identity(request.server), request.local, _of(request.principal)]
        target = [request.asked_for, request.version, request.revision, request.apart, extra]
        _, arguments, _, _ = request.inside
        given = bytes(arguments) if isinstance(arguments, Raw) else codec.encode(arguments or {})
        same = canonical(given, ordered_json)  # 1 and 1.0 differ for some handlers; raises if nested too deep
        if has_duplicates(given):
            return None
        try:
            encoded = to_json([identity, target])
        except ValueError:
            return None
        return f"{request.method} {blake2b(encoded + same, digest_size=24).hexdigest()}"

    def _is_cacheable(self, request: Request) -> bool:
        tool = request.tool
        if tool is None:
            return request.method in _RESULTS
        if self._tools is not None:
            return request.name in self._tools
        return tool.annotations is not None and bool(tool.annotations.read_only_hint)

    # --- computing ---------------------------------------------------------------------------------------------

    async def _single_flight(self, request: Request, call_next: CallNext, key: str, covered: Collection[str]) -> Any:
        """Compute the result once; concurrent equal requests wait for it, and compute it themselves if it cannot be
        cached.
        """
        place = asyncio.get_running_loop(), key
        while (flight := self._in_flight.get(place)) is not None:
            await asyncio.wait((flight,))
            cached = await self._cached(request, key)
            if cached is not None:
                return cached
            if flight.result():  # the result cannot be cached: each request computes its own
                return await call_next(request)
        flight = self._in_flight[place] = place[0].create_future()
        ended = False
        try:
            value = await self._compute(request, call_next, key, covered)
            ended = True
            return value
        except Exception:
            ended = True
            raise
        finally:
            del self._in_flight[place]
            flight.set_result(ended)  # otherwise it was cancelled: the next request takes its place

    async def _compute(self, request: Request, call_next: CallNext, key: str, covered: Collection[str]) -> Any:
        """Compute the result, and cache it if it depends only on attributes in the key, which `covered` names."""
        edition, before = self._edition, dict(request.reads)
        value = await call_next(request)
        if request.asked or not _read_since(before, request).issubset(covered):
            return value
        result = request.pack(value)
        good = type(result) is _RESULTS[request.method] and not getattr(result, "is_error", None)
        if good and edition == self._edition:
            await self._ignore_errors(self._store.put(key, codec.encode(result), self._seconds))
            if edition != self._edition:  # changed meanwhile: the store may have been cleared before
                self._stale[request.method] = self._edition
        return value

    async def _cached(self, request: Request, key: str) -> Any:
        await self._refresh()
        if self._stale:
            return None
        return await self._ignore_errors(self._stored(request, key))

    async def _stored(self, request: Request, key: str) -> Any:
        found = await self._store.get(key)
        return None if found is None else codec.decoder(_RESULTS[request.method]).decode(found)

    async def _ignore_errors(self, work: Awaitable[Any]) -> Any:
        """Await an operation of the store, and log its errors instead of failing the request."""
        try:
            return await work
        except Exception as exc:
            _warn(exc)
            return None

    # --- invalidation ------------------------------------------------------------------------------------------

    def _identity(self, server: RunningServer) -> str:
        """Return the identity of a server: its name and version, and its number among those with the same. The first
        call subscribes to its changes, before any of its results is cached.
        """
        known = self._servers.get(server)
        if known is None:
            named = f"{server.name} {server.info.version}"
            self._named[named] += 1
            known = self._servers[server] = f"{self._named[named]} {named}"
            server.change_bus.add_listener(lambda what, uri: self._invalidate("" if what else READ))
        return known

    def _invalidate(self, prefix: str) -> None:
        """Mark all keys with this prefix as stale; callable from any thread."""
        self._edition += 1
        self._stale[prefix] = self._edition

    async def _refresh(self) -> None:
        """Remove stale results, once for all requests that wait for it. While the store cannot remove them, they stay
        marked, and nothing is read from it.
        """
        if not self._stale:
            return
        loop = asyncio.get_running_loop()
        if loop not in self._clearing:
            self._clearing[loop] = loop.create_task(self._clear_stale())
            self._clearing[loop].add_done_callback(lambda _: self._clearing.pop(loop))
        await asyncio.wait((self._clearing[loop],))  # the end of one request ends it for no other

    async def _clear_stale(self) -> None:
        for prefix, edition in list(self._stale.items()):
            try:
                await self._store.clear(prefix)
            except Exception as exc:
                _warn(exc)
                return
            newest = self._stale.pop(prefix, edition)
            if newest != edition:  # changed again meanwhile
                self._stale[prefix] = newest


def _warn(exc: Exception) -> None:
    log.warning("accord: a store of results failed, so nothing is kept: %s", exc)


def _read_since(before: Mapping[str, int], request: Request) -> set[str]:
    return {what for what, count in request.reads.items() if count != before.get(what)}


def _of(principal: Principal | None) -> Any:
    """Return all attributes of a principal, in a fixed order."""
    if principal is None:
        return None
    fields = {name: getattr(principal, name) for name in principal.__struct_fields__}
    return {name: _plain(value) for name, value in sorted(fields.items())}


def _plain(value: Any) -> Any:
    if isinstance(value, Set):
        return sorted(value)
    return dict(value) if isinstance(value, Mapping) else value
