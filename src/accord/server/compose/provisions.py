"""What providers have, as offers: asked for when it is needed, and in mounted servers as well."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from accord.errors import DeclarationError
from accord.messages.completion import Completion, Reference
from accord.messages.content import Resource
from accord.messages.prompts import Prompt
from accord.messages.tools import Tool
from accord.server.handmade import context_of, handmade_offer
from accord.server.offer import Offer
from accord.server.parameters import called
from accord.server.shown import dress

if TYPE_CHECKING:
    from accord.limits import Limits
    from accord.server.compose.mount import Mount
    from accord.server.compose.provider import Provided
    from accord.server.registry import Registry

_LISTED = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("templates", "uri_template"),
}


class Provisions:
    """Those of one registry."""

    def __init__(self, registry: Registry, limits: Limits) -> None:
        self._registry = registry
        self._limits = limits

    async def tool(self, name: str) -> Offer | None:
        """A tool; None where nobody has it."""
        for provider in self._registry.providers:
            if (provided := await provider.tool(name)) is not None:
                return self._dressed(_tool(provided, self._limits))
        for mount, inner in self._mounted():
            inside = mount.inner_name(name)
            if inside is not None and (offer := await inner.tool(inside)) is not None:
                return self._dressed(mount.tool(offer))
        return None

    async def prompt(self, name: str) -> Offer | None:
        """A prompt; None where nobody has it."""
        for provider in self._registry.providers:
            if (provided := await provider.prompt(name)) is not None:
                return self._dressed(_prompt(provided))
        for mount, inner in self._mounted():
            inside = mount.inner_name(name)
            if inside is not None and (offer := await inner.prompt(inside)) is not None:
                return self._dressed(mount.tool(offer))
        return None

    async def resource(self, uri: str) -> Offer | None:
        """A resource; None where nobody has it."""
        for provider in self._registry.providers:
            if (provided := await provider.resource(uri)) is not None:
                return self._dressed(_resource(provided))
        for mount, inner in self._mounted():
            inside = mount.inner_uri(uri)
            if inside is not None and (offer := await inner.resource(inside)) is not None:
                return self._dressed(mount.resource(offer))
        return None

    async def listed(self, method: str) -> dict[str, Any]:
        """The definitions of a list, by name or URI."""
        what, key = _LISTED[method]
        found: dict[str, Any] = {}
        for provider in self._registry.providers:
            for each in await getattr(provider, what)():
                definition = getattr(each, "definition", each)
                found.setdefault(getattr(definition, key), definition)
        for mount, inner in self._mounted():
            for name, definition in (await inner.listed(method)).items():
                outside = mount.name(name) if key == "name" else mount.uri(name)
                found.setdefault(outside, mount.renamed(definition, key, outside))
        return found

    async def complete(self, ref: Reference, argument: str, typed: str) -> Completion | Sequence[str] | None:
        """Values for an argument; None where it is nobody's."""
        for provider in self._registry.providers:
            if (values := await provider.complete(ref, argument, typed)) is not None:
                return values if isinstance(values, Completion) else list(values)
        for mount, inner in self._mounted():
            inside = mount.inner_ref(ref)
            if inside is not None and (found := await inner.complete(inside, argument, typed)) is not None:
                return found
        return None

    def _mounted(self) -> Iterator[tuple[Mount, Provisions]]:
        for mount in self._registry.mounts:
            if mount.provided:
                yield mount, Provisions(mount.server.registry, self._limits)

    def _dressed(self, offer: Offer) -> Offer:
        dress(offer, self._registry)
        return offer


def _tool(provided: Provided, limits: Limits) -> Offer:
    if not isinstance(provided.definition, Tool):
        raise DeclarationError(f"a tool was asked for, and {provided.definition!r} was provided")
    return handmade_offer(provided.definition, provided.handler, None, limits)


def _prompt(provided: Provided) -> Offer:
    if not isinstance(provided.definition, Prompt):
        raise DeclarationError(f"a prompt was asked for, and {provided.definition!r} was provided")
    context = context_of(provided.handler)

    def bind(values: Any, ctx: Any) -> tuple[Any, Any]:
        return ({**(values or {})},), {} if context is None else {context.name: ctx}

    return _offer(provided, bind, context is not None)


def _resource(provided: Provided) -> Offer:
    if not isinstance(provided.definition, Resource):
        raise DeclarationError(f"a resource was asked for, and {provided.definition!r} was provided")
    return _offer(provided, lambda values, ctx: ((), {}), False)


def _offer(provided: Provided, bind: Any, context: bool) -> Offer:
    definition, handler = provided.definition, provided.handler
    is_async = inspect.iscoroutinefunction(called(handler))
    return Offer(handler, lambda _: definition, bind=bind, context=context, is_async=is_async)
