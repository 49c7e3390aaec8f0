"""Resolution of names to registrations of providers, also in mounted servers.

If a provider fails or times out, its items are left out of lists, and the others remain. A lookup raises that failure
only if no other provider has the item. The log has the details.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from operator import is_
from typing import TYPE_CHECKING, Any, TypeVar

from accord.errors import DeclarationError, InternalError
from accord.messages.completion import Completion, Reference
from accord.messages.content import Resource
from accord.messages.prompts import Prompt
from accord.messages.resources import ResourceTemplate
from accord.messages.tools import Tool
from accord.redaction import describe_redacted
from accord.server.core.registration import Registration, definition_key, listing_extension
from accord.server.core.registry import KINDS
from accord.server.core.registry_view import apply_middleware, apply_scopes
from accord.server.declare.parameters import unwrap_callable
from accord.server.declare.schema_tool import context_of, is_context, schema_tool_registration

if TYPE_CHECKING:
    from accord.limits import Limits
    from accord.server.compose.provider import Provided, Provider
    from accord.server.core.registry import MountedRegistry, Registry

T = TypeVar("T")

log: logging.Logger = logging.getLogger("accord.server")

_LIST_METHODS: dict[str, tuple[str, str, type]] = {
    "tools/list": ("tools", "name", Tool),
    "prompts/list": ("prompts", "name", Prompt),
    "resources/list": ("resources", "uri", Resource),
    "resources/templates/list": ("templates", "uri_template", ResourceTemplate),
}
"""The provider's method for each list, the key field of its items, and their type."""


class ProviderResolver:
    """Resolver of the items of one registry's providers."""

    def __init__(self, registry: Registry, limits: Limits) -> None:
        self._registry = registry
        self._limits = limits

    async def tool(self, name: str) -> Registration | None:
        """Return a tool, or None if no provider has it. Raises `InternalError` if a provider failed and no other has
        the tool.
        """
        changes = self._registry.tool_changes
        inside = next((old for old, change in changes.items() if change.name == name), name)
        change = changes.get(inside)
        if change is not None and (change.name or inside) != name:
            return None  # the change gives it another name
        registration = await self._find("tool", inside, lambda each: _tool(each, self._limits))
        if change is not None and self._registry.hides("tool", inside):
            return None
        return self._with_middleware(
            "tool", name, registration if registration is None or change is None else change.apply(registration)
        )

    async def prompt(self, name: str) -> Registration | None:
        """Return a prompt; see `tool`."""
        return self._with_middleware("prompt", name, await self._find("prompt", name, _prompt))

    async def resource(self, uri: str) -> Registration | None:
        """Return a resource; see `tool`."""
        return self._with_middleware("resource", uri, await self._find("resource", uri, _resource))

    async def listed(self, method: str) -> dict[str, Registration]:
        """Return the listed registrations by name or URI, with the scopes required by this server and
        the mounted ones.
        """
        list_name, key, _ = _LIST_METHODS[method]
        registrations: dict[str, Registration] = {}
        for index, provider in enumerate(self._registry.providers):
            try:
                provided = await self._listed_by(index, provider, method)
            except Exception as exc:
                _warn(provider, f"say what {list_name} it has", exc)
                continue
            for name, registration in provided.items():
                registrations.setdefault(name, registration)
        for mount, inner in self._mounted_resolvers():
            for name, registration in (await inner.listed(method)).items():
                outside, outer = mount.outer(key, name, registration)
                registrations.setdefault(outside, outer)
        changed = self._apply_changes(registrations) if list_name == "tools" else registrations
        if not (
            self._registry.guards or self._registry.visibility or self._registry.tool_changes or self._registry.mounts
        ):
            return changed  # only one name each, and no scopes
        kind = KINDS[method]
        return {
            name: registration for name, registration in changed.items() if self._with_scopes(kind, name, registration)
        }

    async def _listed_by(self, index: int, provider: Provider, method: str) -> dict[str, Registration]:
        """Return the registrations that one provider lists, cached until it returns other definitions."""
        list_name, _, kind = _LIST_METHODS[method]
        cache = self._registry.provider_registrations
        provided = await self._call_provider(getattr(provider, list_name)())
        provided = list(provided)
        cached = cache.get((index, method))
        if cached is None or len(cached[0]) != len(provided) or not all(map(is_, cached[0], provided)):
            registrations: dict[str, Registration] = {}
            for definition in _definitions(provided, list_name, kind):
                registration = _listed_registration(definition)
                registrations.setdefault(registration.names[0], registration)
            cached = cache[index, method] = provided, registrations
        return cached[1]

    async def complete(self, ref: Reference, argument: str, typed: str) -> Completion | Iterable[str] | None:
        """Return values for an argument, or None if no provider has them."""
        for provider in self._registry.providers:
            try:
                values = await self._call_provider(provider.complete(ref, argument, typed))
            except Exception as exc:
                _warn(provider, f"complete {argument!r}", exc)
                continue
            if values is not None:
                return values
        for mount, inner in self._mounted_resolvers():
            inside = mount.names.inner_ref(ref)
            if inside is not None and (values := await inner.complete(inside, argument, typed)) is not None:
                return values
        return None

    async def _find(self, kind: str, name: str, make: Callable[[Provided], Registration]) -> Registration | None:
        """Return the first provider's or mounted server's registration, with its name on this server."""
        failed: Exception | None = None
        for provider in self._registry.providers:
            try:
                if (provided := await self._call_provider(getattr(provider, kind)(name))) is not None:
                    return make(provided)
            except Exception as exc:
                _warn(provider, f"say whether it has {kind} {name!r}", exc)
                failed = failed or exc
        for mount, inner in self._mounted_resolvers():
            inside = mount.names.inner_uri(name) if kind == "resource" else mount.names.inner_name(name)
            try:
                if inside is not None and (registration := await getattr(inner, kind)(inside)) is not None:
                    return mount.resource(registration) if kind == "resource" else mount.tool(registration)
            except InternalError as exc:
                failed = failed or exc
        if isinstance(failed, InternalError):
            raise failed
        if failed is not None:
            reason = describe_redacted(failed)
            raise InternalError(f"access to the {kind} {name!r} could not be checked: {reason}")
        return None

    async def _call_provider(self, answer: Awaitable[T]) -> T:
        async with asyncio.timeout(self._limits.provider_seconds):
            return await answer

    def _apply_changes(self, registrations: dict[str, Registration]) -> dict[str, Registration]:
        changed: dict[str, Registration] = {}
        for name, registration in registrations.items():
            change = self._registry.tool_changes.get(name)
            if change is not None and self._registry.hides("tool", name):
                continue
            try:
                result = registration if change is None else change.apply(registration)
            except DeclarationError as exc:
                log.error("accord: the tool %r is not shown: %s", name, exc)
                continue
            changed.setdefault(name if change is None else change.name or name, result)
        return changed

    def _mounted_resolvers(self) -> Iterator[tuple[MountedRegistry, ProviderResolver]]:
        for mount in self._registry.mounts:
            if mount.has_providers:
                yield mount, ProviderResolver(mount.registry, self._limits)

    def _with_middleware(self, kind: str, name: str, registration: Registration | None) -> Registration | None:
        if registration is None or self._with_scopes(kind, name, registration) is None:
            return None
        apply_middleware(name, registration, self._registry)
        return registration

    def _with_scopes(self, kind: str, name: str, registration: Registration) -> Registration | None:
        """Return a registration with the scopes that this server requires; None if a rule hides it, or hides what it
        would replace.
        """
        apply_scopes(name, registration, self._registry)
        visibility = self._registry.visibility
        if visibility is not None and not visibility.is_visible(registration.names, registration.metadata.tags):
            return None
        return None if self._registry.hides(kind, name) else registration


