"""Who may see what: the one place that decides it, for lists, calls, reads, search, completion and notifications.

A registration (`Offer`) is seen by a `Viewer` when the viewer was granted the scopes that the registration and all
servers on its way ask for, and when no server and no session hides it. Rules are asked about every name that it has
had: inside of mounted servers, before a `ToolChange`, and for a template the URI that is read. What no server has
registered, such as the URI of a provider that has changed, is judged by the rules on its name (`rules_by_name`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from accord.errors import ResourceNotFound
from accord.server.compose.spelling import MAX_SPELLINGS, canonical, spellings

if TYPE_CHECKING:
    from accord.server.compose.change import ToolChange
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
        scopes = _scopes_of_uri(offer, uri) if uri is not None and offer.passed else offer.marks.scopes
        if not self.may_have(scopes):
            return False
        names = offer.names if uri is None else (*offer.names, uri)
        return self.view is None or self.view.shows(names, offer.marks.tags)

    def reads(self, registry: Registry, offer: Offer, uri: str) -> bool:
        """Return whether a registration may answer it for a URI: it sees that, and whatever else of the server another
        spelling of the URI leads to, for the handler of a template may read that out of it; nor does a rule hide what
        would answer in its place.
        """
        judged = registry.shown.guarded or registry.shown.hides or self.view is not None
        readings = spellings(uri) if judged else ()
        if len(readings) >= MAX_SPELLINGS or not self.sees(offer, uri):
            return False
        if not judged or canonical(uri) in map(canonical, offer.names):
            return True
        if any(map(registry.shown.withholds, readings)):
            return False
        others = {spelling: registry.find("resource", spelling) for spelling in readings[1:]}
        return all(other is None or other is offer or self.sees(other, spelling) for spelling, other in others.items())

    def may_have(self, scopes: frozenset[str] | None) -> bool:
        """Return whether it was granted these scopes; None is what nobody may have."""
        return scopes is not None and (self.granted is None or scopes <= self.granted)

    def versions(self, offer: Offer) -> dict[str | None, Offer]:
        """The versions of a registration that exist for it, the newest last."""
        if not offer.versions:
            return {offer.marks.version: offer} if self.sees(offer) else {}
        return {version: each for version, each in offer.versions.items() if self.sees(each)}

    def knows(self, registry: Registry, kind: str, name: str) -> bool:
        """Return whether it may hear of a "tool", "prompt", "resource" or "resource template", whether that is
        registered or not.
        """
        offer = registry.find(kind, name)
        if offer is not None:
            return self.reads(registry, offer, name) if kind == "resource" else bool(self.versions(offer))
        rules = rules_by_name(registry, kind, name)
        if rules is None or not self.may_have(rules.scopes):
            return False
        return self.view is None or self.view.shows((name,), rules.tags)


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


class NameRules(NamedTuple):
    """What rules say of a name that is not registered."""

    scopes: frozenset[str]
    names: tuple[str, ...]
    """The name, and those that it may have had inside of mounted servers and before a change."""
    tags: frozenset[str]
    """Those that a change gives to a tool of a provider."""
    had: frozenset[str]
    """These, and those of changes inside."""


def rules_by_name(registry: Registry, kind: str, name: str) -> NameRules | None:
    """Return what the rules of a server, and of the servers mounted in it, say of a name that is not registered; None
    for what is registered and hidden, or has another name. Where it may belong to several mounted servers, as only
    their providers could tell, the rules of all of them hold.
    """
    change = _change_to(registry, name) if kind == "tool" else None
    if registry.conceals(kind, name) or (change is None and kind == "tool" and name in registry.changes):
        return None
    before = name if change is None else change[0]
    if before != name and registry.find(kind, name) is None and registry.conceals(kind, before):
        return None  # the tool that would have this name is hidden
    names: tuple[str, ...] = (name,) if before == name else (name, before)
    scopes, tags, had = NO_SCOPES, NO_SCOPES, NO_SCOPES
    for mount in registry.mounts:
        inside = mount.inner(kind, before)
        if inside is None:
            continue
        found = rules_by_name(mount.server.registry, kind, inside)
        if found is None:
            return None
        if mount.provided:
            scopes, names = scopes | found.scopes, names + found.names
            tags, had = tags | found.tags, had | found.had
    if change is not None and change[1].tags is not None:
        tags = frozenset(change[1].tags)
    had |= tags
    if registry.visibility and not registry.visibility.shows((name,), tags):
        return None
    return NameRules(scopes | scopes_asked(registry.guards, names, had), names, tags, had)


def _change_to(registry: Registry, name: str) -> tuple[str, ToolChange] | None:
    """The change of a tool that gives it a name, or leaves it that, and the name before."""
    return next((each for each in registry.changes.items() if (each[1].name or each[0]) == name), None)


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


def all_names_outside(registry: Registry, inner: Registry, names: Iterable[str]) -> list[str]:
    """The names on a server of what a mounted one calls so, of whatever kind; as they are where it is not mounted."""
    found: dict[str, None] = {}
    for name in names:
        kinds = ("tool", "prompt", "resource") if ":" in name else ("tool", "prompt")
        outside = dict.fromkeys(each for kind in kinds for each in names_outside(registry, inner, kind, name))
        found |= outside or {name: None}
    return list(found)


def check_readable(registry: Registry, inner: Registry, uri: str, exchange: Exchange, peer: Peer) -> None:
    """Check that a client of a server may read what a handler of a mounted one reads for it.

    Raises `ResourceNotFound`.
    """
    outside = list(names_outside(registry, inner, "resource", uri))
    if outside and not any(viewer(peer, exchange).knows(registry, "resource", each) for each in outside):
        raise ResourceNotFound(uri=uri)
