"""`Provider`: tools, resources and prompts that are not known beforehand, such as those of a database or a directory.

    class Reports(Provider):
        async def resources(self):
            return [Provided(Resource(uri=f"report://{id}", name=title), partial(load, id)) async for id, title in ...]

    server.add_provider(Reports())

What a server declares itself goes before what is provided, and what is provided is asked for only when it is needed.
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
    """One thing, and the function that serves it, `async` or plain.

    The handler of a tool takes its arguments as a dict, and a prompt's as well; a further parameter annotated `Context`
    gets the context. That of a resource takes a `Context` if it wants one, and nothing else.
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
"""What a provider makes up that has these; the handlers of tools and prompts may log."""


class Provider:
    """A source of tools, resources and prompts. Override what there is; nothing is the default.

    Where one of its methods fails, or takes longer than `Limits.provider_seconds`, its things are left out and the log
    says so; nobody else notices.
    """

    def __init__(self) -> None:
        self._listeners: list[Callable[[str, str], None]] = []

    @property
    def provides(self) -> set[str]:
        """The capabilities that this makes up, by the methods that are overridden."""
        kind = type(self)
        return {
            capability
            for method, capabilities in _CAPABILITIES.items()
            if getattr(kind, method) is not getattr(Provider, method)
            for capability in capabilities
        }

    async def tools(self) -> Sequence[Provided]:
        """All tools."""
        return ()

    async def tool(self, name: str) -> Provided | None:
        """One tool; None where there is none."""
        return _named(name, await self.tools())

    async def prompts(self) -> Sequence[Provided]:
        """All prompts."""
        return ()

    async def prompt(self, name: str) -> Provided | None:
        """One prompt; None where there is none."""
        return _named(name, await self.prompts())

    async def resources(self) -> Sequence[Resource]:
        """The resources that are listed."""
        return ()

    async def templates(self) -> Sequence[ResourceTemplate]:
        """The templates that are listed; `resource` serves what they stand for."""
        return ()

    async def resource(self, uri: str) -> Provided | None:
        """One resource, listed or not; None where there is none."""
        return None

    async def complete(self, ref: Reference, argument: str, typed: str) -> Completion | Iterable[str] | None:
        """Values for an argument of its prompts and templates; None where these are not its own."""
        return None

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """As long as the server runs."""
        yield

    def changed(self, what: str) -> None:
        """Its "tools", "prompts" or "resources" are no longer what they were: clients are told. From any thread."""
        self._notify(what, "")

    def updated(self, uri: str) -> None:
        """A resource is no longer what it was: those who subscribed to it are told. From any thread."""
        self._notify("", uri)

    def attach(self, listener: Callable[[str, str], None]) -> None:
        """Tell a server of changes: what changed, or which URI."""
        self._listeners.append(listener)

    def detach(self, listener: Callable[[str, str], None]) -> None:
        """Tell it no more."""
        self._listeners.remove(listener)

    def _notify(self, what: str, uri: str) -> None:
        for listener in list(self._listeners):
            listener(what, uri)


def _named(name: str, provided: Sequence[Provided]) -> Provided | None:
    return next((each for each in provided if getattr(each.definition, "name", None) == name), None)
