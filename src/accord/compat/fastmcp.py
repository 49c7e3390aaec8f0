"""FastMCP 4's server and context, and what programs import beside them.

from accord.compat.fastmcp import Context, FastMCP      # was: from fastmcp import Context, FastMCP
"""

# mypy: disable-error-code="override"
# The words of another library are taken in the place of accord's own: that is what this is for.

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from logging import getLogger
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from accord.compat.as_tools import PromptsAsTools as PromptsAsTools, ResourcesAsTools as ResourcesAsTools
from accord.compat.declared import (
    FunctionResource as FunctionResource,
    Prompt as Prompt,
    TextResource as TextResource,
    Tool as Tool,
    declared_function,
    prompt as prompt,
    resource as resource,
    tool as tool,
)
from accord.compat.differ import Different, refuse, significant_options
from accord.compat.fastmcp_client import Client as Client
from accord.compat.fastmcp_context import Context as Context, ToolResult as ToolResult, settings as settings
from accord.compat.http import DEFAULT_RESOURCE_SECURITY, ResourceSecurity as ResourceSecurity
from accord.compat.messages import Message as Message
from accord.compat.name_map import REPLACEMENTS
from accord.compat.server import CompatServer, convert_annotations, without_none
from accord.compat.types import Icon as Icon
from accord.errors import InvalidParams, ProtocolError, ResourceNotFound, ToolError as ToolError
from accord.messages.tools import ToolAnnotations
from accord.server.core.content import CacheHint
from accord.server.core.context import Context as Plain
from accord.server.declare.media import Audio as Audio, File as File, Image as Image
from accord.server.depends.markers import Depends as Depends
from accord.server.http.app import HTTPApp
from accord.server.http.options import HTTPOptions
from accord.server.input.questions import (
    Accepted as Accepted,
    Cancelled as Cancelled,
    Declined as Declined,
)

__all__ = [
    "AcceptedElicitation",
    "Audio",
    "CancelledElicitation",
    "Client",
    "Context",
    "CurrentContext",
    "DeclinedElicitation",
    "Depends",
    "FastMCP",
    "FastMCPError",
    "File",
    "FunctionResource",
    "Icon",
    "Image",
    "LocalProvider",
    "Message",
    "NotFoundError",
    "Prompt",
    "PromptError",
    "PromptsAsTools",
    "ResourceError",
    "ResourceSecurity",
    "ResourcesAsTools",
    "TextResource",
    "Tool",
    "ToolError",
    "ToolResult",
    "ValidationError",
    "create_sse_app",
    "create_streamable_http_app",
    "get_logger",
    "lifespan",
    "prompt",
    "resource",
    "settings",
    "tool",
]

F = TypeVar("F", bound=Callable[..., Any])

AcceptedElicitation = Accepted
DeclinedElicitation = Declined
CancelledElicitation = Cancelled
ResourceError = ToolError
get_logger = getLogger
PromptError = InvalidParams
NotFoundError = ResourceNotFound
ValidationError = InvalidParams
FastMCPError = ProtocolError

_ADVICE = {
    "app": "accord has no apps: see docs/extensions.md for what a server can add",
    "auth": "pass auth= of accord.Server, and scopes= to @server.tool",
    "mask_error_details": "write mcp.add_middleware(accord.MaskErrors())",
    "middleware": f"write mcp.add_middleware(it), and it as {REPLACEMENTS['Middleware']}",
    "transforms": "use server.change_tool(name, ToolChange(...))",
    "task": "accord has no tasks: leave it out, the call then lasts as long as the work",
    "tasks": "accord has no tasks",
    "on_duplicate": "what is declared twice is refused: give one of them another name, or a version",
    "request_state_security": "pass state_keys= of accord.Server",
    "session_state_store": "keep it in Handles: see docs/dependencies.md",
    "strict_input_validation": "say it of each tool: @server.tool(strict=True)",
    "event_store": "pass HTTPOptions(events=...) to asgi() or run()",
    "tool_names": "use server.change_tool(name, ToolChange(name=...)) before mounting",
}
_IGNORED_OPTIONS = (
    "show_banner",
    "log_level",
    "uvicorn_config",
    "json_response",
    "session_idle_timeout",
    "dereference_schemas",
    "list_page_size",
    "client_log_level",
    "run_in_thread",
    "retry_interval",
)
"""Options about how their server works inside."""

_HOOKS = {
    *("on_message", "on_request", "on_notification", "on_initialize", "on_call_tool", "on_read_resource"),
    *("on_get_prompt", "on_list_tools", "on_list_resources", "on_list_resource_templates", "on_list_prompts"),
}
"""Methods of their middleware."""

