"""Declaration of functions on a server as tools, resources and prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, Unpack, overload

from accord.errors import DeclarationError
from accord.limits import Limits
from accord.messages.base import Meta
from accord.messages.content import Annotations
from accord.messages.identity import Icon
from accord.messages.tools import Tool, ToolAnnotations
from accord.server.core.content import NO_CACHE, CacheHint
from accord.server.core.registry import Registry
from accord.server.declare.completions import Completable
from accord.server.declare.declaration import (
    complete_by_name,
    declare_prompt,
    declare_resource,
    declare_tool,
    message_fields,
)
from accord.server.notify.change_bus import ChangeBus

if TYPE_CHECKING:
    from accord.messages.tool_ui import Caller
    from accord.server.apps.page import AppPage
    from accord.server.middleware.request import Middleware
    from accord.server.tasks.options import Task, TaskSupport

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")


class PromptOptions(TypedDict, total=False):
    """The options of a prompt; see `Server.prompt`."""

    name: str | None
    """The name, by default that of the function; required for a lambda."""
    title: str | None
    """The name for user interfaces."""
    description: str | None
    """The description for the model, by default the docstring without its section on arguments."""
    icons: Sequence[Icon] | None
    """Icons for user interfaces."""
    meta: Meta | None
    """The `_meta` of the definition: any JSON values, under names of your own."""
    tags: Iterable[str]
    """Tags, to show or hide it together with others."""
    scopes: Iterable[str]
    """Scopes that a principal needs; for all others it does not exist."""
    version: str | None
    """Of several versions with one name, the newest is used unless a request names another."""
    middleware: Sequence[Middleware]
    """Middleware of this registration alone."""


class ToolOptions(PromptOptions, total=False):
    """The options of a tool; see `Server.tool`."""

    needs: Iterable[str]
    """Scopes that a call needs. All clients see the tool; over HTTP, a call without these scopes receives 403
    `insufficient_scope`, so that the client can request them and try again.
    """
    annotations: ToolAnnotations | None
    """Hints about its behavior: `ToolAnnotations(read_only_hint=True)`."""
    timeout: float | None
    """Seconds above 0 that a call may take, not counting the time that the client takes to answer; None: the limit of
    the server.
    """
    ui: AppPage | None
    """The page in which hosts show the results; see `Server.add_ui`."""
    visibility: Sequence[Caller] | None
    """Who may call it, by the rules that hosts keep: `["app"]` for pages of this server only, `["model"]` for models
    only. This is not access control: use `scopes` and `needs`.
    """
    task: TaskSupport
    """Whether calls may run as tasks, which go on after their request: "optional" (or True), "required", or
    `Task(...)`.
    """
    strict: bool
    """Whether arguments are not converted: neither `3.0` to `3`, nor JSON in a string to its value."""


class DeclarationMixin:
    """The declaring part of `Server`. Clients are notified of declarations made while the server runs."""

    registry: Registry
    change_bus: ChangeBus
    limits: Limits
    strict_arguments: bool = False
    """Whether tools do not convert arguments; the `strict` option of a tool takes precedence."""

    def serve_tasks(self, support: TaskSupport) -> Task | None:
        """Serve tasks from now on; return the options that `support` stands for. Raises `DeclarationError`."""
        raise NotImplementedError  # `Server` has it: tasks need a server that runs

    # --- tools -------------------------------------------------------------------------------------------------

    @overload
    def tool(self, function: F, /, **options: Unpack[ToolOptions]) -> F: ...

    @overload
    def tool(self, name: str | None = None, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...

    def tool(self, function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
        """Register a function as a tool, and return the function unchanged. `@server.tool`, `@server.tool("name",
        ...)`, and `server.tool(function, name="name", ...)` are equivalent; for the options see `ToolOptions`.

        Name, description and parameters come from the function: the schema from the type hints, the descriptions from
        the docstring, the structured output from the return type. Raises `DeclarationError`.
        """

        def declare(function: F, **options: Any) -> F:
            if "task" in options:
                options["task"] = self.serve_tasks(options["task"])
            declare_tool(self.registry, function, **{"strict": self.strict_arguments, **options})
            return function

        return _now_or_later(declare, function, {**options})

    def add_tool(self, tool: Tool, handler: Callable[..., Any] | None = None, *, timeout: float | None = None) -> None:
        """Register a tool with a hand-written schema. `handler(arguments)` receives a dict, validated against
        `input_schema`; a second parameter without a default, or one annotated `Context`, receives the context.

        The return value is treated as for other tools; structured output is validated against `output_schema`. Raises
        `DeclarationError`.
        """
        from accord.server.declare.schema_tool import check_schemas, schema_tool_registration

        registration = schema_tool_registration(tool, handler, timeout, self.limits)
        check_schemas(tool, self.limits)
        self.registry.add("tool", tool.name, registration)

    def remove_tool(self, name: str) -> None:
        """Remove a tool, and notify clients; callable from any thread. Raises `DeclarationError` if it does not
        exist.
        """
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
        cache: CacheHint = NO_CACHE,
        tags: Iterable[str] = (),
        scopes: Iterable[str] = (),
        middleware: Sequence[Middleware] = (),
        unsafe_variables: bool = False,
    ) -> Callable[[Callable[P, R]], Completable[P, R]]:
        """Register a function as the resource at `uri`; with `{variables}` (RFC 6570) as a resource template, whose
        variables are the function's parameters, each of which may have a completer (see `Completable`). `cache` tells
        clients how long they may cache the contents.

        Values of variables that escape a folder do not reach the function: `..` segments, NUL, absolute paths and drive
        letters, also where they are percent-encoded twice. `unsafe_variables=True` passes them on, for a function that
        does not build a path from them, or checks it. Raises `DeclarationError`.
        """
        if not isinstance(uri, str):
            raise DeclarationError('a resource has a URI: write @server.resource("scheme://path")')
        about = message_fields(
            {"title": title, "mime_type": mime_type, "annotations": annotations, "icons": icons, "meta": meta}
        )
        options: dict[str, Any] = {"name": name, "description": description, "size": size, "cache": cache, **about}
        options |= {"tags": tags, "scopes": scopes, "middleware": middleware}
        options["unsafe_variables"] = unsafe_variables

        def declare(function: Callable[P, R]) -> Completable[P, R]:
            return declare_resource(self.registry, function, uri, **options)

        return declare

    def remove_resource(self, uri: str) -> None:
        """Remove a resource, or the template of that text. As `remove_tool`."""
        self.registry.remove("resource template" if "{" in uri else "resource", uri)

    def resource_updated(self, uri: str) -> None:
        """Notify the subscribers of a resource, or of one that contains it, of a change; callable from any thread."""
        self.change_bus.resource_updated(uri)

    # --- prompts -----------------------------------------------------------------------------------------------

    @overload
    def prompt(self, function: Callable[P, R], /, **options: Unpack[PromptOptions]) -> Completable[P, R]: ...

    @overload
    def prompt(
        self, name: str | None = None, /, **options: Unpack[PromptOptions]
    ) -> Callable[[Callable[P, R]], Completable[P, R]]: ...

    def prompt(self, function: Any = None, /, **options: Unpack[PromptOptions]) -> Any:
        """Register a function as a prompt; its parameters are the arguments, each of which may have a completer (see
        `Completable`). As `tool`; see `PromptOptions`. Raises `DeclarationError`.
        """
        return _now_or_later(partial(declare_prompt, self.registry), function, {**options})

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt. As `remove_tool`."""
        self.registry.remove("prompt", name)

    def complete(self, ref: str, argument: str) -> Callable[[F], F]:
        """Register a completer for an argument of the prompt, or of the resource template, that `ref` names; the same
        as `complete` of what `prompt` and `resource` return. Raises `DeclarationError`.
        """

        def declare(function: F) -> F:
            complete_by_name(self.registry, ref, argument, function)
            return function

        return declare


def _now_or_later(declare: Callable[..., Any], function: Any, options: dict[str, Any]) -> Any:
    """Declare a function, or return the decorator if there is only a name or no argument."""
    if function is not None and not isinstance(function, str):
        return declare(function, **options)
    if function is not None and options.setdefault("name", function) != function:
        raise DeclarationError(f"the name is given twice, {function!r} and {options['name']!r}: give one")
    return partial(declare, **options)
