"""What providers have, as offers: asked for when it is needed, and in mounted servers as well.

A provider that fails, or takes too long, takes nothing away from the others: what it may have is left out of lists, and
only where nobody else has what is looked for is its failure told. The log says more.
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
from accord.server.core.registration import Registration, definition_key
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
"""What is asked of a provider for each list, what its items are known by, and what they are."""


class ProviderResolver:
    """Those of one registry."""

    def __init__(self, registry: Registry, limits: Limits) -> None:
        self._registry = registry
        self._limits = limits

    async def tool(self, name: str) -> Registration | None:
        """A tool; None where nobody has it. Raises `InternalError` where it could not be found out."""
        changes = self._registry.tool_changes
        inside = next((old for old, change in changes.items() if change.name == name), name)
        change = changes.get(inside)
        if change is not None and (change.name or inside) != name:
            return None  # it has another name here
        offer = await self._find("tool", inside, lambda each: _tool(each, self._limits))
        if change is not None and self._registry.hides("tool", inside):
            return None
        return self._with_middleware("tool", name, offer if offer is None or change is None else change.apply(offer))

    async def prompt(self, name: str) -> Registration | None:
        """A prompt. As `tool`."""
        return self._with_middleware("prompt", name, await self._find("prompt", name, _prompt))

    async def resource(self, uri: str) -> Registration | None:
        """A resource. As `tool`."""
        return self._with_middleware("resource", uri, await self._find("resource", uri, _resource))

    async def listed(self, method: str) -> dict[str, Registration]:
        """What is listed, by name or URI, with what the rules of this server and of those inside ask for."""
        what, key, _ = _LIST_METHODS[method]
        found: dict[str, Registration] = {}
        for place, provider in enumerate(self._registry.providers):
            try:
                offers = await self._listed_by(place, provider, method)
            except Exception as exc:
                _warn(provider, f"say what {what} it has", exc)
                continue
            for name, offer in offers.items():
                found.setdefault(name, offer)
        for mount, inner in self._mounted():
            for name, offer in (await inner.listed(method)).items():
                outside, made = mount.outer(key, name, offer)
                found.setdefault(outside, made)
        changed = self._changed(found) if what == "tools" else found
        if not (
            self._registry.guards or self._registry.visibility or self._registry.tool_changes or self._registry.mounts
        ):
            return changed  # each is under the one name that it has by itself, and nobody asks for scopes
        kind = KINDS[method]
        return {name: offer for name, offer in changed.items() if self._with_scopes(kind, name, offer)}

    async def _listed_by(self, place: int, provider: Provider, method: str) -> dict[str, Registration]:
        """What one provider lists, as registrations; they are made again only where it lists something else."""
        what, _, kind = _LIST_METHODS[method]
        kept = self._registry.provider_registrations
        given = await self._call_provider(getattr(provider, what)())
        given = list(given)
        known = kept.get((place, method))
        if known is None or len(known[0]) != len(given) or not all(map(is_, known[0], given)):
            offers: dict[str, Registration] = {}
            for definition in _definitions(given, what, kind):
                offer = _listed_registration(definition)
                offers.setdefault(offer.names[0], offer)
            known = kept[place, method] = given, offers
        return known[1]

    async def complete(self, ref: Reference, argument: str, typed: str) -> Completion | Iterable[str] | None:
        """Values for an argument; None where it is nobody's."""
        for provider in self._registry.providers:
            try:
                values = await self._call_provider(provider.complete(ref, argument, typed))
            except Exception as exc:
                _warn(provider, f"complete {argument!r}", exc)
                continue
            if values is not None:
                return values
        for mount, inner in self._mounted():
            inside = mount.names.inner_ref(ref)
            if inside is not None and (found := await inner.complete(inside, argument, typed)) is not None:
                return found
        return None

    async def _find(self, kind: str, name: str, make: Callable[[Provided], Registration]) -> Registration | None:
        """The first that anybody has, under its name here."""
        failed: Exception | None = None
        for provider in self._registry.providers:
            try:
                if (provided := await self._call_provider(getattr(provider, kind)(name))) is not None:
                    return make(provided)
            except Exception as exc:
                _warn(provider, f"say whether it has {kind} {name!r}", exc)
                failed = failed or exc
        for mount, inner in self._mounted():
            inside = mount.names.inner_uri(name) if kind == "resource" else mount.names.inner_name(name)
            try:
                if inside is not None and (offer := await getattr(inner, kind)(inside)) is not None:
                    return mount.resource(offer) if kind == "resource" else mount.tool(offer)
            except InternalError as exc:
                failed = failed or exc
        if isinstance(failed, InternalError):
            raise failed
        if failed is not None:
            why = describe_redacted(failed)
            raise InternalError(f"access to the {kind} {name!r} could not be checked: {why}")
        return None

    async def _call_provider(self, answer: Awaitable[T]) -> T:
        async with asyncio.timeout(self._limits.provider_seconds):
            return await answer

    def _changed(self, found: dict[str, Registration]) -> dict[str, Registration]:
        changed: dict[str, Registration] = {}
        for name, offer in found.items():
            change = self._registry.tool_changes.get(name)
            if change is not None and self._registry.hides("tool", name):
                continue
            try:
                made = offer if change is None else change.apply(offer)
            except DeclarationError as exc:
                log.error("accord: the tool %r is not shown: %s", name, exc)
                continue
            changed.setdefault(name if change is None else change.name or name, made)
        return changed

    def _mounted(self) -> Iterator[tuple[MountedRegistry, ProviderResolver]]:
        for mount in self._registry.mounts:
            if mount.has_providers:
                yield mount, ProviderResolver(mount.registry, self._limits)

    def _with_middleware(self, kind: str, name: str, offer: Registration | None) -> Registration | None:
        if offer is None or self._with_scopes(kind, name, offer) is None:
            return None
        apply_middleware(name, offer, self._registry)
        return offer

    def _with_scopes(self, kind: str, name: str, offer: Registration) -> Registration | None:
        """A registration with what the rules of this server ask for; None where it is hidden from everybody, or would
        take the place of what is hidden.
        """
        apply_scopes(name, offer, self._registry)
        visibility = self._registry.visibility
        if visibility is not None and not visibility.is_visible(offer.names, offer.metadata.tags):
            return None
        return None if self._registry.hides(kind, name) else offer


