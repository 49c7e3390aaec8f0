"""What both other libraries' servers share, on top of accord's: how things are declared, and how it is run.

One function that completes every argument of every prompt and template, as the other libraries have it.

Here each argument has its own: so one is made for each, which calls theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from inspect import Parameter, Signature
from typing import Any, ClassVar, NoReturn, TypeVar

from accord.client.client import Client
from accord.compat.context import CompatContext
from accord.compat.declared import FunctionResource
from accord.compat.differ import Different
from accord.compat.http import CustomRoutes, ResourceSecurity, RoutedApp, with_security
from accord.compat.resolve import with_resolvers
from accord.compat.types import normalize_fields
from accord.compat.wrapping import as_record, call, unstructured, with_signature
from accord.errors import DeclarationError
from accord.messages.base import JSONObject
from accord.messages.completion import CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference
from accord.messages.content import Annotations
from accord.messages.revision import LATEST, RULES
from accord.messages.tools import ToolAnnotations
from accord.server.core.context import Context as Plain
from accord.server.declare.declaration import make_tool
from accord.server.declare.schema_tool import with_output
from accord.server.http.app import HTTPApp
from accord.server.http.options import HTTPOptions
from accord.server.server import Server

Handler = Callable[..., Any]
"""Takes a reference, a `CompletionArgument`, and a `CompletionContext` or None; gives a `Completion` or None."""


def complete_prompt(server: Server, name: str, handler: Handler) -> None:
    """Complete every argument of a prompt by `handler`."""
    prompt = server.registry.prompts[name].define(RULES[LATEST])
    reference = PromptReference(name=name)
    _complete(server, name, reference, [one.name for one in prompt.arguments or ()], handler)


def complete_template(server: Server, uri: str, handler: Handler) -> None:
    """Complete every variable of a template by `handler`."""
    template, _ = server.registry.templates[uri]
    _complete(server, uri, ResourceTemplateReference(uri=uri), list(template.variables), handler)


def _complete(server: Server, ref: str, reference: Any, arguments: Sequence[str], handler: Handler) -> None:
    for argument in arguments:
        others = [one for one in arguments if one != argument]
        server.complete(ref, argument)(_completer(reference, argument, others, handler))


def _completer(reference: Any, argument: str, others: Sequence[str], handler: Handler) -> Callable[..., Any]:
    async def complete(typed: str, **known: str | None) -> Any:
        given = {name: value for name, value in known.items() if value is not None}
        context = CompletionContext(arguments=given) if given else None
        found = await call(handler, reference, CompletionArgument(name=argument, value=typed), context)
        return [] if found is None else found

    typed = Parameter("typed", Parameter.POSITIONAL_OR_KEYWORD, annotation=str)
    known = [Parameter(one, Parameter.KEYWORD_ONLY, default=None, annotation=str | None) for one in others]
    return with_signature(complete, Signature([typed, *known]))


# mypy: disable-error-code="override"
# The words of another library are taken in the place of accord's own: that is what this is for.


F = TypeVar("F", bound=Callable[..., Any])

HTTP = ("http", "streamable-http", "sse")
"""Names of transports that are one here: HTTP, where a client of any revision finds its own."""


UNSUPPORTED = {
    "add_extension": "see docs/extensions.md",
    "as_proxy": "mcp.mount(other) for a server of the same process",
    "from_fastapi": "server.add_fastapi(app), see docs/openapi.md",
    "from_openapi": "Server.from_openapi(...), see docs/openapi.md",
    "get_context": "give the function a parameter: ctx: Context",
    "import_server": "mcp.mount(other): it is live",
}
"""What is not here, and what to write for it."""


class UnknownNameError(DeclarationError, ValueError):
    """There is nothing of that name."""


class CompatServer(Server):
    """accord's server, with the words of both other libraries."""

    context_type: ClassVar[type[Plain]] = CompatContext
    _completion_handler: Handler | None = None
    _security: ResourceSecurity | None = None
    _ignores_unknown: ClassVar[bool] = False
    """Whether tools drop arguments that they have no parameter for."""

    def __class_getitem__(cls, types: Any) -> Any:
        return cls

    @cached_property
    def _custom_routes(self) -> CustomRoutes:
        return CustomRoutes()

    # --- declaring ---------------------------------------------------------------------------------------------

    def _register_tool(
        self,
        function: Callable[..., Any],
        *,
        structured: bool = True,
        output_schema: JSONObject | None = None,
        **about: Any,
    ) -> None:
        about["annotations"] = convert_annotations(ToolAnnotations, about.get("annotations"))
        function = as_record(with_resolvers(function)) if structured else unstructured(with_resolvers(function))
        name, offer = make_tool(function, ignore_unknown=self._ignores_unknown, **without_none(about))
        if output_schema is not None:
            with_output(name, offer, output_schema, self.limits)
        self.registry.add("tool", name, offer)

    def _register_resource(self, function: Callable[..., Any], uri: str, **about: Any) -> None:
        about["annotations"] = convert_annotations(Annotations, about.get("annotations"))
        about["mime_type"] = about.get("mime_type") or "text/plain"
        security = about.pop("security", None) or self._security
        about["unsafe_variables"] = True  # the rules of the other library hold
        super().resource(uri, **without_none(about))(
            with_security(function, security) if security and "{" in uri else function
        )
        if self._completion_handler is not None and uri in self.registry.templates:
            complete_template(self, uri, self._completion_handler)

    def _register_prompt(self, function: Callable[..., Any], **about: Any) -> None:
        super().prompt(**without_none(about))(function)
        if self._completion_handler is not None:
            complete_prompt(self, about.get("name") or function.__name__, self._completion_handler)

    def completion(self, handler: Handler | None = None) -> Any:
        """Complete all arguments of all prompts and templates by one function: `@mcp.completion`, with or without
        parentheses.
        """

        def declare(handler: Handler) -> Handler:
            self._completion_handler = handler
            for name in list(self.registry.prompts):
                complete_prompt(self, name, handler)
            for uri in list(self.registry.templates):
                complete_template(self, uri, handler)
            return handler

        return declare if handler is None else declare(handler)

    def remove_prompt(self, name: str) -> None:
        """Offer a prompt no longer. Raises `ValueError` where there is none."""
        if name not in self.registry.prompts:
            raise UnknownNameError(f"there is no prompt {name!r}")
        super().remove_prompt(name)

    def add_resource(self, resource: FunctionResource) -> None:
        """Offer a `FunctionResource` or `TextResource`."""
        self._register_resource(resource.function, resource.uri, **resource.about)

    # --- asked by the program itself ---------------------------------------------------------------------------

    async def list_tools(self) -> list[Any]:
        """The tools, as a client in this process sees them."""
        async with Client(self) as client:
            return await client.list_tools()

    async def list_resources(self) -> list[Any]:
        """The resources, as a client in this process sees them."""
        async with Client(self) as client:
            return await client.list_resources()

    async def list_resource_templates(self) -> list[Any]:
        """The templates, as a client in this process sees them."""
        async with Client(self) as client:
            return await client.list_resource_templates()

    async def list_prompts(self) -> list[Any]:
        """The prompts, as a client in this process sees them."""
        async with Client(self) as client:
            return await client.list_prompts()

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """The result of a tool, as a client in this process gets it."""
        async with Client(self) as client:
            return await client.call_tool(name, arguments)

    # --- serving -----------------------------------------------------------------------------------------------

    def custom_route(
        self, path: str, methods: Sequence[str], name: str | None = None, include_in_schema: bool = True
    ) -> Callable[[F], F]:
        """Answer requests at a path beside the server's own, by a function of a request of Starlette."""
        return self._custom_routes.declare(path, methods, name, include_in_schema)

    def asgi(self, options: HTTPOptions | None = None) -> HTTPApp:
        """An ASGI application that serves all revisions, and the routes of `custom_route`."""
        if not self._custom_routes:
            return super().asgi(options)
        return RoutedApp(self, options or HTTPOptions(), self._custom_routes)

    def _serve(self, transport: str, host: str, port: int, options: HTTPOptions) -> None:
        if transport == "stdio":
            super().run()
        else:
            super().run(http=address(transport, host, port), options=options)

    async def _serve_async(self, transport: str, host: str, port: int, options: HTTPOptions) -> None:
        if transport == "stdio":
            await super().run_async()
        else:
            await super().run_async(http=address(transport, host, port), options=options)

    def __getattr__(self, name: str) -> NoReturn:
        if name in UNSUPPORTED:
            raise Different(f"{name}() is not in accord: {UNSUPPORTED[name]}")
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


def address(transport: str, host: str, port: int) -> str:
    """Where to serve, as `run(http=...)` takes it. Raises `Different` for a transport that there is not."""
    if transport not in HTTP:
        raise Different(f"there is no transport {transport!r}: stdio, or one of {', '.join(HTTP)}")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def without_none(about: Mapping[str, Any]) -> dict[str, Any]:
    """What was said of something, without what was not."""
    return {key: value for key, value in about.items() if value is not None}


def convert_annotations(type_: Any, value: Any) -> Any:
    """Annotations that may be a dict in either spelling."""
    return type_(**normalize_fields(type_, value)) if isinstance(value, dict) else value
