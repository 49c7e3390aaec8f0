"""Whether a client may see something: by the scopes of who asks, and by what its session hides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accord.server.offer import Offer
    from accord.server.peer import Peer
    from accord.session.exchange import Exchange


def may_see(offer: Offer, name: str, exchange: Exchange, peer: Peer) -> bool:
    """Whether it exists for this client. A client that started this server (`peer.local`) is asked for no scopes."""
    marks = offer.marks
    if marks.scopes and not peer.local:
        who = exchange.who
        if who is None or not marks.scopes <= who.scopes:
            return False
    return peer.view is None or peer.view.shows(name, marks.tags)


def seen(offer: Offer, name: str, exchange: Exchange, peer: Peer) -> dict[str | None, Offer]:
    """What exists of it for this client, the newest version last: nothing, it, or all the versions that it may see."""
    versions: Mapping[Any, Offer] = offer.versions or {offer.marks.version: offer}
    return {version: each for version, each in versions.items() if may_see(each, name, exchange, peer)}
