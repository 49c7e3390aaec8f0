"""Whether a client may see something: by the scopes of who asks, and by what its session hides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from accord.errors import ResourceNotFound
from accord.messages.revision import LATEST, RULES

if TYPE_CHECKING:
    from accord.server.http.auth import Principal
    from accord.server.offer import Offer
    from accord.server.peer import Peer
    from accord.server.registry import Registry
    from accord.session.exchange import Exchange


def may_see(offer: Offer, name: str, exchange: Exchange, peer: Peer) -> bool:
    """Whether it exists for this client. A client that started this server (`peer.local`) is asked for no scopes."""
    return _is_shown(offer, name, exchange.who, peer)


def has_scopes(offer: Offer, who: Principal | None) -> bool:
    """Whether somebody was granted what it asks for."""
    scopes = offer.marks.scopes
    return not scopes or (who is not None and scopes <= who.scopes)


def may_hear_of(registry: Registry, uri: str) -> Callable[[Peer], bool]:
    """Which clients may be told that a resource has changed: whoever subscribed above it need not know that it is
    there. Of what was not declared, all may.
    """
    try:
        offer, _ = registry.resource(uri)
    except ResourceNotFound:
        return lambda peer: True
    name = getattr(offer.define(RULES[LATEST]), "uri_template", uri)
    return lambda peer: _is_shown(offer, name, peer.who, peer)


def _is_shown(offer: Offer, name: str, who: Principal | None, peer: Peer) -> bool:
    if not peer.local and not has_scopes(offer, who):
        return False
    return peer.view is None or peer.view.shows(name, offer.marks.tags)


def seen(offer: Offer, name: str, exchange: Exchange, peer: Peer) -> dict[str | None, Offer]:
    """What exists of it for this client, the newest version last: nothing, it, or all the versions that it may see."""
    versions: Mapping[Any, Offer] = offer.versions or {offer.marks.version: offer}
    return {version: each for version, each in versions.items() if may_see(each, name, exchange, peer)}
