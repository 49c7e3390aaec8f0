"""A server inside another: what it offers, behind a prefix, as it is at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from accord.errors import DeclarationError, LifespanError, ToolError
from accord.messages.revision import Rules
from accord.server.compose.mount_names import MountNames
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
        """Whether anything has to be started before its functions are called."""


class Mount:
    """A server, behind a prefix. Raises `DeclarationError` for what can be no prefix."""

    def __init__(self, server: MountableServer, prefix: str) -> None:
        self.server: MountableServer = server
        self.names: MountNames = MountNames(prefix)
        """The names outside and inside."""
        self._lifespan_middleware = MiddlewareStep(_lifespan_middleware(server))
        self._cache: dict[str, tuple[tuple[RegistryView, bool], dict[str, Any]]] = {}

    @property
    def registry(self) -> Registry:
        """What is mounted."""
        return self.server.registry

    @property
    def view(self) -> RegistryView:
        """What the mounted server offers at present."""
        return self.server.registry.view

    @property
    def needs_lifespan(self) -> bool:
        """Whether anything has to be started before its functions are called."""
        return self.server.needs_lifespan

    def has(self, kind: str, name: str) -> bool:
        """Return whether the mounted server has something of this name outside, shown or hidden."""
        inside, registry = self.names.inner(kind, name), self.server.registry
        return inside is not None and (registry.find(kind, inside) is not None or registry.hides(kind, inside))

    @property
    def has_providers(self) -> bool:
        """Whether somebody has to be asked for what else there is."""
        return self.server.registry.view.has_providers

    @property
    def capabilities(self) -> set[str]:
        """The capabilities that this makes up."""
        declared = self.server.registry.capabilities()
        names = ("tools", "prompts", "resources", "completions", "logging")
        return {name for name in names if getattr(declared, name) is not None}

    # --- what is offered ---------------------------------------------------------------------------------------

    def offered(self, kind: str) -> dict[str, Any]:
        """All of a kind ("tools", "prompts", "resources", "templates") that are seen there, by the name or URI outside.

        They are made again only where something there has changed, not with every change of another server.
        """
        of = self.server.registry.view, self.server.needs_lifespan
        made, found = self._cache.get(kind, (None, {}))
        if made != of:
            found = getattr(self, f"_{kind}")()
            self._cache[kind] = of, found
        return found

    def _tools(self) -> dict[str, Registration]:
        registry = self.server.registry
        own = () if registry.search is None else registry.search.registrations.values()  # they search there, not here
        return {self.names.name(name): self.tool(offer) for name, offer in registry.tools.items() if offer not in own}

    def _prompts(self) -> dict[str, Registration]:
        return {self.names.name(name): self.tool(offer) for name, offer in self.server.registry.prompts.items()}

    def _resources(self) -> dict[str, Registration]:
        return {self.names.uri(uri): self.resource(offer) for uri, offer in self.server.registry.resources.items()}

    def _templates(self) -> dict[str, tuple[Template, Registration]]:
        held = self.server.registry.templates
        return {
            self.names.uri(text): (
                Template(self.names.uri(text), unsafe_variables=template.unsafe_variables),
                self.template(offer),
            )
            for text, (template, offer) in held.items()
        }

    def outer(self, key: str, name: str, offer: Registration) -> tuple[str, Registration]:
        """A registration by its name and as it is outside; `key` is the field that names it."""
        if key == "name":
            return self.names.name(name), self.tool(offer)
        return self.names.uri(name), self.resource(offer) if key == "uri" else self.template(offer)

    def tool(self, offer: Registration) -> Registration:
        """A tool or a prompt, renamed, in all its versions."""
        derived = self._named(offer)
        derived.versions = {version: self._named(each) for version, each in offer.versions.items()}
        return derived

    def resource(self, offer: Registration) -> Registration:
        """A resource, at its URI outside."""
        return self._derived(offer, "uri", self.names.uri, self.names.inner_uri)

    def template(self, offer: Registration) -> Registration:
        """A template, with its text outside."""
        return self._derived(offer, "uri_template", self.names.uri, self.names.inner_uri)

    def _named(self, offer: Registration) -> Registration:
        return self._derived(offer, "name", self.names.name, self.names.inner_name)

    def _derived(
        self, offer: Registration, field: str, rename: Callable[[str], str], inner_name: Rename
    ) -> Registration:
        inner = offer.define

        def define(rules: Rules) -> Any:
            definition = inner(rules)
            return msgspec.structs.replace(definition, **{field: rename(getattr(definition, field))})

        home = owner_of(offer) or self.server
        around = (*self.server.registry.middleware, *offer.middleware)
        if around:
            around = (MiddlewareStep(_name_middleware(MountedRegistration.of(offer, home), inner_name)), *around)
        if self.server.needs_lifespan or offer.dependencies is not None:
            around = (self._lifespan_middleware, *around)
        made = MountedRegistration.of(offer, home, define=define, middleware=around)
        made.former_names = (*offer.former_names, *offer.names)
        made.names = tuple(map(rename, offer.names))
        made.inner_names = (inner_name, *offer.inner_names)
        return made


def _name_middleware(offer: Registration, inner_name: Rename) -> Any:
    """What stands outside of the middleware of a mounted server, which knows the names inside."""

    async def inward(request: Request, call_next: CallNext) -> Any:
        _, arguments, _, _ = request.inside
        return await call_next(request.called(inner_name(request.name) or request.name, offer, arguments))

    return inward


def _lifespan_middleware(server: MountableServer) -> Any:
    """A middleware that has the mounted server run before anything of it is called."""

    async def alive(request: Request, call_next: CallNext) -> Any:
        try:
            await request.lifetime.start_mounted(server.lifetimes)
        except LifespanError as exc:
            raise ToolError(f"the mounted server {server.name!r} is not available: {exc}") from exc
        return await call_next(request)

    return alive


def check_no_cycle(outer: LivingServer, inner: MountableServer) -> None:
    """Raise `DeclarationError` if a server would come to stand inside itself."""
    if _contains(inner.registry, outer.registry):
        raise DeclarationError(f"the server {outer.name!r} cannot be mounted in itself, or in what it contains")


def _contains(registry: Registry, other: Registry) -> bool:
    return registry is other or any(_contains(mount.registry, other) for mount in registry.mounts)
