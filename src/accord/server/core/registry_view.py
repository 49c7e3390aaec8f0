"""A view of a registry at one moment: the declared and mounted registrations, with changes and visibility rules
applied.

Templates are indexed by their literal prefix, so that a URI is compared with few of them. The cost of one comparison is
bounded too: `messages.bounds` bounds the URI, and `Template.match` is linear in it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from accord.errors import DeclarationError, ResourceNotFound
from accord.server.compose.uri_spelling import canonical, canonical_index, with_ordered_query
from accord.server.compose.versions import versioned_definition
from accord.server.core.registration import Registration, TemplateGuard
from accord.server.middleware.chain import build_chain, guards_in, required_scopes

if TYPE_CHECKING:
    from accord.messages.revision import Rules
    from accord.server.compose.change import ToolChange
    from accord.server.compose.mount_names import MountNames
    from accord.server.compose.provider import Provider
    from accord.server.core.visibility import Visibility
    from accord.server.declare.templates import Template
    from accord.server.middleware.chain import Guard, MiddlewareStep


class TemplateIndex:
    """Resource templates by literal prefix; of several that match a URI, the first declared one is used."""

    def __init__(self, templates: Iterable[tuple[Template, Registration]]) -> None:
        self._by_prefix: dict[str, list[tuple[int, Template, Registration]]] = {}
        self._units: Callable[[str], str | None] = lambda uri: None
        for at, (template, registration) in enumerate(templates):
            self._units = template.units
            self._by_prefix.setdefault(template.prefix, []).append((at, template, registration))
        self._lengths = sorted({len(prefix) for prefix in self._by_prefix})

    def match(self, uri: str) -> tuple[Registration, dict[str, Any]] | None:
        """Return the registration for a URI and the values of its variables; None if no template matches.

        Raises `ResourceNotFound` for values that the template does not accept, see `Template.unsafe_in`.
        """
        units = self._units(uri)
        if units is None:
            return None
        found = [each for length in self._lengths for each in self._by_prefix.get(units[:length], ())]
        for _, template, registration in sorted(found, key=lambda each: each[0]):
            values = template.match_units(units)
            if values is None:
                continue
            if (why := template.unsafe_in(values)) is not None:
                raise ResourceNotFound(f"no resource {uri!r:.200}: {why}", uri=uri)
            return registration, values
        return None


log: logging.Logger = logging.getLogger("accord.server")


Reached = tuple[tuple[Registration, str], ...]
"""Registrations that other spellings of a URI lead to, each with its spelling."""


class Declarations(msgspec.Struct):
    """The declarations of one server, by name."""

    tools: dict[str, Registration] = {}
    prompts: dict[str, Registration] = {}
    resources: dict[str, Registration] = {}
    templates: dict[str, Any] = {}

    def of(self, kind: str) -> dict[str, Any]:
        """Return those of a kind: "tool", "prompt", "resource", "resource template"."""
        return getattr(self, _FIELDS[kind])  # type: ignore[no-any-return]


_FIELDS = {"tool": "tools", "prompt": "prompts", "resource": "resources", "resource template": "templates"}


class MountedView(Protocol):
    """A mounted server as the view of its outer server uses it."""

    names: MountNames

    @property
    def view(self) -> RegistryView:
        """The current view of the mounted server."""

    @property
    def has_providers(self) -> bool:
        """Whether providers have to be asked for more registrations."""

    def offered(self, kind: str) -> dict[str, Any]:
        """Return the visible registrations of a kind, by outer name or URI."""


class ToolSearch(Protocol):
    """The search that replaces most tools in the list of a large server; see `compose.search`."""

    registrations: dict[str, Registration]
    """The tools that search and call."""

    def listed(self, tools: dict[str, Any], provided: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tools to list."""


