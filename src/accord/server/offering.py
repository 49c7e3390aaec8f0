"""Declaring on a server: its own functions as tools, resources and prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from accord.errors import DeclarationError
from accord.limits import Limits
from accord.messages.base import Meta
from accord.messages.content import Annotations
from accord.messages.identity import Icon
from accord.messages.tools import Tool, ToolAnnotations
from accord.server.cache import DO_NOT_KEEP, CacheHint
from accord.server.completable import Completable
from accord.server.declaring import complete_by_name, declare_prompt, declare_resource, declare_tool, listed
from accord.server.hub import Hub
from accord.server.registry import Registry

if TYPE_CHECKING:
    from accord.server.middleware.request import Middleware

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")


class Offering:
    """The part of `Server` that declares. What is declared while it serves is told to its clients."""

    registry: Registry
    hub: Hub
    limits: Limits

    # --- tools -------------------------------------------------------------------------------------------------

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Meta | None = None,
        timeout: float | None = None,
        strict: bool = False,
        tags: Iterable[str] = (),
        scopes: Iterable[str] = (),
        version: str | None = None,
        middleware: Sequence[Middleware] = (),
    ) -> Callable[[F], F]: ...

    def tool(self, name: Any = None, **options: Any) -> Any:
        """Offer a function as a tool; the function stays what it was.

        Name, description and parameters are read from the function: type hints give the schema, the docstring the
        descriptions, the return type the structured output. `timeout` is in seconds. `strict` refuses JSON in a
        string where something else is asked for. `tags` are words to show and hide tools by; `scopes` are what a
        principal must have been granted, or it does not exist for them; of several with one name and a `version` each,
        the newest is called unless a request asks for another; `middleware` stands around this tool alone. Raises
        `DeclarationError`.
        """

        def declare(function: F, **options: Any) -> F:
            declare_tool(self.registry, function, **options)
            return function

        return partial(declare, name=name, **options) if name is None or isinstance(name, str) else declare(name)

    def add_tool(self, tool: Tool, handler: Callable[..., Any], *, timeout: float | None = None) -> None:
        """Offer a tool with a schema by hand. `handler(arguments)` gets a dict, checked against `input_schema`; a
        second parameter without a default, or one annotated so, gets the `Context` as well.

        What it returns is taken as for other tools; structured output is checked against `output_schema`. Raises
        `DeclarationError`.
        """
        from accord.server.handmade import handmade_offer

        self.registry.add("tool", tool.name, handmade_offer(tool, handler, timeout, self.limits))

    def remove_tool(self, name: str) -> None:
        """Offer a tool no longer. From any thread; clients are told. Raises `DeclarationError` where there is none."""
        self.registry.remove("tool", name)

    # --- resources ---------------------------------------------------------------------------------------------

    def resource(
        self,
        uri: str,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Meta | None = None,
        cache: CacheHint = DO_NOT_KEEP,
        tags: Iterable[str] = (),
        scopes: Iterable[str] = (),
        middleware: Sequence[Middleware] = (),
    ) -> Callable[[Callable[P, R]], Completable[P, R]]:
        """Offer a function as the resource at `uri`; with `{variables}` (RFC 6570) as a template of resources,
        whose variables are the function's parameters, each of which may be completed (see `Completable`). `cache`
        says how long what it returns may be kept. Raises `DeclarationError`.
        """
        if not isinstance(uri, str):
            raise DeclarationError('a resource has a URI: write @server.resource("scheme://path")')
        about = listed(
            {"title": title, "mime_type": mime_type, "annotations": annotations, "icons": icons, "meta": meta}
        )
        options: dict[str, Any] = {"name": name, "description": description, "size": size, "cache": cache, **about}
        options |= {"tags": tags, "scopes": scopes, "middleware": middleware}

        def declare(function: Callable[P, R]) -> Completable[P, R]:
            return declare_resource(self.registry, function, uri, **options)

        return declare

    def remove_resource(self, uri: str) -> None:
        """Offer a resource, or the template of that text, no longer. As `remove_tool`."""
        self.registry.remove("resource template" if "{" in uri else "resource", uri)

    def resource_updated(self, uri: str) -> None:
        """A resource has changed: tell those who subscribed to it, or to what it is a part of. From any thread."""
        self.hub.updated(uri)

    # --- prompts -----------------------------------------------------------------------------------------------

    @overload
    def prompt(self, function: Callable[P, R], /) -> Completable[P, R]: ...

    @overload
    def prompt(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Meta | None = None,
        tags: Iterable[str] = (),
        scopes: Iterable[str] = (),
        version: str | None = None,
        middleware: Sequence[Middleware] = (),
    ) -> Callable[[Callable[P, R]], Completable[P, R]]: ...

    def prompt(self, name: Any = None, **options: Any) -> Any:
        """Offer a function as a prompt; its parameters are the arguments, each of which may be completed (see
        `Completable`). Raises `DeclarationError`.
        """
        if name is None or isinstance(name, str):
            return partial(declare_prompt, self.registry, name=name, **options)
        return declare_prompt(self.registry, name)

    def remove_prompt(self, name: str) -> None:
        """Offer a prompt no longer. As `remove_tool`."""
        self.registry.remove("prompt", name)

    def complete(self, ref: str, argument: str) -> Callable[[F], F]:
        """Complete an argument of the prompt, or of the resource template, that `ref` names; the same as `complete`
        of what `prompt` and `resource` give. Raises `DeclarationError`.
        """

        def declare(function: F) -> F:
            complete_by_name(self.registry, ref, argument, function)
            return function

        return declare
