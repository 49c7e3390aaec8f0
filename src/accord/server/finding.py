"""From the name that a client gives to what is offered under it, as far as this client may see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.errors import InvalidParams, ResourceNotFound
from accord.messages import codec
from accord.messages.meta import Params
from accord.server.compose.access import may_see
from accord.server.offer import Offer

if TYPE_CHECKING:
    from accord.limits import Limits
    from accord.server.compose.provisions import Provisions
    from accord.server.peer import Peer
    from accord.server.registry import Registry
    from accord.session.exchange import Exchange

VERSION = "accord/version"
"""In the `_meta` of a request: which version of a tool or prompt is meant. In that of a definition: which one it is."""
VERSIONS = "accord/versions"
"""In the `_meta` of a definition: all there are, the newest last."""


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
        if offer is None or not may_see(offer, name, exchange, peer):
            raise InvalidParams(f"no tool {name!r}")
        return _version(offer, f"tool {name!r}", exchange) if offer.versions else offer

    async def prompt(self, name: str, exchange: Exchange, peer: Peer) -> Offer:
        """A prompt. Raises `InvalidParams`, also for one that this client may not see."""
        offer = self._registry.prompts.get(name)
        if offer is None and self._registry.shown.provided:
            offer = await self.provisions.prompt(name)
        if offer is None or not may_see(offer, name, exchange, peer):
            raise InvalidParams(f"no prompt {name!r}")
        return _version(offer, f"prompt {name!r}", exchange) if offer.versions else offer

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


def _named(offer: Offer, uri: str, exchange: Exchange) -> str:
    """What rules call it: the text of a template, or its URI."""
    return getattr(offer.define(exchange.rules), "uri_template", uri)


def _version(offer: Offer, what: str, exchange: Exchange) -> Offer:
    """The version that a request names; the newest if it names none. Raises `InvalidParams`."""
    wanted = (codec.decode_params(Params, exchange.params).meta or {}).get(VERSION)
    if wanted is None:
        return offer
    found = offer.versions.get(wanted) if isinstance(wanted, str) else None
    if found is None:
        raise InvalidParams(f"{what} has no version {wanted!r}; it has {', '.join(offer.versions)}")
    return found