class RegistryParts(Protocol):
    """A registry as its view uses it."""

    providers: tuple[Provider, ...]
    middleware: tuple[MiddlewareStep, ...]
    tool_changes: dict[str, ToolChange]
    search: ToolSearch | None
    visibility: Visibility | None

    @property
    def mounts(self) -> Sequence[MountedView]:
        """The mounted servers."""

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The access rules of its middleware."""


class RegistryView:
    """The registrations of a registry at one moment, created anew after each change."""

    def __init__(self, registry: RegistryParts, declared: Declarations) -> None:
        self._registry = registry
        self.before_rules: dict[str, dict[str, Any]] = {}
        """The registrations of each kind, by name, before visibility rules hide some of them."""
        self.listed_uris: dict[str, tuple[Registration | None, Reached | None]] = {}
        """The registrations for listed URIs, and those that other spellings lead to; see `Viewer.can_list`."""
        self.tools: dict[str, Registration] = self._visible("tool", declared)
        self.prompts: dict[str, Registration] = self._visible("prompt", declared)
        self.resources: dict[str, Registration] = self._visible("resource", declared)
        self.templates: dict[str, tuple[Template, Registration]] = self._visible("resource template", declared)
        self.requires_scopes: bool = any(
            each.metadata.scopes or each.template_guards
            for registration in self.registrations()
            for each in registration.versions.values() or (registration,)
        )
        """Whether a registration is hidden from some principals."""
        self.listing_extensions: frozenset[str] = frozenset(filter(None, (t.listed_with for t in self.tools.values())))
        """The extensions without which a session does not list some tools."""
        self.has_needs: bool = any(
            each.metadata.needs for tool in self.tools.values() for each in tool.versions.values() or (tool,)
        )
        """Whether calls of a tool need scopes."""
        self.has_rules: bool = (
            bool(registry.guards)
            or registry.visibility is not None
            or any(mount.view.has_rules for mount in registry.mounts)
        )
        """Whether there are rules by name or tag; they apply to registrations of providers too."""
        self.has_providers: bool = bool(registry.providers) or any(mount.has_providers for mount in registry.mounts)
        """Whether providers have to be asked for more registrations."""

    def registrations(self) -> Iterator[Registration]:
        """Yield all registrations."""
        yield from self.tools.values()
        yield from self.prompts.values()
        yield from self.resources.values()
        yield from (registration for _, registration in self.templates.values())

    @cached_property
    def template_index(self) -> TemplateIndex:
        """The resource templates, by their literal prefix."""
        return TemplateIndex(self.templates.values())

    @cached_property
    def by_canonical_uri(self) -> dict[str, Registration]:
        """The resources, by canonical URI."""
        return canonical_index(self.resources)

    @cached_property
    def by_ordered_query(self) -> dict[str, Registration]:
        """The resources with several query parameters, by URIs with sorted parameters."""
        return canonical_index({with_ordered_query(uri): each for uri, each in self.resources.items() if "&" in uri})

    @cached_property
    def has_visibility_rules(self) -> bool:
        """Whether rules of this server, or of a mounted one, may hide a registration."""
        return bool(self._registry.visibility) or any(
            mount.view.has_visibility_rules for mount in self._registry.mounts
        )

    @cached_property
    def may_hide_uris(self) -> bool:
        """Whether the URI of a registration, or of a provider's resource, may be hidden from some client."""
        registrations = (*self.resources.values(), *(registration for _, registration in self.templates.values()))
        return self.has_rules or any(each.metadata.scopes or each.template_guards for each in registrations)

    @cached_property
    def _hidden_uris(self) -> frozenset[str]:
        """The canonical URIs of hidden resources, here or in mounted servers."""
        hidden = {canonical(form) for uri in self.before_rules["resource"] for form in (uri, with_ordered_query(uri))}
        for mount in self._registry.mounts:
            hidden |= {canonical(mount.names.uri(uri)) for uri in mount.view._hidden_uris}
        return frozenset(hidden - self.by_canonical_uri.keys())

    @cached_property
    def _template_index_before_rules(self) -> TemplateIndex:
        return TemplateIndex(self.before_rules["resource template"].values())

    def resource(self, uri: str) -> tuple[Registration, dict[str, Any]]:
        """Return the resource or template for a URI, and the values of the template's variables. Raises
        `ResourceNotFound`.
        """
        registration = self.resources.get(uri) or self.by_canonical_uri.get(canonical(uri))
        if registration is not None:
            return registration, {}
        if self.templates and (found := self.template_index.match(uri)) is not None:
            return found
        raise ResourceNotFound(uri=uri)

    def _has_resource(self, uri: str) -> bool:
        try:
            self.resource(uri)
        except ResourceNotFound:
            return False
        return True

    def hides_uri(self, uri: str) -> bool:
        """Return whether the registration for a URI is hidden, here or in a mounted server; a visible template does not
        take its place.
        """
        if not self.has_visibility_rules or canonical(uri) in self.by_canonical_uri:
            return False
        if canonical(uri) in self._hidden_uris:
            return True
        try:
            found = self._template_index_before_rules.match(uri)
        except ResourceNotFound:  # raised by a hidden template if another registration has the URI
            return self._has_resource(uri)
        if found is not None and all(found[0] is not registration for _, registration in self.templates.values()):
            return True
        if found is not None and not found[0].inner_names:
            return False  # templates declared here precede those of mounted servers
        inside = [(mount.view, mount.names.inner_uri(uri)) for mount in self._registry.mounts]
        return any(inner_uri is not None and shown.hides_uri(inner_uri) for shown, inner_uri in inside)

    def listed(self, method: str) -> dict[str, Registration]:
        """Return the registrations of a list, by name."""
        if method == "resources/templates/list":
            return {text: registration for text, (_, registration) in self.templates.items()}
        return getattr(self, method.partition("/")[0])  # type: ignore[no-any-return]

    def definitions(self, method: str) -> dict[str, Callable[[Any], Any]]:
        """Return functions that make the definitions of a list, by name."""
        return {
            name: registration.define
            if registration.metadata.version is None
            else partial(_versioned_definition, registration)
            for name, registration in self.listed(method).items()
        }

    @property
    def capabilities(self) -> set[str]:
        """The capabilities of the registrations; each must be declared before a client may use it."""
        found = {name for name in ("tools", "prompts", "resources") if getattr(self, name)}
        if self.templates:
            found.add("resources")
        for registration in self.registrations():
            if registration.completions:
                found.add("completions")
            if self._may_log(registration):
                found.add("logging")
        return found

    def _may_log(self, registration: Registration) -> bool:
        """Return whether the function, its middleware, its dependencies or its completers take a context."""
        around = (*self._registry.middleware, *registration.middleware)
        parts = [registration, registration.dependencies, registration.completions, *around]
        return any(part is not None and part.context for part in parts)

    def _visible(self, kind: str, declared: Declarations) -> dict[str, Any]:
        registry, found = self._registry, dict(declared.of(kind))
        for mount in registry.mounts:
            for name, registration in mount.offered(_FIELDS[kind]).items():
                if found.setdefault(name, registration) is not registration:
                    log.warning("accord: the mounted %s %r is hidden by another of that name", kind, name)
        if kind == "tool" and registry.tool_changes:
            found = _apply_changes(registry, found)
        if kind == "tool" and registry.search is not None:
            found = {**registry.search.registrations, **found}
        self.before_rules[kind] = found
        if registry.visibility:
            seen = {name: _visible(name, declaration, registry.visibility) for name, declaration in found.items()}
            found = {name: declaration for name, declaration in seen.items() if declaration is not None}
        for name, declaration in found.items():
            if isinstance(declaration, tuple):
                apply_middleware(name, declaration[1], registry)
                guard_template(name, declaration[1], registry)
            else:
                apply_middleware(name, declaration, registry)
        return found


