"""Resolution of names to registrations of providers, also in mounted servers.

If a provider fails or times out, its items are left out of lists, and the others remain. A lookup raises that failure
only if no other provider has the item. The log has the details.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Any, TypeVar

from accord.errors import DeclarationError, LifespanError
from accord.messages.completion import Completion, Reference
from accord.messages.content import Resource
from accord.messages.prompts import Prompt
from accord.messages.resources import ResourceTemplate
from accord.messages.tools import Tool
from accord.server.compose.provider_lookup import EMPTY_DEFINITIONS, ProviderLookup, Sees
from accord.server.compose.uri_spelling import cache_spellings, is_misread
from accord.server.core.registration import Registration, definition_key, listing_extension
from accord.server.core.registry import KINDS
from accord.server.core.registry_view import apply_middleware, apply_scopes
from accord.server.declare.parameters import unwrap_callable
from accord.server.declare.schema_tool import context_of, is_context, schema_tool_registration

if TYPE_CHECKING:
    from accord.limits import Limits
    from accord.server.compose.change import ToolChange
    from accord.server.compose.provider import Provided, Provider
    from accord.server.core.registry import MountedRegistry, Registry

T = TypeVar("T")

Outward = Callable[[Registration], Registration | None]
"""Returns a registration as the client gets it; None if a rule hides it."""

log: logging.Logger = logging.getLogger("accord.server")

_AT_ONCE = 16
"""The items of a list that are judged before other tasks run."""

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

    async def find(self, kind: str, name: str, sees: Sees) -> Registration | None:
        """Return a "tool", a "prompt" or a "resource" (by its URI) that the client may see, or None if no provider has
        one. Raises `InternalError` if a provider failed, or has an invalid item, and no other has a valid one.
        """
        lookup = ProviderLookup(kind, name, sees)
        await self._ask(lookup, name, lambda registration: registration)
        return lookup.result()

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
            if await self._start(mount) is not None:
                continue
            for name, registration in (await inner.listed(method)).items():
                outside, outer = mount.outer(key, name, registration)
                registrations.setdefault(outside, outer)
        changed = self._apply_changes(registrations) if list_name == "tools" else registrations
        if not (
            self._registry.guards or self._registry.visibility or self._registry.tool_changes or self._registry.mounts
        ):
            return changed  # only one name each, and no scopes
        kind = KINDS[method]
        found: dict[str, Registration] = {}
        for checked, (name, registration) in enumerate(changed.items(), 1):
            cache_spellings((name, *registration.names, *registration.former_names))
            apply_scopes(name, registration, self._registry)
            if self._is_visible(kind, name, registration):
                found[name] = registration
            if checked % _AT_ONCE == 0:
                await asyncio.sleep(0)  # a URI with many spellings takes long, and there may be thousands
        return found

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
            if inside is None or await self._start(mount) is not None:
                continue
            if (values := await inner.complete(inside, argument, typed)) is not None:
                return values
        return None

    async def _ask(self, lookup: ProviderLookup, name: str, outward: Outward) -> None:
        """Ask the providers, then those of mounted servers, for an item by its name on this server. `outward` returns a
        registration of this server as the client gets it, or None if a rule hides it.
        """
        kind = lookup.kind
        if kind == "resource" and self._registry.view.may_hide_uris and is_misread(name):
            return  # before its readings are compared with each rule
        for before, change in self._registry.changes_to(kind, name).items():
            if lookup.found is None:
                await self._ask_all(lookup, before, partial(self._changed, kind, name, change, outward))

    def _changed(
        self, kind: str, name: str, change: ToolChange | None, outward: Outward, registration: Registration
    ) -> Registration | None:
        """Return a registration as the client gets it, after a change; None if a rule hides it."""
        shown = self._with_middleware(kind, name, registration if change is None else change.apply(registration))
        return None if shown is None else outward(shown)

    async def _ask_all(self, lookup: ProviderLookup, name: str, present: Outward) -> None:
        """Ask the providers, then those of mounted servers, for an item by its name before changes."""
        for provider in self._registry.providers:
            await self._ask_provider(lookup, provider, name, present)
            if lookup.found is not None:
                return
        for mount, inner in self._mounted_resolvers():
            inner_name = mount.names.inner(lookup.kind, name)
            if inner_name is None:
                continue
            if (failure := await self._start(mount)) is not None:
                lookup.fail(failure)
            else:
                await inner._ask(lookup, inner_name, partial(_through_mount, mount, lookup.kind, present))
            if lookup.found is not None:
                return

    async def _ask_provider(self, lookup: ProviderLookup, provider: Provider, name: str, present: Outward) -> None:
        """Ask one provider. The error of an invalid item is only for clients that may see the item."""
        try:
            provided = await self._call_provider(getattr(provider, lookup.kind)(name))
        except Exception as exc:
            _warn(provider, f"say whether it has {lookup.kind} {name!r}", exc)
            lookup.fail(exc)
            return
        if provided is None:
            return
        error: Exception | None = None
        try:
            registration = present(self._registration(lookup.kind, provided))
        except Exception as exc:
            _warn(provider, f"define the {lookup.kind} {name!r}", exc)
            try:
                error, registration = exc, present(_listed_registration(EMPTY_DEFINITIONS[lookup.kind](name)))
            except Exception:  # a change of this server fails for any item: no list shows it either
                return
        if registration is not None:
            lookup.offer(registration, error)

    def _registration(self, kind: str, provided: Provided) -> Registration:
        """Return the registration of an item. Raises `DeclarationError`, and whatever an invalid item may cause."""
        if kind == "tool":
            return _tool(provided, self._limits)
        return _prompt(provided) if kind == "prompt" else _resource(provided)

    async def _call_provider(self, answer: Awaitable[T]) -> T:
        async with asyncio.timeout(self._limits.provider_seconds):
            return await answer

    def _apply_changes(self, registrations: dict[str, Registration]) -> dict[str, Registration]:
        """Return the tools by their names after the changes. Of two with one name, the one that lookups find counts."""
        changes = self._registry.tool_changes
        changed: dict[str, Registration] = {}
        for name in dict.fromkeys((*changes, *registrations)):  # the order of `Registry.changes_to`
            if (registration := registrations.get(name)) is None:
                continue
            change = changes.get(name)
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

    async def _start(self, mount: MountedRegistry) -> Exception | None:
        """Start a mounted server, whose providers may need its lifespan. Return the error of one that cannot start,
        which is logged: only its own items fail.
        """
        try:
            await self._call_provider(mount.start())
        except (LifespanError, DeclarationError, TimeoutError) as exc:
            log.warning("accord: a mounted server cannot start, so its providers are not asked: %s", exc)
            return exc
        return None

    def _with_middleware(self, kind: str, name: str, registration: Registration | None) -> Registration | None:
        if registration is None:
            return None
        apply_middleware(name, registration, self._registry)
        return registration if self._is_visible(kind, name, registration) else None

    def _is_visible(self, kind: str, name: str, registration: Registration) -> bool:
        """Return whether no rule hides a registration, or what it would replace."""
        visibility = self._registry.visibility
        if visibility is not None and not visibility.is_visible(registration.names, registration.metadata.tags):
            return False
        return not self._registry.hides(kind, name)


def _through_mount(
    mount: MountedRegistry, kind: str, present: Outward, registration: Registration
) -> Registration | None:
    """Return a registration of a mounted server as the client of the outer one gets it."""
    return present(mount.resource(registration) if kind == "resource" else mount.tool(registration))


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
