"""The four lists, as a client may see them.

Where everybody sees the same, pages are made once, see `pages`. Where it depends on who asks, or something stands in
between, the list is put together for this request.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from accord.messages import codec
from accord.messages.meta import PaginatedParams
from accord.server.compose.access import seen
from accord.server.compose.versions import told
from accord.server.pages import cut, defined
from accord.server.registry import RESULTS

if TYPE_CHECKING:
    from accord.server.calling import Calling
    from accord.server.finding import Finding
    from accord.server.middleware.request import Request
    from accord.server.peer import Peer
    from accord.server.registry import Registry
    from accord.session.exchange import Exchange


class Listing:
    """The verb, for one running server."""

    def __init__(self, registry: Registry, finding: Finding, calling: Calling) -> None:
        self._registry = registry
        self._finding = finding
        self._calling = calling

    async def list(self, exchange: Exchange, peer: Peer) -> Raw:
        """A page. Raises `InvalidParams` for a cursor that is none."""
        registry, method = self._registry, exchange.method.name
        params = codec.decode_params(PaginatedParams, exchange.params)
        shown = registry.shown
        if not (shown.guarded or shown.provided or registry.around or peer.view is not None):
            return registry.lists[method].page(params.cursor, exchange.rules)
        items = await self._seen(exchange, peer)
        if registry.around:
            items = await self._through_middleware(items, exchange, peer)
        return self._page(items, params.cursor, exchange)

    async def _seen(self, exchange: Exchange, peer: Peer) -> dict[str, Any]:
        """The definitions by name."""
        shown, method = self._registry.shown, exchange.method.name
        items: dict[str, Any] = {}
        for name, offer in shown.listed(method).items():
            if versions := seen(offer, name, exchange, peer):
                *_, newest = versions.values()
                define = partial(told, newest, versions=[*filter(None, versions)])
                items[name] = defined(name, define, exchange.rules)
        provided = await self._finding.provisions.listed(method) if shown.provided else {}
        for name, definition in provided.items():
            if peer.view is None or peer.view.shows(name, ()):
                items.setdefault(name, definition)
        can_be_listed = {name: definition for name, definition in items.items() if definition is not None}
        return self._registry.searched(method, can_be_listed, provided)

    async def _through_middleware(self, items: dict[str, Any], exchange: Exchange, peer: Peer) -> dict[str, Any]:
        async def end(request: Request) -> list[Any]:
            return [*items.values()]

        found = await self._calling.surround(end, "", None, None, exchange, peer)
        return {listed_as(each): each for each in found}

    def _page(self, items: dict[str, Any], cursor: str | None, exchange: Exchange) -> Raw:
        page, following = cut(list(items), cursor, self._registry.page_size)
        result, field = RESULTS[exchange.method.name]
        # "MUST NOT be served to a different authorization context" (Caching): what depends on who asks is theirs alone
        found = result(**{field: [items[name] for name in page]}, next_cursor=following, cache_scope="private")
        return self._registry.pack(found, exchange.rules)


def listed_as(definition: Any) -> str:
    """What a definition is listed under: its name, its URI, or the text of a template."""
    for field in ("uri", "uri_template"):
        if hasattr(definition, field):
            return getattr(definition, field)  # type: ignore[no-any-return]
    return definition.name  # type: ignore[no-any-return]