def _versioned_definition(registration: Registration, rules: Rules) -> Any:
    return versioned_definition(registration, rules, [*registration.versions] or [registration.metadata.version or ""])


def apply_middleware(name: str, registration: Registration, registry: RegistryParts) -> None:
    """Wrap a registration and all of its versions in the middleware of the server and its own, and add the scopes that
    the middleware requires.
    """
    apply_scopes(name, registration, registry)
    around = (*registry.middleware, *registration.middleware)
    if around or registration.chain is not None:
        registration.chain = build_chain(around)
        registration.may_request_input = registration.may_request_input or any(each.context for each in around)
    for version in registration.versions.values():
        if version is not registration:
            apply_middleware(name, version, registry)


def apply_scopes(name: str, registration: Registration, registry: RegistryParts) -> None:
    """Add the scopes that the rules of a server require, by every current and former name and tag. Rules of the
    registration itself apply where it was declared.
    """
    if name not in registration.names:
        registration.names = (*registration.names, name)
    guards = registry.guards
    if registration.middleware and not registration.is_mounted:
        guards = (*guards, *guards_in(registration.middleware))
    if guards:
        marks, names = registration.metadata, (*registration.names, *registration.former_names)
        scopes = marks.scopes | required_scopes(guards, names, marks.tags | registration.former_tags)
        registration.metadata = msgspec.structs.replace(marks, scopes=scopes)
    marks = registration.metadata
    registration.is_public = not (
        marks.scopes or marks.needs or marks.version is not None or registration.rewrite_call is not None
    )


def guard_template(text: str, registration: Registration, registry: RegistryParts) -> None:
    """Have the rules of a server check the URIs of a template, each when a client requests it."""
    depth, own = len(registration.inner_names), () if registration.is_mounted else guards_in(registration.middleware)
    ruled = bool(own or registry.guards or registry.visibility)
    if ruled and all(each.registry is not registry or each.depth != depth for each in registration.template_guards):
        registration.template_guards = (*registration.template_guards, TemplateGuard(registry, depth, text, own))
    registration.is_public = registration.is_public and not registration.template_guards


def _apply_changes(registry: RegistryParts, found: dict[str, Registration]) -> dict[str, Registration]:
    """Return the tools with their changes. Of several tools with one new name, the first is shown."""
    changed: dict[str, Registration] = {}
    for name, declaration in found.items():
        change = registry.tool_changes.get(name)
        try:
            registration = declaration if change is None else change.apply(declaration)
        except DeclarationError as exc:  # nor without the change, which may hide parts of it
            log.error("accord: the tool %r is not shown: %s", name, exc)
            continue
        if changed.setdefault(name if change is None else change.name or name, registration) is not registration:
            log.warning("accord: the tool %r is hidden by another that has been given its name", name)
    return changed


def _visible(name: str, declaration: Any, visibility: Visibility) -> Any:
    """Return a declaration as far as rules show it: of several versions those that are not hidden, the newest last.
    None if all are hidden.
    """
    registration: Registration = declaration[1] if isinstance(declaration, tuple) else declaration
    versions: Mapping[Any, Registration] = registration.versions or {registration.metadata.version: registration}
    shown = {version: each for version, each in versions.items() if visibility.is_visible((name,), each.metadata.tags)}
    if len(shown) == len(versions):
        return declaration
    if not shown:
        return None
    newest, _ = [*shown.items()][-1]
    made = shown[newest].derived()
    made.versions = {**shown, newest: made}
    return made