def _warn(provider: Provider, what: str, exc: Exception) -> None:
    log.warning("accord: the provider %s failed to %s", type(provider).__qualname__, what, exc_info=exc)


def _definitions(given: Any, what: str, kind: type) -> list[Any]:
    """What a provider has of a kind. Raises `DeclarationError` for what is something else."""
    definitions = [getattr(each, "definition", each) for each in given]
    for definition in definitions:
        if not isinstance(definition, kind):
            raise DeclarationError(f"{what} were asked for, and {definition!r} was provided")
    return definitions


def _tool(provided: Provided, limits: Limits) -> Registration:
    if not isinstance(provided.definition, Tool):
        raise DeclarationError(f"the provider must return a tool, not {provided.definition!r} was provided")
    offer = schema_tool_registration(provided.definition, provided.handler, None, limits)
    offer.names = (provided.definition.name,)
    return offer


def _prompt(provided: Provided) -> Registration:
    if not isinstance(provided.definition, Prompt):
        raise DeclarationError(f"the provider must return a prompt, not {provided.definition!r} was provided")
    context = context_of(provided.handler)

    def bind(values: Any, ctx: Any) -> tuple[Any, Any]:
        return ({**(values or {})},), {} if context is None else {context.name: ctx}

    return _registration(provided, bind, context is not None)


def _resource(provided: Provided) -> Registration:
    if not isinstance(provided.definition, Resource):
        raise DeclarationError(f"the provider must return a resource, not {provided.definition!r} was provided")
    names = [one.name for one in inspect.signature(provided.handler).parameters.values() if is_context(one.annotation)]
    return _registration(provided, lambda values, ctx: ((), dict.fromkeys(names, ctx)), bool(names))


def _registration(provided: Provided, bind: Any, context: bool) -> Registration:
    definition, handler = provided.definition, provided.handler
    is_async = inspect.iscoroutinefunction(unwrap_callable(handler))
    offer = Registration(handler, lambda _: definition, bind=bind, context=context, is_async=is_async)
    offer.names = (definition_key(definition),)
    return offer


def _listed_registration(definition: Any) -> Registration:
    """A registration of what is only listed: to call it, its provider is asked for it by name."""
    offer = Registration(_not_called, lambda _: definition, bind=_not_called, context=False, is_async=False)
    offer.names = (definition_key(definition),)
    return offer


def _not_called(*_: Any) -> Any:
    raise NotImplementedError  # a call asks the provider by name, and gets a registration that can be called
