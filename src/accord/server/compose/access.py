"""Who may see what: the one place that decides it, for lists, calls, reads, search, completion and notifications.

A registration (`Offer`) is seen by a `Viewer` when the viewer was granted the scopes that the registration and all
servers on its way ask for, and when no server and no session hides it. Rules are asked about every name that it has
had: inside of mounted servers, before a `ToolChange`, and for a template the URI that is read. What no server has
registered, such as the URI of a provider that has changed, is judged by the rules on its name (`scopes_by_name`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from accord.errors import ResourceNotFound
from accord.server.compose.spelling import spellings

if TYPE_CHECKING:
    from accord.server.compose.visibility import Visibility
    from accord.server.http.auth import Principal
    from accord.server.middleware.chain import Guard
    from accord.server.offer import Offer
    from accord.server.peer import Peer
    from accord.server.registry import Registry
    from accord.session.exchange import Exchange

NO_SCOPES: frozenset[str] = frozenset()


class Viewer(msgspec.Struct, frozen=True):
    """The principal and the session that look at a server."""

    granted: frozenset[str] | None
    """The scopes of the principal; None for a client that started this server, which is asked for none."""
    view: Visibility | None = None
    """What its session hides."""

    def sees(self, offer: Offer, uri: str | None = None) -> bool:
        """Return whether a registration exists for it; of a template, one `uri` that the template matches."""
        names: tuple[str, ...] = offer.names
        scopes: frozenset[str] | None = offer.marks.scopes
        if uri is not None and offer.passed:
            names, scopes = (*names, uri), _scopes_of_uri(offer, uri)
        return self.may_have(scopes) and (self.view is None or self.view.shows(names, offer.marks.tags))

    def may_have(self, scopes: frozenset[str] | None) -> bool:
        """Return whether it was granted these scopes; None is what nobody may have."""
        return scopes is not None and (self.granted is None or scopes <= self.granted)

    def versions(self, offer: Offer) -> dict[str | None, Offer]:
        """The versions of a registration that exist for it, the newest last."""
        versions: Mapping[Any, Offer] = offer.versions or {offer.marks.version: offer}
        return {version: each for version, each in versions.items() if self.sees(each)}

    def knows(self, registry: Registry, kind: str, name: str) -> bool:
        """Return whether it may hear of a "tool", "prompt" or "resource", whether that is registered or not."""
        offer = registry.find(kind, name)
        if offer is not None:
            return self.sees(offer, name if kind == "resource" else None)
        shows = self.view is None or self.view.shows((name,), ())
        return shows and self.may_have(scopes_by_name(registry, kind, name))


def has_scopes(offer: Offer, who: Principal | None) -> bool:
    """Return whether somebody was granted what a registration asks for."""
    return Viewer(NO_SCOPES if who is None else who.scopes).sees(offer)


def viewer(peer: Peer, exchange: Exchange | None = None) -> Viewer:
    """Return who looks: as the request says, or as was last heard of the client."""
    who: Principal | None = peer.who if exchange is None else exchange.who
    if peer.local:
        return Viewer(None, peer.view)
    return Viewer(NO_SCOPES if who is None else who.scopes, peer.view)


def scopes_asked(guards: Iterable[Guard], names: Iterable[str], tags: Collection[str]) -> frozenset[str]:
    """Return what guards ask for something with these names, in all spellings, together."""
    readings = {reading: None for name in names for reading in spellings(name)}
    return NO_SCOPES.union(*(guard(reading, tags) for guard in guards for reading in readings))


def _scopes_of_uri(offer: Offer, uri: str) -> frozenset[str] | None:
    """What one URI of a template asks for, at each server that the template has passed; None where one hides it."""
    uris = [uri]
    for inward in offer.inward:
        inside = inward(uris[-1])
        if inside is None:
            break
        uris.append(inside)
    scopes, tags = offer.marks.scopes, offer.marks.tags
    for registry, depth, text, own in offer.passed:
        here = uris[min(len(offer.inward) - depth, len(uris) - 1) :]
        if registry.visibility and not registry.visibility.shows((text, here[0]), tags):
            return None
        scopes |= scopes_asked((*registry.guards, *own), here, tags)
    return scopes


# --- what is not registered ------------------------------------------------------------------------------------


def scopes_by_name(registry: Registry, kind: str, name: str) -> frozenset[str] | None:
    """Return what the rules of a server, and of the servers mounted in it, ask for a name that is not registered; None
    for what is registered and hidden.
    """
    found = _rules_on(registry, kind, name)
    return None if found is None else found[0]


def _rules_on(registry: Registry, kind: str, name: str) -> tuple[frozenset[str], list[str]] | None:
    """The scopes, and all names inside that it may have had."""
    visibility = registry.visibility
    if registry.conceals(kind, name) or (visibility and not visibility.shows((name,), ())):
        return None
    before = [old for old, change in registry.changes.items() if change.name == name] if kind == "tool" else []
    names, scopes = [name, *before], NO_SCOPES
    for mount in registry.mounts:
        for inside in filter(None, (mount.inner(kind, each) for each in (name, *before))):
            found = _rules_on(mount.server.registry, kind, inside)
            if found is None:
                return None
            if mount.provided:
                scopes |= found[0]
                names += found[1]
    return scopes | scopes_asked(registry.guards, names, ()), names


# --- what is seen from a mounted server ------------------------------------------------------------------------


def names_outside(registry: Registry, inner: Registry, kind: str, name: str) -> Iterator[str]:
    """The names that something has on a server, of one that is mounted in that, however deep."""
    if registry is inner:
        yield name
    for mount in registry.mounts:
        for each in names_outside(mount.server.registry, inner, kind, name):
            outside = mount.uri(each) if kind == "resource" else mount.name(each)
            change = registry.changes.get(outside) if kind == "tool" else None
            yield outside if change is None else change.name or outside


def check_readable(registry: Registry, inner: Registry, uri: str, exchange: Exchange, peer: Peer) -> None:
    """Check that a client of a server may read what a handler of a mounted one reads for it.

    Raises `ResourceNotFound`.
    """
    outside = list(names_outside(registry, inner, "resource", uri))
    if outside and not any(viewer(peer, exchange).knows(registry, "resource", each) for each in outside):
        raise ResourceNotFound(uri=uri)