def _warn(provider: Provider, action: str, exc: Exception) -> None:
    log.warning("accord: the provider %s failed to %s", type(provider).__qualname__, action, exc_info=exc)


def _definitions(provided: Any, list_name: str, kind: type) -> list[Any]:
    """Return the definitions that a provider returned. Raises `DeclarationError` for one of another type."""
    definitions = [getattr(each, "definition", each) for each in provided]
    for definition in definitions:
        if not isinstance(definition, kind):
            raise DeclarationError(f"the provider must return {list_name}, not {definition!r}")
    return definitions


def _tool(provided: Provided, limits: Limits) -> Registration:
    if not isinstance(provided.definition, Tool):
        raise DeclarationError(f"the provider must return a tool, not {provided.definition!r}")
    registration = schema_tool_registration(provided.definition, provided.handler, None, limits)
    registration.names = (provided.definition.name,)
    return registration


def _prompt(provided: Provided) -> Registration:
    if not isinstance(provided.definition, Prompt):
        raise DeclarationError(f"the provider must return a prompt, not {provided.definition!r}")
    context = context_of(provided.handler)

    def bind(values: Any, ctx: Any) -> tuple[Any, Any]:
        return ({**(values or {})},), {} if context is None else {context.name: ctx}

    return _registration(provided, bind, context is not None)


def _resource(provided: Provided) -> Registration:
    if not isinstance(provided.definition, Resource):
        raise DeclarationError(f"the provider must return a resource, not {provided.definition!r}")
    names = [
        parameter.name
        for parameter in inspect.signature(provided.handler).parameters.values()
        if is_context(parameter.annotation)
    ]
    return _registration(provided, lambda values, ctx: ((), dict.fromkeys(names, ctx)), bool(names))


def _registration(provided: Provided, bind: Any, context: bool) -> Registration:
    definition, handler = provided.definition, provided.handler
    is_async = inspect.iscoroutinefunction(unwrap_callable(handler))
    registration = Registration(handler, lambda _: definition, bind=bind, context=context, is_async=is_async)
    registration.names = (definition_key(definition),)
    return registration


def _listed_registration(definition: Any) -> Registration:
    """Return a registration for a list; a call resolves its provider's item by name."""
    registration = Registration(_not_called, lambda _: definition, bind=_not_called, context=False, is_async=False)
    registration.listed_with = listing_extension(definition) if isinstance(definition, Tool) else None
    registration.names = (definition_key(definition),)
    return registration


def _not_called(*_: Any) -> Any:
    raise NotImplementedError  # a call resolves the item by name first
