"""Access control for lists, calls, reads, search, completion and notifications.

A `Viewer` sees a registration if it has the scopes that the registration and all servers around it require, and if no
server and no session hides the registration. Rules apply to every name of the registration: inside mounted servers,
before a `ToolChange`, and for a template the URI that is read. A name that no server has registered, such as a
provider's URI, is checked by `rules_by_name`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from accord.errors import ResourceNotFound
from accord.server.compose.uri_spelling import cache_spellings, canonical, is_misread, spellings
from accord.server.middleware.chain import NO_SCOPES, required_scopes

if TYPE_CHECKING:
    from accord.server.core.peer import Peer
    from accord.server.core.principal import Principal
    from accord.server.core.registration import Registration
    from accord.server.core.registry import Registry
    from accord.server.core.registry_view import Reached
    from accord.server.core.visibility import Visibility
    from accord.session.pending_request import PendingRequest

_LISTED = 100_000
"""The most listed URIs whose registrations are cached."""


class Viewer(msgspec.Struct, frozen=True):
    """The principal and the session that use a server."""

    scopes: frozenset[str] | None
    """The scopes of the principal; None for a client that started this server, which needs no scopes."""
    visibility: Visibility | None = None
    """The rules of the session."""

    def can_see(self, registration: Registration, uri: str | None = None) -> bool:
        """Return whether a registration is visible; for a template, whether one matching `uri` is."""
        scopes = (
            _scopes_of_uri(registration, uri)
            if uri is not None and registration.template_guards
            else registration.metadata.scopes
        )
        if not self.has_scopes(scopes):
            return False
        names = registration.names if uri is None else (*registration.names, uri)
        return self.visibility is None or self.visibility.is_visible(names, registration.metadata.tags)

    def can_read(self, registry: Registry, registration: Registration, uri: str) -> bool:
        """Return whether a registration may answer a read of a URI.

        The viewer must also see everything that other spellings of the URI lead to, since the handler of a template, or
        a provider, may read that. A URI of a template is checked again without the parameters that the template
        ignores.
        """
        must_judge = self._must_judge(registry)
        if (must_judge and is_misread(uri)) or not self.can_see(registration, uri):
            return False
        if not must_judge:
            return True
        plain = plain_uri(registry, registration, uri)
        return self._sees_all(reached_by(registry, registration, uri)) and (
            plain == uri or self._can_read_plain(registry, plain)
        )

    def _can_read_plain(self, registry: Registry, uri: str) -> bool:
        answers = registry.find("resource", uri)
        return answers is None or (self.can_see(answers, uri) and self._sees_all(reached_by(registry, answers, uri)))

    def can_list(self, registry: Registry, registration: Registration, uri: str) -> bool:
        """Return whether a resource is listed: whether the viewer may read the registration that answers for its URI.
        That may be a template of the server that overrides a provider's resource.
        """
        if not self._must_judge(registry):
            return self.can_see(registration)
        cache = registry.view.listed_uris
        if (entry := cache.get(uri)) is None:
            if len(cache) >= _LISTED:
                cache.clear()
            cache_spellings((uri,))  # the rules of sessions, and those for templates, are compared each time
            answers = registry.find("resource", uri)
            entry = cache[uri] = answers, reached_by(registry, answers, uri)
        answers, reached = entry
        return (self.can_see(registration) if answers is None else self.can_see(answers, uri)) and self._sees_all(
            reached
        )

    def _must_judge(self, registry: Registry) -> bool:
        """Return whether a resource of the server may be hidden in one spelling of its URI and visible in another."""
        return self.visibility is not None or registry.view.may_hide_uris

    def _sees_all(self, reached: Reached | None) -> bool:
        return reached is not None and all(self.can_see(other, uri) for other, uri in reached)

    def has_scopes(self, scopes: frozenset[str] | None) -> bool:
        """Return whether the principal has these scopes; None stands for scopes that no principal has."""
        return scopes is not None and (self.scopes is None or scopes <= self.scopes)

    def versions(self, registration: Registration) -> dict[str | None, Registration]:
        """Return the visible versions of a registration, the newest last."""
        if not registration.versions:
            return {registration.metadata.version: registration} if self.can_see(registration) else {}
        return {version: each for version, each in registration.versions.items() if self.can_see(each)}

    def may_know(self, registry: Registry, kind: str, name: str) -> bool:
        """Return whether a "tool", "prompt", "resource" or "resource template", registered or not, may be disclosed."""
        registration = registry.find(kind, name)
        if registration is not None:
            return (
                self.can_read(registry, registration, name) if kind == "resource" else bool(self.versions(registration))
            )
        must_judge = kind == "resource" and self._must_judge(registry)
        if must_judge and not self._sees_all(reached_by(registry, None, name)):
            return False
        rules = rules_by_name(registry, kind, name)
        if rules is None or not self.has_scopes(rules.scopes):
            return False
        return self.visibility is None or self.visibility.is_visible((name,), rules.tags)


def reached_by(registry: Registry, registration: Registration | None, uri: str) -> Reached | None:
    """Return the other registrations that the readings of a URI lead to, each with its reading; None if a rule hides
    one of them, or the URI has too many readings. `registration` is None for a URI that no server has registered.
    """
    readings = spellings(uri)
    if is_misread(uri):
        return None
    if (
        registration is not None
        and canonical(uri) in map(canonical, registration.names)
        and registry.find("resource", uri) is registration
    ):
        return ()
    if any(map(registry.view.hides_uri, readings)):
        return None
    found = [(registry.find("resource", spelling), spelling) for spelling in readings[1:]]
    found += [(registry.view.by_ordered_query.get(spelling), spelling) for spelling in readings]
    return tuple((other, spelling) for other, spelling in found if other is not None and other is not registration)


def plain_uri(registry: Registry, registration: Registration, uri: str) -> str:
    """Return the URI with only the parameters that its template reads; unchanged if `registration` is no template."""
    if not any(sign in uri for sign in "?&;"):
        return uri
    template, registered = registry.templates.get(registration.names[0], (None, None))
    return uri if template is None or registered is not registration else template.plain(uri)


def viewer_of(peer: Peer, request: PendingRequest | None = None) -> Viewer:
    """Return the viewer for a request, or for the client's last known identity."""
    principal: Principal | None = peer.identity if request is None else request.principal
    if peer.local:
        return Viewer(None, peer.visibility)
    return Viewer(NO_SCOPES if principal is None else principal.scopes, peer.visibility)


