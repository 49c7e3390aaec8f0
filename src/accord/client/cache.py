"""Results that a server lets its clients keep (2026-07-28, Caching). No I/O and no clock: `now` is passed in.

A `Cache` may be shared between clients of one thread. What a server calls `public` is then shared between the
clients of that server; what is `private` stays with the client that got it. A result is stale after its `ttlMs`, and
at once when the server says that it has changed. Each page of a list is a result of its own.
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
"""Which lists a notification makes stale."""

READ_METHOD = "resources/read"
_METHODS = {READ_METHOD, *(method for methods in INVALIDATED_BY.values() for method in methods)}


class CacheableRequest(msgspec.Struct, frozen=True):
    """What is asked, as far as the answer depends on it: the cursor of a page, or a URI."""

    method: str
    key: str | None = None


class _CacheKey(msgspec.Struct, frozen=True):
    server: Hashable
    owner: object | None
    """The client that may have it; None for all clients of the server."""
    request: CacheableRequest


class _CacheEntry(msgspec.Struct):
    raw: bytes
    stale_at: float


class Cache:
    """Results by server and request, bounded by `limits`: `cache_entries`, `cache_bytes`, `cache_seconds`.

    The one that was not used for the longest time goes first; with `off` none is kept. Give one to several clients as
    `Client(cache=...)`.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, off: bool = False) -> None:
        self._limits = msgspec.structs.replace(limits.client, cache_entries=0) if off else limits.client
        self._entries: OrderedDict[_CacheKey, _CacheEntry] = OrderedDict()
        self._generations: Counter[tuple[Hashable, str]] = Counter()
        self.bytes: int = 0
        """Bytes of the results that are kept."""

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
    """What one client may have from a cache. `server` says whom it asks."""

    def __init__(self, cache: Cache, server: Hashable) -> None:
        self._cache = cache
        self._server = server
        self._owner = object()

    def get(self, request: CacheableRequest, now: float) -> Raw | None:
        """A result that is still fresh; None where there is none."""
        for owner in (self._owner, None):
            raw = self._cache._get(_CacheKey(self._server, owner, request), now)
            if raw is not None:
                return Raw(raw)
        return None

    def generation(self, method: str) -> int:
        """How often the answers to `method` have changed so far: take it before asking, and give it to `put`."""
        return self._cache._generations[self._server, method]

    def put(self, request: CacheableRequest, raw: Raw, hints: CacheableResult, changes: int, now: float) -> None:
        """Keep a result that came just now, in the place of any that was kept before, as long as `hints` allow.

        What has changed while it was under way is not kept.
        """
        both = [_CacheKey(self._server, owner, request) for owner in (self._owner, None)]
        self._cache._drop(both)
        # "If ttlMs is negative, clients SHOULD ignore it and treat it as 0"; absent is 0, and private
        seconds = min(hints.ttl_ms or 0, int(1000 * self._cache._limits.cache_seconds)) / 1000
        if seconds > 0 and changes == self.generation(request.method):
            key = both[1] if hints.cache_scope == "public" else both[0]
            self._cache._put(key, bytes(raw), now + seconds)

    def invalidate_method(self, method: str) -> None:
        """The server says that its answers to `method` are others now, on all pages."""
        self._invalidate(method, lambda _: True)

    def invalidate_resource(self, uri: str) -> None:
        """The server says that a resource is another now, and with it its parts and what it is a part of."""
        self._invalidate(READ_METHOD, lambda known: is_part(known, uri) or is_part(uri, known))

    def _invalidate(self, method: str, concerns: Callable[[Any], bool]) -> None:
        self._cache._generations[self._server, method] += 1
        mine = (key for key in self._cache._of(self._server, self._owner) if key.request.method == method)
        self._cache._drop([key for key in mine if concerns(key.request.key)])

    def on_notification(self, name: str) -> None:
        """Take a notification that a list has changed into account."""
        for method in INVALIDATED_BY.get(name, ()):
            self.invalidate_method(method)

    def clear(self) -> None:
        """Keep nothing of this server: another one may have taken its place."""
        for method in _METHODS:
            self.invalidate_method(method)


def is_part(uri: str, of: str) -> bool:
    """Whether `uri` is `of` or a part of it: an update may name "a sub-resource of the one [...] subscribed to"."""
    whole = of.rstrip("/")
    return uri == of or (uri.startswith(whole) and uri[len(whole) : len(whole) + 1] in ("/", "?", "#"))
