"""`Provider`: a source of tools, resources and prompts that are known only at run time, such as rows of a database.

    class Reports(Provider):
        async def resources(self):
            return [Provided(Resource(uri=f"report://{id}", name=title), partial(load, id)) async for id, title in ...]

    server.add_provider(Reports())

Items that the server declares take precedence. A provider is called only when its items are needed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from accord.messages.content import Resource
from accord.messages.prompts import Prompt
from accord.messages.resources import ResourceTemplate
from accord.messages.tools import Tool

if TYPE_CHECKING:
    from accord.messages.completion import Completion, Reference

Definition = Tool | Prompt | Resource | ResourceTemplate


class Provided(msgspec.Struct, frozen=True, eq=False):
    """A definition, and the function that handles it, `async` or plain.

    The handler of a tool or prompt takes the arguments as a dict; another parameter annotated `Context` receives the
    context. The handler of a resource takes an optional `Context` only.
    """

    definition: Definition
    handler: Callable[..., Any]


_CAPABILITIES = {
    "tools": ("tools", "logging"),
    "tool": ("tools", "logging"),
    "prompts": ("prompts", "logging"),
    "prompt": ("prompts", "logging"),
    "resources": ("resources",),
    "templates": ("resources",),
    "resource": ("resources",),
    "complete": ("completions",),
}
"""The capabilities for each overridden method; the handlers of tools and prompts may log."""


class Provider:
    """A source of tools, resources and prompts. Override the methods for what it provides; the defaults provide
    nothing.

    If a method raises, or exceeds `Limits.provider_seconds`, its items are left out and the failure is logged.
    """

    def __init__(self) -> None:
        self._listeners: list[Callable[[str, str], None]] = []

    @property
    def provides(self) -> set[str]:
        """The capabilities of the overridden methods."""
        kind = type(self)
        return {
            capability
            for method, capabilities in _CAPABILITIES.items()
            if getattr(kind, method) is not getattr(Provider, method)
            for capability in capabilities
        }

    async def tools(self) -> Sequence[Provided]:
        """Return all tools."""
        return ()

    async def tool(self, name: str) -> Provided | None:
        """Return one tool, or None if there is none."""
        return _find_by_name(name, await self.tools())

    async def prompts(self) -> Sequence[Provided]:
        """Return all prompts."""
        return ()

    async def prompt(self, name: str) -> Provided | None:
        """Return one prompt, or None if there is none."""
        return _find_by_name(name, await self.prompts())

    async def resources(self) -> Sequence[Resource]:
        """Return the resources to list."""
        return ()

    async def templates(self) -> Sequence[ResourceTemplate]:
        """Return the templates to list; `resource` returns the resources that match them."""
        return ()

    async def resource(self, uri: str) -> Provided | None:
        """Return one resource, listed or not, or None if there is none."""
        return None

    async def complete(self, ref: Reference, argument: str, typed: str) -> Completion | Iterable[str] | None:
        """Return values for an argument of a prompt or template, or None if that is of another provider."""
        return None

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run set-up and clean-up around the life of the server."""
        yield

    def changed(self, what: str) -> None:
        """Notify clients that the list of "tools", "prompts" or "resources" changed. Thread-safe."""
        self._notify(what, "")

    def updated(self, uri: str) -> None:
        """Notify subscribers that a resource was updated. Thread-safe."""
        self._notify("", uri)

    def attach(self, listener: Callable[[str, str], None]) -> None:
        """Register a listener; it is called with the changed list, or with an empty string and the URI."""
        self._listeners.append(listener)

    def detach(self, listener: Callable[[str, str], None]) -> None:
        """Remove a listener."""
        self._listeners.remove(listener)

    def _notify(self, what: str, uri: str) -> None:
        for listener in list(self._listeners):
            listener(what, uri)


def _find_by_name(name: str, provided: Sequence[Provided]) -> Provided | None:
    return next((each for each in provided if getattr(each.definition, "name", None) == name), None)