def missing_scopes_text(scopes: Iterable[str]) -> str:
    """Return the error text for a principal that lacks one of these scopes."""
    return f"the token lacks a scope: this needs {', '.join(sorted(scopes))}"


def _scopes_of_uri(registration: Registration, uri: str) -> frozenset[str] | None:
    """Return the scopes that one URI of a template requires at each server that the template has passed, or None if a
    server hides it.
    """
    uris = [uri]
    for inward in registration.inner_names:
        inside = inward(uris[-1])
        if inside is None:
            break
        uris.append(inside)
    scopes, tags = registration.metadata.scopes, registration.metadata.tags
    for registry, depth, text, own in registration.template_guards:
        here = uris[min(len(registration.inner_names) - depth, len(uris) - 1) :]
        if registry.visibility and not registry.visibility.is_visible((text, here[0]), tags):
            return None
        scopes |= required_scopes((*registry.guards, *own), here, tags)
    return scopes


# --- unregistered names ----------------------------------------------------------------------------------------


class NameRules(NamedTuple):
    """The rules for a name that is not registered."""

    scopes: frozenset[str]
    names: tuple[str, ...]
    """The name, and its possible names inside mounted servers and before a change."""
    tags: frozenset[str]
    """The tags that a change gives to a provider's tool."""
    all_names: frozenset[str]
    """The tags, and those of changes in mounted servers."""


def rules_by_name(registry: Registry, kind: str, name: str) -> NameRules | None:
    """Return the rules of a server, and of its mounted servers, for a name that is not registered; None if the name is
    registered and hidden, or was changed to another. If several mounted servers may own the name, which only their
    providers know, the rules of all of them apply.
    """
    changes = registry.changes_to(kind, name)
    if registry.hides(kind, name) or not changes:
        return None
    names = (name, *(before for before in changes if before != name))
    scopes, tags, all_names = NO_SCOPES, NO_SCOPES, NO_SCOPES
    for mount in registry.mounts:
        for before in changes:
            inside = mount.names.inner(kind, before)
            if inside is None or not (mount.names.prefix or mount.has_providers):
                continue  # registered and hidden items were found above; other names may belong to another server
            rules = rules_by_name(mount.registry, kind, inside)
            if rules is None:
                return None
            scopes, names = scopes | rules.scopes, names + rules.names
            tags, all_names = tags | rules.tags, all_names | rules.all_names
    if changed := [frozenset(each.tags) for each in changes.values() if each is not None and each.tags is not None]:
        tags = NO_SCOPES.union(*changed)
    all_names |= tags
    if registry.visibility and not registry.visibility.is_visible((name,), tags):
        return None
    return NameRules(scopes | required_scopes(registry.guards, names, all_names), names, tags, all_names)


# --- mounted servers -------------------------------------------------------------------------------------------


def outer_names(registry: Registry, inner: Registry, kind: str, name: str) -> Iterator[str]:
    """Yield the names on a server of an item of a server that is mounted in it, at any depth."""
    if registry is inner:
        yield name
    for mount in registry.mounts:
        for each in outer_names(mount.registry, inner, kind, name):
            outside = mount.names.uri(each) if kind == "resource" else mount.names.name(each)
            change = registry.tool_changes.get(outside) if kind == "tool" else None
            yield outside if change is None else change.name or outside


def outer_names_of_all(registry: Registry, inner: Registry, names: Iterable[str]) -> list[str]:
    """Return the names on a server for names of a mounted one, of any kind; a name that is not mounted stays."""
    outer: dict[str, None] = {}
    for name in names:
        kinds = ("tool", "prompt", "resource") if ":" in name else ("tool", "prompt")
        outside = dict.fromkeys(each for kind in kinds for each in outer_names(registry, inner, kind, name))
        outer |= outside or {name: None}
    return list(outer)


def check_readable(registry: Registry, inner: Registry, uri: str, request: PendingRequest, peer: Peer) -> None:
    """Check that the client may read a resource that a handler of a mounted server reads for it.

    Raises `ResourceNotFound`.
    """
    outside = list(outer_names(registry, inner, "resource", uri))
    if outside and not any(viewer_of(peer, request).may_know(registry, "resource", each) for each in outside):
        raise ResourceNotFound(uri=uri)


def is_readable_by_all(registry: Registry, inner: Registry, uri: str) -> bool:
    """Return whether every client of a server may read a resource that a handler of it, or of a mounted
    server, reads.
    """
    if not registry.view.requires_scopes and not registry.view.has_rules:
        return True
    anonymous, outside = Viewer(NO_SCOPES), outer_names(registry, inner, "resource", uri)
    return anonymous.may_know(inner, "resource", uri) and (
        registry is inner or any(anonymous.may_know(registry, "resource", each) for each in outside)
    )
