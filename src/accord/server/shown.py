"""What is offered at one moment: what was declared, then what is mounted, changed and hidden as the server says."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import msgspec

from accord.errors import DeclarationError, ResourceNotFound
from accord.server.compose.access import scopes_asked
from accord.server.compose.spelling import canonical, canonical_index
from accord.server.compose.versions import told
from accord.server.middleware.chain import chained, guards_in
from accord.server.offer import Offer, Passed
from accord.server.template_index import TemplateIndex

if TYPE_CHECKING:
    from accord.messages.revision import Rules
    from accord.server.compose.visibility import Visibility
    from accord.server.registry import Registry
    from accord.server.templates import Template

log: logging.Logger = logging.getLogger("accord.server")


class Declared(msgspec.Struct):
    """What was declared on one server, by name."""

    tools: dict[str, Offer] = {}
    prompts: dict[str, Offer] = {}
    resources: dict[str, Offer] = {}
    templates: dict[str, Any] = {}

    def of(self, kind: str) -> dict[str, Any]:
        """Those of a kind: "tool", "prompt", "resource", "resource template"."""
        return getattr(self, _FIELDS[kind])  # type: ignore[no-any-return]


_FIELDS = {"tool": "tools", "prompt": "prompts", "resource": "resources", "resource template": "templates"}


class Shown:
    """Made once for each change of anything that it is made of."""

    def __init__(self, registry: Registry, declared: Declared) -> None:
        self._registry = registry
        self._unruled: dict[str, dict[str, Any]] = {}
        self.tools: dict[str, Offer] = self._seen("tool", declared)
        self.prompts: dict[str, Offer] = self._seen("prompt", declared)
        self.resources: dict[str, Offer] = self._seen("resource", declared)
        self.templates: dict[str, tuple[Template, Offer]] = self._seen("resource template", declared)
        self.guarded: bool = any(
            each.marks.scopes or each.passed for offer in self.offers() for each in offer.versions.values() or (offer,)
        )
        """Whether there is something that not everybody may see."""
        self.ruled: bool = (
            bool(registry.guards)
            or registry.visibility is not None
            or any(mount.server.registry.shown.ruled for mount in registry.mounts)
        )
        """Whether there are rules by name or tag, which hold for what providers have as well."""
        self.provided: bool = bool(registry.providers) or any(mount.provided for mount in registry.mounts)
        """Whether there are more things than these, which somebody has to be asked for."""

    def offers(self) -> Iterator[Offer]:
        """All of them."""
        yield from self.tools.values()
        yield from self.prompts.values()
        yield from self.resources.values()
        yield from (offer for _, offer in self.templates.values())

    @cached_property
    def template_index(self) -> TemplateIndex:
        """The templates of resources, by their literal beginning."""
        return TemplateIndex(self.templates.values())

    @cached_property
    def by_canonical_uri(self) -> dict[str, Offer]:
        """The resources, by canonical URI."""
        return canonical_index(self.resources)

    @cached_property
    def hides(self) -> bool:
        """Whether rules of this server, or of a mounted one, may hide something."""
        return bool(self._registry.visibility) or any(
            mount.server.registry.shown.hides for mount in self._registry.mounts
        )

    @cached_property
    def _hidden_uris(self) -> frozenset[str]:
        """The canonical URIs of resources that are hidden, here or in mounted servers."""
        hidden = {canonical(uri) for uri in self._unruled["resource"]}
        for mount in self._registry.mounts:
            hidden |= {canonical(mount.uri(uri)) for uri in mount.server.registry.shown._hidden_uris}
        return frozenset(hidden - self.by_canonical_uri.keys())

    @cached_property
    def _unruled_index(self) -> TemplateIndex:
        return TemplateIndex(self._unruled["resource template"].values())

    def withholds(self, uri: str) -> bool:
        """Return whether what would answer for a URI is hidden, here or in a mounted server: a template that is shown
        does not take its place.
        """
        if not self.hides or canonical(uri) in self.by_canonical_uri:
            return False
        if canonical(uri) in self._hidden_uris:
            return True
        try:
            found = self._unruled_index.match(uri)
        except ResourceNotFound:
            return False  # nothing answers
        if found is not None and all(found[0] is not offer for _, offer in self.templates.values()):
            return True
        if found is not None and not found[0].inward:
            return False  # one that was declared here goes before those of mounted servers
        inside = [(mount.server.registry.shown, mount.inner_uri(uri)) for mount in self._registry.mounts]
        return any(inner_uri is not None and shown.withholds(inner_uri) for shown, inner_uri in inside)

    def listed(self, method: str) -> dict[str, Offer]:
        """What a list is made of."""
        if method == "resources/templates/list":
            return {text: offer for text, (_, offer) in self.templates.items()}
        return getattr(self, method.partition("/")[0])  # type: ignore[no-any-return]

    def defines(self, method: str) -> dict[str, Callable[[Any], Any]]:
        """What makes the items of a list, by name."""
        return {
            name: offer.define if offer.marks.version is None else partial(_told, offer)
            for name, offer in self.listed(method).items()
        }

    @property
    def capable(self) -> set[str]:
        """The capabilities that all of this makes up; each is there before anything may ask for it."""
        found = {name for name in ("tools", "prompts", "resources") if getattr(self, name)}
        if self.templates:
            found.add("resources")
        for offer in self.offers():
            if offer.proposals:
                found.add("completions")
            if self._may_log(offer):
                found.add("logging")
        return found

    def _may_log(self, offer: Offer) -> bool:
        """Whether it, or what stands around it or fills or completes its parameters, takes a context."""
        around = (*self._registry.around, *offer.around)
        parts = [offer, offer.depends, offer.proposals, *around]
        return any(part is not None and part.context for part in parts)

    def _seen(self, kind: str, declared: Declared) -> dict[str, Any]:
        registry, found = self._registry, dict(declared.of(kind))
        for mount in registry.mounts:
            for name, offer in mount.offered(_FIELDS[kind]).items():
                if found.setdefault(name, offer) is not offer:
                    log.warning("accord: the mounted %s %r is hidden by another of that name", kind, name)
        if kind == "tool" and registry.changes:
            found = _changed(registry, found)
        if kind == "tool" and registry.search is not None:
            found = {**registry.search.offers, **found}
        self._unruled[kind] = found
        if registry.visibility:
            seen = {name: _visible(name, held, registry.visibility) for name, held in found.items()}
            found = {name: held for name, held in seen.items() if held is not None}
        for name, held in found.items():
            if isinstance(held, tuple):
                dress(name, held[1], registry)
                pass_template(name, held[1], registry)
            else:
                dress(name, held, registry)
        return found


def _told(offer: Offer, rules: Rules) -> Any:
    return told(offer, rules, [*offer.versions] or [offer.marks.version or ""])


def dress(name: str, offer: Offer, registry: Registry) -> None:
    """Put the middleware of its server, and its own, around it; around all of its versions. And have it ask for what
    the middleware wants of who sees it.
    """
    mark(name, offer, registry)
    around = (*registry.around, *offer.around)
    if around or offer.chain is not None:
        offer.chain = chained(around)
        offer.asks = offer.asks or any(each.context for each in around)
    for version in offer.versions.values():
        if version is not offer:
            dress(name, version, registry)


def mark(name: str, offer: Offer, registry: Registry) -> None:
    """Have a registration ask for the scopes that the rules of a server want, by every name and tag that it has had.
    Rules that stand around it alone are asked where it was declared.
    """
    if name not in offer.names:
        offer.names = (*offer.names, name)
    guards = registry.guards
    if offer.around and offer.home is None:
        guards = (*guards, *guards_in(offer.around))
    if guards:
        marks, names = offer.marks, (*offer.names, *offer.former_names)
        scopes = marks.scopes | scopes_asked(guards, names, marks.tags | offer.former_tags)
        offer.marks = msgspec.structs.replace(marks, scopes=scopes)
    offer.open = not offer.marks.scopes and offer.marks.version is None and offer.stands_for is None


def pass_template(text: str, offer: Offer, registry: Registry) -> None:
    """Have the URIs of a template be judged by the rules of a server too, each when it is asked for."""
    depth, own = len(offer.inward), () if offer.home is not None else guards_in(offer.around)
    ruled = bool(own or registry.guards or registry.visibility)
    if ruled and all(each.registry is not registry or each.depth != depth for each in offer.passed):
        offer.passed = (*offer.passed, Passed(registry, depth, text, own))
    offer.open = offer.open and not offer.passed


def _changed(registry: Registry, found: dict[str, Offer]) -> dict[str, Offer]:
    """The tools with the changes that were asked for. Where a new name is taken, the first that has it is shown."""
    changed: dict[str, Offer] = {}
    for name, held in found.items():
        change = registry.changes.get(name)
        try:
            offer = held if change is None else change.apply(held)
        except DeclarationError as exc:  # not as it is either: what was to be hidden would be shown
            log.error("accord: the tool %r is not shown: %s", name, exc)
            continue
        if changed.setdefault(name if change is None else change.name or name, offer) is not offer:
            log.warning("accord: the tool %r is hidden by another that has been given its name", name)
    return changed


def _visible(name: str, held: Any, visibility: Visibility) -> Any:
    """What is held, as far as rules show it: of several versions those that are not hidden, the newest last."""
    offer: Offer = held[1] if isinstance(held, tuple) else held
    versions: Mapping[Any, Offer] = offer.versions or {offer.marks.version: offer}
    shown = {version: each for version, each in versions.items() if visibility.shows((name,), each.marks.tags)}
    if len(shown) == len(versions):
        return held
    if not shown:
        return None
    newest, _ = [*shown.items()][-1]
    made = shown[newest].derived()
    made.versions = {**shown, newest: made}
    return made
