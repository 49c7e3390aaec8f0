"""Who may see what: the one place that decides it, for lists, calls, reads, search, completion and notifications.

A registration (`Registration`) is seen by a `Viewer` when the viewer was granted the scopes that the registration and
all servers on its way ask for, and when no server and no session hides it. Rules are asked about every name that it has
had: inside of mounted servers, before a `ToolChange`, and for a template the URI that is read. What no server has
registered, such as the URI of a provider that has changed, is judged by the rules on its name (`rules_by_name`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from accord.errors import ResourceNotFound
from accord.server.compose.uri_spelling import MAX_SPELLINGS, canonical, spellings
from accord.server.middleware.chain import NO_SCOPES, required_scopes

if TYPE_CHECKING:
    from accord.server.compose.change import ToolChange
    from accord.server.core.peer import Peer
    from accord.server.core.principal import Principal
    from accord.server.core.registration import Registration
    from accord.server.core.registry import Registry
    from accord.server.core.registry_view import Reached
    from accord.server.core.visibility import Visibility
    from accord.session.pending_request import PendingRequest

_MAX_CHARACTERS = 100_000
"""Characters of all readings of one URI; as for `MAX_SPELLINGS`, what has more is hidden: each is looked up."""

_LISTED = 100_000
"""URIs in lists of which it is kept what they lead to."""


class Viewer(msgspec.Struct, frozen=True):
    """The principal and the session that look at a server."""

    scopes: frozenset[str] | None
    """The scopes of the principal; None for a client that started this server, which is asked for none."""
    visibility: Visibility | None = None
    """What its session hides."""

    def can_see(self, offer: Registration, uri: str | None = None) -> bool:
        """Return whether a registration exists for it; of a template, one `uri` that the template matches."""
        scopes = _scopes_of_uri(offer, uri) if uri is not None and offer.template_guards else offer.metadata.scopes
        if not self.has_scopes(scopes):
            return False
        names = offer.names if uri is None else (*offer.names, uri)
        return self.visibility is None or self.visibility.is_visible(names, offer.metadata.tags)

    def can_read(self, registry: Registry, offer: Registration, uri: str) -> bool:
        """Return whether a registration may answer it for a URI: it sees that, and whatever else of the server another
        spelling of the URI leads to, for the handler of a template, or a provider, may read that out of it; nor does a
        rule hide what would answer in its place. A URI of a template is also judged without the parameters that the
        template does not read.
        """
        if not self.can_see(offer, uri):
            return False
        if not self._must_judge(registry):
            return True
        plain = plain_uri(registry, offer, uri)
        return self._sees_all(reached_by(registry, offer, uri)) and (
            plain == uri or self._can_read_plain(registry, plain)
        )

    def _can_read_plain(self, registry: Registry, uri: str) -> bool:
        answers = registry.find("resource", uri)
        return answers is None or (self.can_see(answers, uri) and self._sees_all(reached_by(registry, answers, uri)))

    def can_list(self, registry: Registry, offer: Registration, uri: str) -> bool:
        """Return whether a resource is listed for it: it may read what answers for the URI, which may be a template
        that the server declares, in the place of what a provider lists.
        """
        if not self._must_judge(registry):
            return self.can_see(offer)
        kept = registry.view.listed_uris
        if (found := kept.get(uri)) is None:
            if len(kept) >= _LISTED:
                kept.clear()
            answers = registry.find("resource", uri)
            found = kept[uri] = answers, reached_by(registry, answers, uri)
        answers, reached = found
        return (self.can_see(offer) if answers is None else self.can_see(answers, uri)) and self._sees_all(reached)

    def _must_judge(self, registry: Registry) -> bool:
        """Return whether something of a server may be hidden from it in one spelling, and not in another."""
        return self.visibility is not None or registry.view.may_hide_uris

    def _sees_all(self, reached: Reached | None) -> bool:
        return reached is not None and all(self.can_see(other, uri) for other, uri in reached)

    def has_scopes(self, scopes: frozenset[str] | None) -> bool:
        """Return whether it was granted these scopes; None is what nobody may have."""
        return scopes is not None and (self.scopes is None or scopes <= self.scopes)

    def versions(self, offer: Registration) -> dict[str | None, Registration]:
        """The versions of a registration that exist for it, the newest last."""
        if not offer.versions:
            return {offer.metadata.version: offer} if self.can_see(offer) else {}
        return {version: each for version, each in offer.versions.items() if self.can_see(each)}

    def may_know(self, registry: Registry, kind: str, name: str) -> bool:
        """Return whether it may hear of a "tool", "prompt", "resource" or "resource template", whether that is
        registered or not.
        """
        offer = registry.find(kind, name)
        if offer is not None:
            return self.can_read(registry, offer, name) if kind == "resource" else bool(self.versions(offer))
        rules = rules_by_name(registry, kind, name)
        if rules is None or not self.has_scopes(rules.scopes):
            return False
        if kind == "resource" and self._must_judge(registry) and not self._sees_all(reached_by(registry, None, name)):
            return False
        return self.visibility is None or self.visibility.is_visible((name,), rules.tags)


def reached_by(registry: Registry, offer: Registration | None, uri: str) -> Reached | None:
    """Return what else of a server the readings of a URI lead to, beside the registration that answers for it, which is
    None for what no server has registered. None where a rule hides any of that, and for a URI with too many readings.
    """
    readings = spellings(uri)
    if len(readings) >= MAX_SPELLINGS or sum(map(len, readings)) > _MAX_CHARACTERS:
        return None
    if offer is not None and canonical(uri) in map(canonical, offer.names) and registry.find("resource", uri) is offer:
        return ()
    if any(map(registry.view.hides_uri, readings)):
        return None
    found = [(registry.find("resource", spelling), spelling) for spelling in readings[1:]]
    found += [(registry.view.by_ordered_query.get(spelling), spelling) for spelling in readings]
    return tuple((other, spelling) for other, spelling in found if other is not None and other is not offer)


def plain_uri(registry: Registry, offer: Registration, uri: str) -> str:
    """Return the URI with what a template reads of it and no more; of what is no template, as it is."""
    if not any(sign in uri for sign in "?&;"):
        return uri
    template, held = registry.templates.get(offer.names[0], (None, None))
    return uri if template is None or held is not offer else template.plain(uri)


def viewer_of(peer: Peer, exchange: PendingRequest | None = None) -> Viewer:
    """Return who looks: as the request says, or as was last heard of the client."""
    who: Principal | None = peer.identity if exchange is None else exchange.principal
    if peer.local:
        return Viewer(None, peer.visibility)
    return Viewer(NO_SCOPES if who is None else who.scopes, peer.visibility)


def _scopes_of_uri(offer: Registration, uri: str) -> frozenset[str] | None:
    """What one URI of a template asks for, at each server that the template has passed; None where one hides it."""
    uris = [uri]
    for inward in offer.inner_names:
        inside = inward(uris[-1])
        if inside is None:
            break
        uris.append(inside)
    scopes, tags = offer.metadata.scopes, offer.metadata.tags
    for registry, depth, text, own in offer.template_guards:
        here = uris[min(len(offer.inner_names) - depth, len(uris) - 1) :]
        if registry.visibility and not registry.visibility.is_visible((text, here[0]), tags):
            return None
        scopes |= required_scopes((*registry.guards, *own), here, tags)
    return scopes


# --- what is not registered ------------------------------------------------------------------------------------


class NameRules(NamedTuple):
    """What rules say of a name that is not registered."""

    scopes: frozenset[str]
    names: tuple[str, ...]
    """The name, and those that it may have had inside of mounted servers and before a change."""
    tags: frozenset[str]
    """Those that a change gives to a tool of a provider."""
    all_names: frozenset[str]
    """These, and those of changes inside."""


def rules_by_name(registry: Registry, kind: str, name: str) -> NameRules | None:
    """Return what the rules of a server, and of the servers mounted in it, say of a name that is not registered; None
    for what is registered and hidden, or has another name. Where it may belong to several mounted servers, as only
    their providers could tell, the rules of all of them hold.
    """
    change = _change_to(registry, name) if kind == "tool" else None
    if registry.hides(kind, name) or (change is None and kind == "tool" and name in registry.tool_changes):
        return None
    before = name if change is None else change[0]
    if before != name and registry.find(kind, name) is None and registry.hides(kind, before):
        return None  # the tool that would have this name is hidden
    names: tuple[str, ...] = (name,) if before == name else (name, before)
    scopes, tags, had = NO_SCOPES, NO_SCOPES, NO_SCOPES
    for mount in registry.mounts:
        inside = mount.names.inner(kind, before)
        if inside is None or not (mount.names.prefix or mount.has_providers):
            continue  # what is registered there, and hidden, was found above; all else may be of another server
        found = rules_by_name(mount.registry, kind, inside)
        if found is None:
            return None
        scopes, names = scopes | found.scopes, names + found.names
        tags, had = tags | found.tags, had | found.all_names
    if change is not None and change[1].tags is not None:
        tags = frozenset(change[1].tags)
    had |= tags
    if registry.visibility and not registry.visibility.is_visible((name,), tags):
        return None
    return NameRules(scopes | required_scopes(registry.guards, names, had), names, tags, had)


def _change_to(registry: Registry, name: str) -> tuple[str, ToolChange] | None:
    """The change of a tool that gives it a name, or leaves it that, and the name before."""
    return next((each for each in registry.tool_changes.items() if (each[1].name or each[0]) == name), None)


# --- what is seen from a mounted server ------------------------------------------------------------------------


def outer_names(registry: Registry, inner: Registry, kind: str, name: str) -> Iterator[str]:
    """The names that something has on a server, of one that is mounted in that, however deep."""
    if registry is inner:
        yield name
    for mount in registry.mounts:
        for each in outer_names(mount.registry, inner, kind, name):
            outside = mount.names.uri(each) if kind == "resource" else mount.names.name(each)
            change = registry.tool_changes.get(outside) if kind == "tool" else None
            yield outside if change is None else change.name or outside


def outer_names_of_all(registry: Registry, inner: Registry, names: Iterable[str]) -> list[str]:
    """The names on a server of what a mounted one calls so, of whatever kind; as they are where it is not mounted."""
    found: dict[str, None] = {}
    for name in names:
        kinds = ("tool", "prompt", "resource") if ":" in name else ("tool", "prompt")
        outside = dict.fromkeys(each for kind in kinds for each in outer_names(registry, inner, kind, name))
        found |= outside or {name: None}
    return list(found)


def check_readable(registry: Registry, inner: Registry, uri: str, exchange: PendingRequest, peer: Peer) -> None:
    """Check that a client of a server may read what a handler of a mounted one reads for it.

    Raises `ResourceNotFound`.
    """
    outside = list(outer_names(registry, inner, "resource", uri))
    if outside and not any(viewer_of(peer, exchange).may_know(registry, "resource", each) for each in outside):
        raise ResourceNotFound(uri=uri)


def is_readable_by_all(registry: Registry, inner: Registry, uri: str) -> bool:
    """Return whether every client of a server may read what a handler of it, or of a mounted one, reads."""
    if not registry.view.requires_scopes and not registry.view.has_rules:
        return True
    everybody, outside = Viewer(NO_SCOPES), outer_names(registry, inner, "resource", uri)
    return everybody.may_know(inner, "resource", uri) and (
        registry is inner or any(everybody.may_know(registry, "resource", each) for each in outside)
    )
