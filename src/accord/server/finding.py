"""From the name that a client gives to what is offered under it, and to what is listed, as far as it may see that.

Whatever answers a client gets its registrations here, so nothing that it may not see leaves this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.errors import InvalidParams, ResourceNotFound
from accord.messages import codec
from accord.messages.completion import PromptReference, Reference
from accord.messages.meta import Params
from accord.server.compose.access import NO_SCOPES, Viewer, viewer
from accord.server.compose.versions import VERSION
from accord.server.offer import Offer
from accord.server.registry import KINDS

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
        if self._registry.shown.provided and self._is_hidden(offer, exchange, peer):
            provided = await self.provisions.tool(name)
            offer = offer or provided
        return _version(offer, "tool", name, exchange, peer)

    async def prompt(self, name: str, exchange: Exchange, peer: Peer) -> Offer:
        """A prompt. Raises `InvalidParams`, also for one that this client may not see."""
        offer = self._registry.prompts.get(name)
        if self._registry.shown.provided and self._is_hidden(offer, exchange, peer):
            provided = await self.provisions.prompt(name)
            offer = offer or provided
        return _version(offer, "prompt", name, exchange, peer)

    async def resource(self, uri: str, exchange: Exchange, peer: Peer) -> tuple[Offer, dict[str, Any]]:
        """What answers for a URI, and what its template read out of it.

        Raises `ResourceNotFound`, also for what this client may not see.
        """
        try:
            offer, variables = self._registry.resource(uri)
        except ResourceNotFound:
            found = await self.provisions.resource(uri) if self._registry.shown.provided else None
            if found is None and (self._registry.shown.ruled or self._registry.shown.guarded or peer.view is not None):
                raise ResourceNotFound(uri=uri) from None  # why a template does not take it would tell of the template
            if found is None:
                raise
            offer, variables = found, {}
        shown = self._registry.shown
        everybody = offer.open and peer.view is None and not shown.guarded and not shown.hides
        if everybody or viewer(peer, exchange).reads(self._registry, offer, uri):
            return offer, variables
        if self._registry.shown.provided:
            await self.provisions.resource(uri)
        raise ResourceNotFound(uri=uri)

    def is_public(self, offer: Offer, uri: str) -> bool:
        """Return whether everybody may read what answers for a URI, whatever they were granted."""
        shown = self._registry.shown
        return (offer.open and not shown.guarded and not shown.hides) or Viewer(NO_SCOPES).reads(
            self._registry, offer, uri
        )

    def _is_hidden(self, offer: Offer | None, exchange: Exchange, peer: Peer) -> bool:
        """Return whether a client cannot know it. Providers are asked for that as well: one that fails, or takes its
        time, would otherwise tell apart what is hidden and what is not there.
        """
        return offer is None or not viewer(peer, exchange).versions(offer)

    async def completed(self, ref: Reference, exchange: Exchange, peer: Peer) -> Offer | None:
        """The prompt, resource or template that someone types arguments for; None for what a provider may have.

        Raises `InvalidParams`, also for what this client may not see.
        """
        registry, who = self._registry, viewer(peer, exchange)
        kind, name = ("prompt", ref.name) if isinstance(ref, PromptReference) else ("resource", ref.uri)
        try:
            offer = registry.completed(ref)
        except InvalidParams:
            if registry.shown.provided and await self._may_be_provided(ref, kind, name, who):
                return None
            raise
        if who.sees(offer) if kind == "prompt" or name in offer.names else who.reads(registry, offer, name):
            return offer
        if registry.shown.provided and await self._may_be_provided(ref, kind, name, who):
            return None  # as for what is not there
        raise InvalidParams(f"no {'prompt' if kind == 'prompt' else 'resource template'} {name!r:.200}")

    async def _may_be_provided(self, ref: Reference, kind: str, name: str, who: Viewer) -> bool:
        """Whether a provider may be asked. Where there are rules, only about what it has: they may be on its names. So
        too where a template may be hidden, whose values would be left out.
        """
        shown = self._registry.shown
        if not shown.ruled and who.view is None and (kind == "prompt" or not shown.guarded):
            return True
        if kind == "prompt":
            offer = await self.provisions.prompt(name)
        else:
            offer = (await self.provisions.listed("resources/templates/list")).get(name)
            offer = offer or await self.provisions.resource(name)
        return offer is not None and who.sees(offer)

    def may_hear_of(self, uri: str, exchange: Exchange, peer: Peer) -> bool:
        """Whether this client may be told of a URI, as one that a template could have."""
        return viewer(peer, exchange).knows(self._registry, "resource", uri)

    async def listed(self, method: str, who: Viewer) -> dict[str, dict[str | None, Offer]]:
        """What a list has for somebody, by name, each in the versions that exist for them, the newest last."""
        found = {name: who.versions(offer) for name, offer in (await self._listed(method)).items()}
        return {name: versions for name, versions in found.items() if versions}

    async def _listed(self, method: str) -> dict[str, Offer]:
        shown = self._registry.shown
        provided = await self.provisions.listed(method) if shown.provided else {}
        found = dict(shown.listed(method))
        for name, offer in provided.items():
            found.setdefault(name, offer)
        return self._registry.searched(method, found, provided)

    def is_seen(self, method: str, name: str, who: Viewer) -> bool:
        """Return whether somebody may see a definition that a middleware has put into a list under that name: something
        of that name may be registered, and hidden.
        """
        return who.knows(self._registry, KINDS[method], name)

    @property
    def provisions(self) -> Provisions:
        """What providers have."""
        from accord.server.compose.provisions import Provisions

        return Provisions(self._registry, self._limits)


def _version(offer: Offer | None, kind: str, name: str, exchange: Exchange, peer: Peer) -> Offer:
    """The version that a request names, of those that this client may see; the newest if it names none. Raises
    `InvalidParams`, also where there is none.
    """
    found = {} if offer is None else viewer(peer, exchange).versions(offer)
    if not found:
        raise InvalidParams(f"no {kind} {name!r:.200}")
    *_, newest = found.values()
    wanted = None if None in found else (codec.decode_params(Params, exchange.params).meta or {}).get(VERSION)
    if wanted is None:
        return newest
    version = found.get(wanted) if isinstance(wanted, str) else None
    if version is None:
        known = ", ".join(filter(None, found))
        raise InvalidParams(f"{kind} {name!r:.200} has no version {wanted!r:.200}; it has {known}")
    return version
