"""A mounted server: its current registrations, renamed with a prefix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from accord.errors import DeclarationError, LifespanError, ToolError
from accord.messages.revision import Rules
from accord.server.compose.mount_names import MountNames
from accord.server.compose.versions import in_all_versions
from accord.server.core.context import RunningServer
from accord.server.core.mounted_registration import MountedRegistration, owner_of
from accord.server.core.registration import Registration
from accord.server.declare.templates import Template
from accord.server.middleware.chain import MiddlewareStep

if TYPE_CHECKING:
    from accord.server.core.registry import Registry
    from accord.server.core.registry_view import RegistryView
    from accord.server.core.types import LivingServer
    from accord.server.middleware.request import CallNext, Request

Rename = Callable[[str], "str | None"]


class MountableServer(RunningServer, Protocol):
    """A server that can be mounted."""

    @property
    def needs_lifespan(self) -> bool:
        """Whether a lifespan has to start before handlers are called."""


class Mount:
    """A mounted server, its prefix, and the server around it. Raises `DeclarationError` for an invalid prefix."""

    def __init__(self, server: MountableServer, prefix: str, outer: RunningServer) -> None:
        self.server: MountableServer = server
        self._outer = outer
        self.names: MountNames = MountNames(prefix)
        """The mapping between names on the outer and on the mounted server."""
        self._lifespan_middleware = MiddlewareStep(_lifespan_middleware(server))
        self._cache: dict[str, tuple[tuple[RegistryView, bool], dict[str, Any]]] = {}

    @property
    def registry(self) -> Registry:
        """The registry of the mounted server."""
        return self.server.registry

    @property
    def view(self) -> RegistryView:
        """The current view of the mounted server's registry."""
        return self.server.registry.view

    @property
    def needs_lifespan(self) -> bool:
        """Whether a lifespan has to start before handlers are called."""
        return self.server.needs_lifespan

    def has(self, kind: str, name: str) -> bool:
        """Return whether the mounted server has an item with this outer name, shown or hidden."""
        inside, registry = self.names.inner(kind, name), self.server.registry
        return inside is not None and (registry.find(kind, inside) is not None or registry.hides(kind, inside))

    async def start(self) -> None:
        """Start the mounted server, which then runs as long as the outer one. Raises `LifespanError`, and
        `DeclarationError` for type hints with unknown names.
        """
        await self._outer.lifetimes.current().start_mounted(self.server.lifetimes)

    @property
    def has_providers(self) -> bool:
        """Whether the mounted server has providers, so that its items are not all registered."""
        return self.server.registry.view.has_providers

    @property
    def capabilities(self) -> set[str]:
        """The capabilities that the mounted server contributes."""
        declared = self.server.registry.capabilities()
        names = ("tools", "prompts", "resources", "completions", "logging")
        return {name for name in names if getattr(declared, name) is not None}

    # --- registrations -----------------------------------------------------------------------------------------

    def offered(self, kind: str) -> dict[str, Any]:
        """Return the visible registrations of a kind ("tools", "prompts", "resources", "templates") by outer name or
        URI.

        They are cached until the mounted server changes.
        """
        version = self.server.registry.view, self.server.needs_lifespan
        cached_version, registrations = self._cache.get(kind, (None, {}))
        if cached_version != version:
            registrations = getattr(self, f"_{kind}")()
            self._cache[kind] = version, registrations
        return registrations

    def _tools(self) -> dict[str, Registration]:
        registry = self.server.registry
        # the search tools of the mounted server search only that server
        own = () if registry.search is None else registry.search.registrations.values()
        return {
            self.names.name(name): self.tool(registration)
            for name, registration in registry.tools.items()
            if registration not in own
        }

    def _prompts(self) -> dict[str, Registration]:
        return {
            self.names.name(name): self.tool(registration)
            for name, registration in self.server.registry.prompts.items()
        }

    def _resources(self) -> dict[str, Registration]:
        return {
            self.names.uri(uri): self.resource(registration)
            for uri, registration in self.server.registry.resources.items()
        }

    def _templates(self) -> dict[str, tuple[Template, Registration]]:
        templates = self.server.registry.templates
        return {
            self.names.uri(text): (
                Template(self.names.uri(text), unsafe_variables=template.unsafe_variables),
                self.template(registration),
            )
            for text, (template, registration) in templates.items()
        }

    def outer(self, key: str, name: str, registration: Registration) -> tuple[str, Registration]:
        """Return a registration and its name, both as on the outer server; `key` is the field of the name."""
        if key == "name":
            return self.names.name(name), self.tool(registration)
        return self.names.uri(name), self.resource(registration) if key == "uri" else self.template(registration)

    def tool(self, registration: Registration) -> Registration:
        """Return a tool or prompt with its outer name, in all versions."""
        return in_all_versions(registration, self._rename)

    def resource(self, registration: Registration) -> Registration:
        """Return a resource with its outer URI."""
        return self._derive(registration, "uri", self.names.uri, self.names.inner_uri)

    def template(self, registration: Registration) -> Registration:
        """Return a template with its outer text."""
        return self._derive(registration, "uri_template", self.names.uri, self.names.inner_uri)

    def _rename(self, registration: Registration) -> Registration:
        return self._derive(registration, "name", self.names.name, self.names.inner_name)

    def _derive(
        self, registration: Registration, field: str, rename: Callable[[str], str], inner_name: Rename
    ) -> Registration:
        inner = registration.define

        def define(rules: Rules) -> Any:
            definition = inner(rules)
            renamed: dict[str, Any] = {field: rename(getattr(definition, field))}
            meta = definition.meta
            if meta and "ui" in meta and field == "name":
                renamed["meta"] = _with_page_uri(meta, self.names.uri)
            return msgspec.structs.replace(definition, **renamed)

        owner = owner_of(registration) or self.server
        middleware = (*self.server.registry.middleware, *registration.middleware)
        if middleware:
            middleware = (
                MiddlewareStep(_name_middleware(MountedRegistration.of(registration, owner), inner_name)),
                *middleware,
            )
        if self.server.needs_lifespan or registration.dependencies is not None:
            middleware = (self._lifespan_middleware, *middleware)
        mounted = MountedRegistration.of(registration, owner, define=define, middleware=middleware)
        mounted.former_names = (*registration.former_names, *registration.names)
        mounted.names = tuple(map(rename, registration.names))
        mounted.inner_names = (inner_name, *registration.inner_names)
        return mounted


