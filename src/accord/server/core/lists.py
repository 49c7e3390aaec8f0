"""The four lists, as one client may see them.

If all clients see the same list, its pages are encoded once, see `pages`. If it depends on the principal, or on
middleware, it is built for each request.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from accord.messages import codec
from accord.messages.meta import PaginatedParams
from accord.server.compose.access import Viewer, viewer_of
from accord.server.compose.versions import versioned_definition
from accord.server.core.pages import cut, defined
from accord.server.core.registration import definition_key, listing_extension
from accord.server.core.registry import RESULTS

if TYPE_CHECKING:
    from accord.server.core.invoker import Invoker
    from accord.server.core.peer import Peer
    from accord.server.core.registry import Registry
    from accord.server.core.resolver import Resolver
    from accord.server.middleware.request import Request
    from accord.session.pending_request import PendingRequest


NONE: frozenset[str] = frozenset()


class ListHandler:
    """The handler of the list methods for one running server."""

    def __init__(self, registry: Registry, resolver: Resolver, invoker: Invoker) -> None:
        self._registry = registry
        self._resolver = resolver
        self._invoker = invoker

    async def list(self, pending: PendingRequest, peer: Peer) -> Raw:
        """Return one page. Raises `InvalidParams` for an unknown cursor."""
        registry, method = self._registry, pending.method.name
        params = codec.decode_params(PaginatedParams, pending.params)
        shown = registry.view
        declared = _declared_extensions(pending, peer)
        special = shown.requires_scopes or shown.has_providers or registry.middleware or peer.visibility is not None
        if not special and (declared is None or shown.listing_extensions <= declared):
            return registry.lists[method].page(params.cursor, pending.rules)
        viewer = viewer_of(peer, pending)
        items = await self._visible_items(pending, viewer)
        if registry.middleware:
            items = await self._through_middleware(items, pending, peer, viewer)
        if declared is not None:
            items = {name: each for name, each in items.items() if listing_extension(each) in (None, *declared)}
        return self._page(items, params.cursor, pending)

    async def _visible_items(self, pending: PendingRequest, viewer: Viewer) -> dict[str, Any]:
        """Return the definitions that the viewer may see, by name."""
        items: dict[str, Any] = {}
        for name, versions in (await self._resolver.list_visible(pending.method.name, viewer)).items():
            *_, newest = versions.values()
            define = newest.define
            if newest.metadata.version is not None:
                define = partial(versioned_definition, newest, versions=[*filter(None, versions)])
            definition = defined(name, define, pending.rules)
            if definition is not None:
                items[name] = definition
        return items

    async def _through_middleware(
        self, items: dict[str, Any], pending: PendingRequest, peer: Peer, viewer: Viewer
    ) -> dict[str, Any]:
        """Pass a list through the middleware; access rules apply to the definitions that it adds, too."""

        async def end(request: Request) -> list[Any]:
            return [*items.values()]

        found = await self._invoker.run_middleware(end, "", None, None, pending, peer)
        named = {definition_key(each): each for each in found}
        shown = {
            name: each
            if each is items.get(name)
            else self._resolver.visible_definition(pending, name, each, items, viewer)
            for name, each in named.items()
        }
        return {name: each for name, each in shown.items() if each is not None}

    def _page(self, items: dict[str, Any], cursor: str | None, pending: PendingRequest) -> Raw:
        page, following = cut(list(items), cursor, self._registry.page_size)
        result, field = RESULTS[pending.method.name]
        # "MUST NOT be served to a different authorization context" (Caching): it depends on the principal
        found = result(**{field: [items[name] for name in page]}, next_cursor=following, cache_scope="private")
        return self._registry.encode_list(found, pending.rules)


def _declared_extensions(pending: PendingRequest, peer: Peer) -> frozenset[str] | None:
    """Return the extensions that the client of a session has declared, as far as its list of tools depends on them;
    None for a list that does not.

    Without a session the list is the same for all: "the list of tools [...] MUST NOT vary per-connection". Before
    2025-06-18 tools have no `_meta`, so that no client can know what they are for.
    """
    if pending.method.name != "tools/list":
        return None
    if not pending.rules.definition_meta:
        return NONE
    if not pending.rules.sessions:
        return None
    return frozenset(peer.capabilities(pending).extensions or ())
