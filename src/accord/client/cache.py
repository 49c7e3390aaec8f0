"""The cache of results that a server allows clients to store (2026-07-28, Caching). No I/O and no clock: `now` is
passed in.

Clients of one thread may share a `Cache`. `public` results are shared between the clients of a server; `private`
results stay with the client that received them. A result is stale after its `ttlMs`, and as soon as the server reports
a change. Each page of a list is a separate result.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import msgspec
from msgspec import Raw

from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages.meta import CacheableResult

INVALIDATED_BY: dict[str, tuple[str, ...]] = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
}
"""The lists that each notification makes stale."""

READ_METHOD = "resources/read"
_METHODS = {READ_METHOD, *(method for methods in INVALIDATED_BY.values() for method in methods)}


class CacheableRequest(msgspec.Struct, frozen=True):
    """The parts of a request that its result depends on: the cursor of a page, or a URI."""

    method: str
    key: str | None = None


class _CacheKey(msgspec.Struct, frozen=True):
    server: Hashable
    owner: object | None
    """The client of a private result, or None for a public one."""
    request: CacheableRequest


class _CacheEntry(msgspec.Struct):
    raw: bytes
    stale_at: float


class Cache:
    """Results by server and request, bounded by `limits`: `cache_entries`, `cache_bytes`, `cache_seconds`.

    The least recently used result is dropped first; with `off` the cache stores nothing. Several clients can share
    one: `Client(cache=...)`.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, off: bool = False) -> None:
        self._limits = msgspec.structs.replace(limits.client, cache_entries=0) if off else limits.client
        self._entries: OrderedDict[_CacheKey, _CacheEntry] = OrderedDict()
        self._generations: Counter[tuple[Hashable, str]] = Counter()
        self.bytes: int = 0
        """The size of the cached results in bytes."""

    def __len__(self) -> int:
        return len(self._entries)

    def _get(self, key: _CacheKey, now: float) -> bytes | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if now >= entry.stale_at:
            self._drop([key])
            return None
        self._entries.move_to_end(key)
        return entry.raw

    def _put(self, key: _CacheKey, raw: bytes, stale_at: float) -> None:
        if len(raw) > self._limits.cache_bytes:
            return
        self._entries[key] = _CacheEntry(raw, stale_at)
        self.bytes += len(raw)
        while len(self._entries) > self._limits.cache_entries or self.bytes > self._limits.cache_bytes:
            self._drop([next(iter(self._entries))])

    def _drop(self, keys: Iterable[_CacheKey]) -> None:
        for key in keys:
            entry = self._entries.pop(key, None)
            self.bytes -= len(entry.raw) if entry is not None else 0

    def _of(self, server: Hashable, owner: object) -> list[_CacheKey]:
        return [key for key in self._entries if key.server == server and key.owner in (None, owner)]


class ClientCache:
    """The part of a cache that one client may read. `server` identifies its server.

    Without `stores_private`, only public results are stored: the user of the client may change between requests.
    """

    def __init__(self, cache: Cache, server: Hashable, *, stores_private: bool = True) -> None:
        self._cache = cache
        self._server = server
        self._owner = object()
        self._stores_private = stores_private

    def get(self, request: CacheableRequest, now: float) -> Raw | None:
        """Return a fresh result, or None."""
        for owner in (self._owner, None):
            raw = self._cache._get(_CacheKey(self._server, owner, request), now)
            if raw is not None:
                return Raw(raw)
        return None

    def generation(self, method: str) -> int:
        """Return the number of changes of the results of `method`; read it before a request, and pass it to `put`."""
        return self._cache._generations[self._server, method]

    def put(self, request: CacheableRequest, raw: Raw, hints: CacheableResult, changes: int, now: float) -> None:
        """Store a result that was just received, for as long as `hints` allow, in place of older ones.

        A result that changed while its request was in flight is not stored.
        """
        keys = [_CacheKey(self._server, owner, request) for owner in (self._owner, None)]
        self._cache._drop(keys)
        # "If ttlMs is negative, clients SHOULD ignore it and treat it as 0"; absent is 0, and private
        seconds = min(hints.ttl_ms or 0, int(1000 * self._cache._limits.cache_seconds)) / 1000
        is_public = hints.cache_scope == "public"
        if seconds > 0 and changes == self.generation(request.method) and (is_public or self._stores_private):
            self._cache._put(keys[1] if is_public else keys[0], bytes(raw), now + seconds)

    def invalidate_method(self, method: str) -> None:
        """Drop the results of `method`, on all pages."""
        self._invalidate(method, lambda _: True)

    def invalidate_resource(self, uri: str) -> None:
        """Drop a changed resource, its sub-resources, and the resources that it is a part of."""
        self._invalidate(READ_METHOD, lambda cached_uri: is_part(cached_uri, uri) or is_part(uri, cached_uri))

    def _invalidate(self, method: str, is_affected: Callable[[Any], bool]) -> None:
        self._cache._generations[self._server, method] += 1
        keys = (key for key in self._cache._of(self._server, self._owner) if key.request.method == method)
        self._cache._drop([key for key in keys if is_affected(key.request.key)])

    def on_notification(self, name: str) -> None:
        """Drop the lists that a notification makes stale."""
        for method in INVALIDATED_BY.get(name, ()):
            self.invalidate_method(method)

    def clear(self) -> None:
        """Drop all results of this server, which another server may have replaced."""
        for method in _METHODS:
            self.invalidate_method(method)


def is_part(uri: str, of: str) -> bool:
    """Return whether `uri` is `of` or in it: updates may name "a sub-resource of the one [...] subscribed to"."""
    base = of.rstrip("/")
    return uri == of or (uri.startswith(base) and uri[len(base) : len(base) + 1] in ("/", "?", "#"))
