"""From the name that a client gives to what is offered under it, as far as this client may see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from accord.errors import InvalidParams, ResourceNotFound
from accord.messages import codec
from accord.messages.meta import Params
from accord.server.compose.access import may_see, seen
from accord.server.compose.versions import VERSION
from accord.server.offer import Offer

if TYPE_CHECKING:
    from accord.limits import Limits
    from accord.server.compose.provisions import Provisions
    from accord.server.peer import Peer
    from accord.server.registry import Registry
    from accord.session.exchange import Exchange


class Finding:
    """For one running server."""

    def __init__(self, registry: Registry, limits: Limits) -> None:
        self._registry = registry
        self._limits = limits

    async def tool(self, name: str, exchange: Exchange, peer: Peer) -> Offer:
        """A tool. Raises `InvalidParams`, also for one that this client may not see."""
        offer = self._registry.tools.get(name)
        if offer is None and self._registry.shown.provided:
            offer = await self.provisions.tool(name)
        return _seen(offer, "tool", name, exchange, peer)

    async def prompt(self, name: str, exchange: Exchange, peer: Peer) -> Offer:
        """A prompt. Raises `InvalidParams`, also for one that this client may not see."""
        offer = self._registry.prompts.get(name)
        if offer is None and self._registry.shown.provided:
            offer = await self.provisions.prompt(name)
        return _seen(offer, "prompt", name, exchange, peer)

    async def resource(self, uri: str, exchange: Exchange, peer: Peer) -> tuple[Offer, dict[str, Any]]:
        """What answers for a URI, and what its template read out of it.

        Raises `ResourceNotFound`, also for what this client may not see.
        """
        try:
            offer, variables = self._registry.resource(uri)
        except ResourceNotFound:
            found = await self.provisions.resource(uri) if self._registry.shown.provided else None
            if found is None:
                raise
            offer, variables = found, {}
        if not may_see(offer, _named(offer, uri, exchange), exchange, peer):
            raise ResourceNotFound(uri=uri)
        return offer, variables

    @property
    def provisions(self) -> Provisions:
        """What providers have."""
        from accord.server.compose.provisions import Provisions

        return Provisions(self._registry, self._limits)


def _seen(offer: Offer | None, kind: str, name: str, exchange: Exchange, peer: Peer) -> Offer:
    """The version that is meant of those that this client may see. Raises `InvalidParams`, also where there is none."""
    found = {} if offer is None else seen(offer, name, exchange, peer)
    if not found:
        raise InvalidParams(f"no {kind} {name!r:.200}")
    return _version(found, f"{kind} {name!r}", exchange)


def _named(offer: Offer, uri: str, exchange: Exchange) -> str:
    """What rules call it: the text of a template, or its URI."""
    return getattr(offer.define(exchange.rules), "uri_template", uri)


def _version(found: Mapping[str | None, Offer], what: str, exchange: Exchange) -> Offer:
    """The version that a request names; the newest if it names none. Raises `InvalidParams`."""
    *_, newest = found.values()
    wanted = None if None in found else (codec.decode_params(Params, exchange.params).meta or {}).get(VERSION)
    if wanted is None:
        return newest
    version = found.get(wanted) if isinstance(wanted, str) else None
    if version is None:
        raise InvalidParams(f"{what} has no version {wanted!r}; it has {', '.join(filter(None, found))}")
    return version
