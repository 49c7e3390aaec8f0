"""The cache of results that a server allows clients to store (2026-07-28, Caching). No I/O and no clock: `now` is
passed in.

Clients of one thread may share a `Cache`. `public` results are shared between the clients of a server; `private`
results stay with the client that received them. A result is stale after its `ttlMs`, and as soon as the server reports
a change. Each page of a list is a separate result.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterable
from typing import TypeAlias

import msgspec
from msgspec import Raw

from accord.client.uri_index import URIIndex
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages.meta import CacheableResult

INVALIDATED_BY: dict[str, tuple[str, ...]] = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list", "skills/list"),
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


_Group: TypeAlias = tuple[Hashable, object, str]
"""The server, the owner and the method of results."""


class Cache:
    """Results by server and request, bounded by `limits`: `cache_entries`, `cache_bytes`, `cache_seconds`.

    The least recently used result is dropped first; with `off` the cache stores nothing. Several clients can share
    one: `Client(cache=...)`.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, off: bool = False) -> None:
        self._limits = msgspec.structs.replace(limits.client, cache_entries=0) if off else limits.client
        self._entries: OrderedDict[_CacheKey, _CacheEntry] = OrderedDict()
        self._groups: dict[_Group, dict[_CacheKey, None]] = {}
        self._uris: dict[_Group, URIIndex] = {}
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
        self._drop([key])
        self._entries[key] = _CacheEntry(raw, stale_at)
        self.bytes += len(raw)
        group = _group(key)
        self._groups.setdefault(group, {})[key] = None
        if key.request.method == READ_METHOD:
            self._uris.setdefault(group, URIIndex()).add(key.request.key or "")
        while len(self._entries) > self._limits.cache_entries or self.bytes > self._limits.cache_bytes:
            self._drop([next(iter(self._entries))])

    def _drop(self, keys: Iterable[_CacheKey]) -> None:
        for key in keys:
            entry = self._entries.pop(key, None)
            if entry is not None:
                self.bytes -= len(entry.raw)
                self._remove_from_index(key)

    def _remove_from_index(self, key: _CacheKey) -> None:
        group = _group(key)
        if key.request.method == READ_METHOD:
            self._uris[group].remove(key.request.key or "")
        del self._groups[group][key]
        if not self._groups[group]:
            del self._groups[group]
            self._uris.pop(group, None)

    def _of(self, group: _Group) -> list[_CacheKey]:
        return list(self._groups.get(group, ()))

    def _related(self, group: _Group, uri: str) -> list[_CacheKey]:
        """Return the results of a resource, of its sub-resources, and of those that it is a part of."""
        server, owner, method = group
        uris = self._uris[group].related(uri) if group in self._uris else ()
        return [_CacheKey(server, owner, CacheableRequest(method, each)) for each in uris]


def _group(key: _CacheKey) -> _Group:
    return key.server, key.owner, key.request.method


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
        self._cache._generations[self._server, method] += 1
        for owner in (self._owner, None):
            self._cache._drop(self._cache._of((self._server, owner, method)))

    def invalidate_resource(self, uri: str) -> None:
        """Drop a changed resource, its sub-resources, and the resources that it is a part of."""
        self._cache._generations[self._server, READ_METHOD] += 1
        for owner in (self._owner, None):
            self._cache._drop(self._cache._related((self._server, owner, READ_METHOD), uri))

    def on_notification(self, name: str) -> None:
        """Drop the lists that a notification makes stale."""
        for method in INVALIDATED_BY.get(name, ()):
            self.invalidate_method(method)

    def clear(self) -> None:
        """Drop all results of this server, which another server may have replaced."""
        for method in _METHODS:
            self.invalidate_method(method)