_WILD = re.compile(r"{(\w+)\*}")


if not TYPE_CHECKING:  # which would take it for a promise that every name is here

    def __getattr__(name: str) -> Any:
        if name in REPLACEMENTS:
            raise ImportError(f"{name} is not in {__name__}: write {REPLACEMENTS[name]}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class FastMCP(CompatServer):
    """The server of FastMCP 4."""

    context_type: ClassVar[type[Plain]] = Context

    def __init__(
        self,
        name: str | None = None,
        instructions: str | None = None,
        *,
        version: Any = None,
        website_url: str | None = None,
        icons: Sequence[Icon] | None = None,
        lifespan: Any = None,
        tools: Sequence[Any] = (),
        cache_ttl: float | None = None,
        cache_scope: Any = None,
        resource_security: ResourceSecurity | None = DEFAULT_RESOURCE_SECURITY,
        providers: Sequence[Any] = (),
        **others: Any,
    ) -> None:
        refuse("FastMCP()", significant_options(others, _IGNORED_OPTIONS), _ADVICE)
        about: dict[str, Any] = {"website_url": website_url, "icons": icons, "lifespan": lifespan}
        if cache_ttl is not None:
            about["cache"] = CacheHint(ttl=cache_ttl / 1000, scope=cache_scope or "private")
        super().__init__(name or "FastMCP", str(version or "0.0.0"), instructions=instructions, **without_none(about))
        self._security = resource_security
        for one in tools:
            self.add_tool(one)
        for provider in providers:
            self.add_provider(provider)

    def tool(self, name_or_fn: Any = None, *, name: str | None = None, output_schema: Any = ..., **about: Any) -> Any:
        """Offer a function as a tool."""
        about = self._check_options("tool()", about)
        annotations = about["annotations"] = convert_annotations(ToolAnnotations, about.get("annotations"))
        about["title"] = about.get("title") or (annotations and annotations.title)

        def declare(function: F) -> F:
            named = name if callable(name_or_fn) else name or name_or_fn
            schema = output_schema if isinstance(output_schema, dict) else None
            self._register_tool(function, name=named, structured=output_schema is ..., output_schema=schema, **about)
            return function

        return declare(name_or_fn) if callable(name_or_fn) else declare

    def add_tool(self, tool: Any) -> None:
        """Offer a function, or a `Tool` made of one."""
        one = declared_function(tool, Tool)
        self.tool(**one.about)(one.function)

    def add_middleware(self, middleware: Any) -> None:
        """Put accord's middleware around everything; a class of theirs, with `on_call_tool`, is refused."""
        if not _HOOKS.isdisjoint(dir(middleware)):
            raise Different(f"{type(middleware).__name__} is FastMCP's middleware: write {REPLACEMENTS['Middleware']}")
        super().add_middleware(middleware)

    def add_prompt(self, prompt: Any) -> None:
        """Offer a function that `@prompt` was said of."""
        one = declared_function(prompt, Prompt)
        self.prompt(**one.about)(one.function)

    def add_resource(self, resource: Any) -> None:
        """Offer a function that `@resource` was said of, or a `FunctionResource`."""
        super().add_resource(declared_function(resource, FunctionResource))  # type: ignore[arg-type]

    add_template = add_resource

    def resource(self, uri: str, **about: Any) -> Callable[[F], F]:
        """Offer a function as a resource, or as a template of resources; `{path*}` takes slashes."""
        refuse("resource()", {"version": about.pop("version", None)}, {"version": "give each version a URI of its own"})
        about = self._check_options("resource()", about)

        def declare(function: F) -> F:
            self._register_resource(function, _WILD.sub(r"{+\1}", str(uri)), **about)
            return function

        return declare

    def prompt(self, name_or_fn: Any = None, *, name: str | None = None, **about: Any) -> Any:
        """Offer a function as a prompt."""
        about = self._check_options("prompt()", about)

        def declare(function: F) -> F:
            named = name if callable(name_or_fn) else name or name_or_fn
            self._register_prompt(function, name=named, **about)
            return function

        return declare(name_or_fn) if callable(name_or_fn) else declare

    def _check_options(self, where: str, about: dict[str, Any]) -> dict[str, Any]:
        refuse(
            where,
            {key: value for key, value in significant_options(about, _IGNORED_OPTIONS).items() if key in _ADVICE},
            _ADVICE,
        )
        if about.get("version") is not None:
            about["version"] = str(about["version"])
        return {key: value for key, value in about.items() if key not in _IGNORED_OPTIONS}

    # --- composing ---------------------------------------------------------------------------------------------

    def mount(self, server: Any, namespace: str | None = None, **others: Any) -> None:
        """Offer what another server does, under its names with `namespace_` before them."""
        refuse("mount()", others, _ADVICE)
        super().mount(server, prefix=namespace or "")

    def add_provider(self, provider: Any, namespace: str | None = None) -> None:
        """Offer what a provider has: a `LocalProvider`, which is a server here, or one of accord's own."""
        if isinstance(provider, CompatServer):
            self.mount(provider, namespace)
        else:
            super().add_provider(provider)

    def add_transform(self, transform: Any) -> None:
        """Offer prompts or resources as tools. Raises `Different` for other transforms."""
        if not isinstance(transform, PromptsAsTools | ResourcesAsTools):
            raise Different("change tools by server.change_tool(name, ToolChange(...)), and show them by server.enable")
        transform.apply(self)

    def enable(self, *, names: Collection[str] = (), tags: Collection[str] = (), **by: Any) -> FastMCP:
        """Show what is hidden."""
        refuse("enable()", by, {})
        super().enable(*names, tags=tags)
        return self

    def disable(self, *, names: Collection[str] = (), tags: Collection[str] = (), **by: Any) -> FastMCP:
        """Hide something from clients."""
        refuse("disable()", by, {})
        super().disable(*names, tags=tags)
        return self

    # --- serving -----------------------------------------------------------------------------------------------

    def run(self, transport: str | None = None, **options: Any) -> None:
        """Serve; "http", "streamable-http" and "sse" are one here."""
        self._serve(transport or "stdio", **serving_options(options))

    async def run_async(self, transport: str | None = None, **options: Any) -> None:
        """As `run`, on an event loop that runs already."""
        await self._serve_async(transport or "stdio", **serving_options(options))

    async def run_http_async(self, **options: Any) -> None:
        """Serve HTTP on an event loop that runs already."""
        await self._serve_async("http", **serving_options(options))

    def http_app(self, path: str | None = None, **options: Any) -> HTTPApp:
        """An ASGI application; nobody need run its lifespan."""
        return self.asgi(serving_options({**options, "path": path})["options"])


class LocalProvider(FastMCP):
    """Tools, resources and prompts that are offered on no server yet: a server, to be mounted."""

    def __init__(self, **options: Any) -> None:
        refuse("LocalProvider()", options, _ADVICE)
        super().__init__("components")


def serving_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Where to serve, and how. Raises `Different` for what accord says in another way."""
    left = {key: value for key, value in significant_options(options, _IGNORED_OPTIONS).items() if value is not None}
    host, port = left.pop("host", settings.host), left.pop("port", settings.port)
    path, sse = left.pop("path", settings.streamable_http_path), left.pop("transport", None) == "sse"
    hosts = left.pop("allowed_hosts", settings.http_allowed_hosts)
    origins = left.pop("allowed_origins", settings.http_allowed_origins)
    stateless = bool(left.pop("stateless_http", left.pop("stateless", settings.stateless_http)))
    refuse("run()", left, {**_ADVICE, "middleware": "put middleware of ASGI around mcp.app"})
    at = "/mcp" if sse or path == "/sse" else path  # HTTP+SSE is at /sse beside it
    return {
        "host": host,
        "port": port,
        "options": HTTPOptions(path=at, hosts=hosts, origins=origins, stateless=stateless),
    }


def create_streamable_http_app(server: FastMCP, streamable_http_path: str = "/mcp", **options: Any) -> HTTPApp:
    """The ASGI application of a server, with Streamable HTTP at a path."""
    return server.http_app(streamable_http_path, **options)


def create_sse_app(server: FastMCP, message_path: str, sse_path: str = "/sse", **options: Any) -> HTTPApp:
    """The ASGI application of a server, which serves HTTP+SSE at /sse; the stream tells clients where they post to."""
    if sse_path.rstrip("/") != "/sse":
        raise Different("HTTP+SSE is at /sse in accord: mount the application where it should be, as at /tools")
    return server.http_app(transport="sse", **options)


def lifespan(function: F) -> F:
    """A lifespan is a function that yields once: it needs no decorator here."""
    return function


def _current(ctx: Plain) -> Plain:
    return ctx


def CurrentContext() -> Any:
    """The context, as the default of a parameter: `ctx: Context = CurrentContext()`."""
    return Depends(_current)
