"""A server inside another: what it offers, behind a prefix, as it is at any time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from accord.errors import DeclarationError, LifespanError, ToolError
from accord.messages.completion import PromptReference, Reference, ResourceTemplateReference
from accord.messages.revision import Rules
from accord.server.core.registration import Registration
from accord.server.declare.templates import Template
from accord.server.middleware.chain import MiddlewareStep

if TYPE_CHECKING:
    from accord.server.core.registry_view import RegistryView
    from accord.server.middleware.request import CallNext, Request
    from accord.server.server import Server

Rename = Callable[[str], "str | None"]

_PREFIX = re.compile(r"[A-Za-z0-9_.-]+")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:(?://)?)(.*)", re.DOTALL)


class Mount:
    """`prefix` may be empty: then the names stay as they are. Raises `DeclarationError` for what can be no prefix."""

    def __init__(self, server: Server, prefix: str) -> None:
        if prefix and not _PREFIX.fullmatch(prefix):
            raise DeclarationError(f"a prefix may contain only letters, digits, `_`, `-` and `.`, not {prefix!r}")
        self.server: Server = server
        self.prefix: str = prefix
        self._lifespan_middleware = MiddlewareStep(_lifespan_middleware(server))
        self._cache: dict[str, tuple[tuple[RegistryView, bool], dict[str, Any]]] = {}

    def name(self, name: str) -> str:
        """The name of a tool or prompt, as it is outside: `acme_forecast`."""
        return f"{self.prefix}_{name}" if self.prefix else name

    def inner_name(self, name: str) -> str | None:
        """The name inside; None for what is not from here."""
        start = f"{self.prefix}_" if self.prefix else ""
        return name[len(start) :] if name.startswith(start) else None

    def uri(self, uri: str) -> str:
        """A URI or template as it is outside: `weather://acme/oslo`."""
        found = _URI.fullmatch(uri)
        if not self.prefix or found is None:
            return uri
        return f"{found[1]}{self.prefix}/{found[2]}"

    def inner_uri(self, uri: str) -> str | None:
        """The URI inside; None for what is not from here."""
        found = _URI.fullmatch(uri)
        if not self.prefix or found is None:
            return uri if not self.prefix else None
        start = self.prefix + "/"
        return found[1] + found[2][len(start) :] if found[2].startswith(start) else None

    def inner(self, kind: str, name: str) -> str | None:
        """The name inside of a "tool" or "prompt", the URI of a "resource", the text of a "resource template"; None for
        what is not from here.
        """
        return self.inner_name(name) if kind in ("tool", "prompt") else self.inner_uri(name)

    def has(self, kind: str, name: str) -> bool:
        """Return whether the mounted server has something of this name outside, shown or hidden."""
        inside, registry = self.inner(kind, name), self.server.registry
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

    def inner_ref(self, ref: Reference) -> Reference | None:
        """What is completed, as it is inside; None for what is not from here."""
        if isinstance(ref, PromptReference):
            name = self.inner_name(ref.name)
            return None if name is None else PromptReference(name=name)
        uri = self.inner_uri(ref.uri)
        return None if uri is None else ResourceTemplateReference(uri=uri)

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
        return {self.name(name): self.tool(offer) for name, offer in registry.tools.items() if offer not in own}

    def _prompts(self) -> dict[str, Registration]:
        return {self.name(name): self.tool(offer) for name, offer in self.server.registry.prompts.items()}

    def _resources(self) -> dict[str, Registration]:
        return {self.uri(uri): self.resource(offer) for uri, offer in self.server.registry.resources.items()}

    def _templates(self) -> dict[str, tuple[Template, Registration]]:
        held = self.server.registry.templates
        return {
            self.uri(text): (
                Template(self.uri(text), unsafe_variables=template.unsafe_variables),
                self.template(offer),
            )
            for text, (template, offer) in held.items()
        }

    def outer(self, key: str, name: str, offer: Registration) -> tuple[str, Registration]:
        """A registration by its name and as it is outside; `key` is the field that names it."""
        if key == "name":
            return self.name(name), self.tool(offer)
        return self.uri(name), self.resource(offer) if key == "uri" else self.template(offer)

    def tool(self, offer: Registration) -> Registration:
        """A tool or a prompt, renamed, in all its versions."""
        derived = self._named(offer)
        derived.versions = {version: self._named(each) for version, each in offer.versions.items()}
        return derived

    def resource(self, offer: Registration) -> Registration:
        """A resource, at its URI outside."""
        return self._derived(offer, "uri", self.uri, self.inner_uri)

    def template(self, offer: Registration) -> Registration:
        """A template, with its text outside."""
        return self._derived(offer, "uri_template", self.uri, self.inner_uri)

    def _named(self, offer: Registration) -> Registration:
        return self._derived(offer, "name", self.name, self.inner_name)

    def _derived(
        self, offer: Registration, field: str, rename: Callable[[str], str], inner_name: Rename
    ) -> Registration:
        inner = offer.define

        def define(rules: Rules) -> Any:
            definition = inner(rules)
            return msgspec.structs.replace(definition, **{field: rename(getattr(definition, field))})

        home = offer.owner or self.server
        around = (*self.server.registry.middleware, *offer.middleware)
        if around:
            around = (MiddlewareStep(_name_middleware(offer.derived(owner=home), inner_name)), *around)
        if self.server.needs_lifespan or offer.dependencies is not None:
            around = (self._lifespan_middleware, *around)
        made = offer.derived(define=define, middleware=around, owner=home)
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


def _lifespan_middleware(server: Server) -> Any:
    """A middleware that has the mounted server run before anything of it is called."""

    async def alive(request: Request, call_next: CallNext) -> Any:
        try:
            await request.lifetime.start_mounted(server)
        except LifespanError as exc:
            raise ToolError(f"the mounted server {server.name!r} is not available: {exc}") from exc
        return await call_next(request)

    return alive


def check_no_cycle(outer: Any, inner: Server) -> None:
    """Raise `DeclarationError` if a server would come to stand inside itself."""
    if inner is outer:
        raise DeclarationError(f"the server {inner.name!r} cannot be mounted in itself, or in what it contains")
    for mount in inner.registry.mounts:
        check_no_cycle(outer, mount.server)
