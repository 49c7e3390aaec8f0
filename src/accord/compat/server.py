"""The methods that both other libraries' servers share, on top of accord's: registration, completion and serving.

The other libraries complete every argument of all prompts and templates with one handler. accord has one completion
function per argument, so this module registers one for each, which calls the handler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from inspect import Parameter, Signature
from typing import Any, ClassVar, NoReturn, TypeVar

import msgspec

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
"""Takes a reference, a `CompletionArgument`, and a `CompletionContext` or None; returns a `Completion` or None."""


def complete_prompt(server: Server, name: str, handler: Handler) -> None:
    """Complete every argument of a prompt with `handler`."""
    prompt = server.registry.prompts[name].define(RULES[LATEST])
    reference = PromptReference(name=name)
    _complete(server, name, reference, [one.name for one in prompt.arguments or ()], handler)


def complete_template(server: Server, uri: str, handler: Handler) -> None:
    """Complete every variable of a resource template with `handler`."""
    template, _ = server.registry.templates[uri]
    _complete(server, uri, ResourceTemplateReference(uri=uri), list(template.variables), handler)


def _complete(server: Server, ref: str, reference: Any, arguments: Sequence[str], handler: Handler) -> None:
    for argument in arguments:
        others = [one for one in arguments if one != argument]
        server.complete(ref, argument)(_completer(reference, argument, others, handler))


def _completer(reference: Any, argument: str, others: Sequence[str], handler: Handler) -> Callable[..., Any]:
    async def complete(typed: str, **resolved: str | None) -> Any:
        arguments = {name: value for name, value in resolved.items() if value is not None}
        context = CompletionContext(arguments=arguments) if arguments else None
        completion = await call(handler, reference, CompletionArgument(name=argument, value=typed), context)
        return [] if completion is None else completion

    typed = Parameter("typed", Parameter.POSITIONAL_OR_KEYWORD, annotation=str)
    resolved = [Parameter(one, Parameter.KEYWORD_ONLY, default=None, annotation=str | None) for one in others]
    return with_signature(complete, Signature([typed, *resolved]))


F = TypeVar("F", bound=Callable[..., Any])

HTTP = ("http", "streamable-http", "sse")
"""The names of HTTP transports; accord serves all revisions at one address."""


UNSUPPORTED = {
    "add_extension": "see docs/extensions.md",
    "as_proxy": "mcp.mount(other) for a server of the same process",
    "from_fastapi": "server.add_fastapi(app), see docs/openapi.md",
    "from_openapi": "Server.from_openapi(...), see docs/openapi.md",
    "get_context": "give the function a parameter: ctx: Context",
    "import_server": "mcp.mount(other): it is live",
}
"""Methods that accord lacks, and what to write instead."""


class UnknownNameError(DeclarationError, ValueError):
    """An unknown name of a tool, resource or prompt."""


class CompatServer(Server):
    """accord's server with the methods of both other libraries."""

    context_type: ClassVar[type[Plain]] = CompatContext
    _completion_handler: Handler | None = None
    _security: ResourceSecurity | None = None
    _ignores_unknown: ClassVar[bool] = False
    """Whether tools ignore unknown arguments."""

    def __class_getitem__(cls, types: Any) -> Any:
        return cls

    @cached_property
    def _custom_routes(self) -> CustomRoutes:
        return CustomRoutes()

    # --- registration ------------------------------------------------------------------------------------------

    def _register_tool(
        self,
        function: Callable[..., Any],
        *,
        structured: bool = True,
        output_schema: JSONObject | None = None,
        **options: Any,
    ) -> None:
        options["annotations"] = convert_annotations(ToolAnnotations, options.get("annotations"))
        function = as_record(with_resolvers(function)) if structured else unstructured(with_resolvers(function))
        name, definition = make_tool(function, ignore_unknown=self._ignores_unknown, **without_none(options))
        if output_schema is not None:
            with_output(name, definition, output_schema, self.limits)
        self.registry.add("tool", name, definition)

    def _register_resource(self, function: Callable[..., Any], uri: str, **options: Any) -> None:
        options["annotations"] = convert_annotations(Annotations, options.get("annotations"))
        options["mime_type"] = options.get("mime_type") or "text/plain"
        security = options.pop("security", None) or self._security
        options["unsafe_variables"] = True  # the rules of the other library hold
        super().resource(uri, **without_none(options))(
            with_security(function, security) if security and "{" in uri else function
        )
        if self._completion_handler is not None and uri in self.registry.templates:
            complete_template(self, uri, self._completion_handler)

    def _register_prompt(self, function: Callable[..., Any], **options: Any) -> None:
        super().prompt(**without_none(options))(function)
        if self._completion_handler is not None:
            complete_prompt(self, options.get("name") or function.__name__, self._completion_handler)

    def completion(self, handler: Handler | None = None) -> Any:
        """Register one handler of all prompt and template arguments: `@mcp.completion` or `@mcp.completion()`."""

        def declare(handler: Handler) -> Handler:
            self._completion_handler = handler
            for name in list(self.registry.prompts):
                complete_prompt(self, name, handler)
            for uri in list(self.registry.templates):
                complete_template(self, uri, handler)
            return handler

        return declare if handler is None else declare(handler)

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt. Raises `ValueError` if it is unknown."""
        if name not in self.registry.prompts:
            raise UnknownNameError(f"there is no prompt {name!r}")
        super().remove_prompt(name)

    def add_resource(self, resource: FunctionResource) -> None:
        """Register a `FunctionResource` or `TextResource`."""
        self._register_resource(resource.function, resource.uri, **resource.options)

    # --- calls from the program itself -------------------------------------------------------------------------

    async def list_tools(self) -> list[Any]:
        """Return the tools, as a client in this process receives them."""
        async with Client(self) as client:
            return await client.list_tools()

    async def list_resources(self) -> list[Any]:
        """Return the resources, as a client in this process receives them."""
        async with Client(self) as client:
            return await client.list_resources()

    async def list_resource_templates(self) -> list[Any]:
        """Return the resource templates, as a client in this process receives them."""
        async with Client(self) as client:
            return await client.list_resource_templates()

    async def list_prompts(self) -> list[Any]:
        """Return the prompts, as a client in this process receives them."""
        async with Client(self) as client:
            return await client.list_prompts()

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """Return the result of a tool, as a client in this process receives it."""
        async with Client(self) as client:
            return await client.call_tool(name, arguments)

    # --- serving -----------------------------------------------------------------------------------------------

    def custom_route(
        self, path: str, methods: Sequence[str], name: str | None = None, include_in_schema: bool = True
    ) -> Callable[[F], F]:
        """Register a function that answers Starlette requests at a path beside the server's own."""
        return self._custom_routes.declare(path, methods, name, include_in_schema)

    def asgi(self, options: HTTPOptions | None = None) -> HTTPApp:
        """Return an ASGI application that serves all revisions, and the routes of `custom_route`."""
        options = options or HTTPOptions()
        if options.public_url is None and (url := self._public_url(options.path)) is not None:
            options = msgspec.structs.replace(options, public_url=url)
        if not self._custom_routes:
            return super().asgi(options)
        return RoutedApp(self, options, self._custom_routes)

    def _public_url(self, path: str) -> str | None:
        """Return the public URL that the program has configured for its authorization."""
        return None

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
    """Return the address for `run(http=...)`. Raises `Different` for an unknown transport."""
    if transport not in HTTP:
        raise Different(f"there is no transport {transport!r}: stdio, or one of {', '.join(HTTP)}")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not None."""
    return {key: value for key, value in options.items() if value is not None}


def convert_annotations(type_: Any, value: Any) -> Any:
    """Return annotations, converted from a dict in camel case or snake case."""
    return type_(**normalize_fields(type_, value)) if isinstance(value, dict) else value