def _with_page_uri(meta: Mapping[str, Any], rename: Callable[[str], str]) -> dict[str, Any]:
    """Return the `_meta` of a tool with the outer URI of its page (extension MCP Apps)."""
    ui = meta["ui"]
    if not isinstance(ui, Mapping) or not isinstance(ui.get("resourceUri"), str):
        return dict(meta)
    return {**meta, "ui": {**ui, "resourceUri": rename(ui["resourceUri"])}}


def _name_middleware(registration: Registration, inner_name: Rename) -> Any:
    """Return the middleware that maps names to the mounted server, around that server's middleware."""

    async def rename_request(request: Request, call_next: CallNext) -> Any:
        _, arguments, _, _ = request.inside
        return await call_next(request.called(inner_name(request.name) or request.name, registration, arguments))

    return rename_request


def _lifespan_middleware(server: MountableServer) -> Any:
    """Return the middleware that starts the mounted server before its first call."""

    async def start_server(request: Request, call_next: CallNext) -> Any:
        try:
            await request.lifetime.start_mounted(server.lifetimes)
        except LifespanError as exc:
            raise ToolError(f"the mounted server {server.name!r} is not available: {exc}") from exc
        return await call_next(request)

    return start_server


def check_no_cycle(outer: LivingServer, inner: MountableServer) -> None:
    """Raise `DeclarationError` if a server would contain itself."""
    if _contains(inner.registry, outer.registry):
        raise DeclarationError(f"the server {outer.name!r} cannot be mounted in itself, or in what it contains")


def _contains(registry: Registry, other: Registry) -> bool:
    return registry is other or any(_contains(mount.registry, other) for mount in registry.mounts)
