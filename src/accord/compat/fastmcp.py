"""FastMCP 4's server and context, and what programs import beside them.

from accord.compat.fastmcp import Context, FastMCP      # was: from fastmcp import Context, FastMCP
"""

# mypy: disable-error-code="override"
# The methods have the signatures of another library in place of accord's.

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from logging import getLogger
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from accord.compat.as_tools import PromptsAsTools as PromptsAsTools, ResourcesAsTools as ResourcesAsTools
from accord.compat.auth import (
    AccessToken as AccessToken,
    JWTVerifier as JWTVerifier,
    RemoteAuthProvider as RemoteAuthProvider,
    StaticTokenVerifier as StaticTokenVerifier,
    TokenVerifier as TokenVerifier,
    fastmcp_auth,
    public_url,
)
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
from accord.server.tasks.options import Task

__all__ = [
    "AcceptedElicitation",
    "AccessToken",
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
    "JWTVerifier",
    "LocalProvider",
    "Message",
    "NotFoundError",
    "Prompt",
    "PromptError",
    "PromptsAsTools",
    "RemoteAuthProvider",
    "ResourceError",
    "ResourceSecurity",
    "ResourcesAsTools",
    "StaticTokenVerifier",
    "TextResource",
    "TokenVerifier",
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
    "auth": "write accord's @server.tool(scopes={...}), which hides it, or needs={...}",
    "mask_error_details": "write mcp.add_middleware(accord.MaskErrors())",
    "middleware": f"write mcp.add_middleware(it), and it as {REPLACEMENTS['Middleware']}",
    "transforms": "use server.change_tool(name, ToolChange(...))",
    "tasks": "write task=True at each tool, and FastMCP() without it: see docs/tasks.md",
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
"""Options about how FastMCP's server works inside, which accord ignores."""

_HOOKS = {
    *("on_message", "on_request", "on_notification", "on_initialize", "on_call_tool", "on_read_resource"),
    *("on_get_prompt", "on_list_tools", "on_list_resources", "on_list_resource_templates", "on_list_prompts"),
}
"""Methods of FastMCP's middleware."""

_WILD = re.compile(r"{(\w+)\*}")


if not TYPE_CHECKING:  # which would take it for a promise that every name is here

    def __getattr__(name: str) -> Any:
        if name in REPLACEMENTS:
            raise ImportError(f"{name} is not in {__name__}: write {REPLACEMENTS[name]}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _task_support(task: Any) -> Any:
    """Return accord's option for `True`, or for FastMCP's `TaskConfig`: its `mode` and `poll_interval`."""
    mode = getattr(task, "mode", None)
    if mode is None:
        return task
    if mode == "forbidden":
        return False
    poll: timedelta = getattr(task, "poll_interval", None) or timedelta(seconds=1)
    return Task(required=mode == "required", poll=poll.total_seconds())


class FastMCP(CompatServer):
    """FastMCP 4's server, on accord's."""

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
        auth: Any = None,
        **unsupported: Any,
    ) -> None:
        refuse("FastMCP()", significant_options(unsupported, _IGNORED_OPTIONS), _ADVICE)
        options: dict[str, Any] = {"website_url": website_url, "icons": icons, "lifespan": lifespan}
        if cache_ttl is not None:
            options["cache"] = CacheHint(ttl=cache_ttl / 1000, scope=cache_scope or "private")
        options["auth"] = fastmcp_auth(auth)
        self._base_url = getattr(auth, "base_url", None)
        super().__init__(name or "FastMCP", str(version or "0.0.0"), instructions=instructions, **without_none(options))
        self._security = resource_security
        for item in tools:
            self.add_tool(item)
        for provider in providers:
            self.add_provider(provider)

    def tool(self, name_or_fn: Any = None, *, name: str | None = None, output_schema: Any = ..., **options: Any) -> Any:
        """Register a function as a tool."""
        task = options.pop("task", None)
        options = self._check_options("tool()", options)
        options["task"] = None if task is None else self.serve_tasks(_task_support(task))
        annotations = options["annotations"] = convert_annotations(ToolAnnotations, options.get("annotations"))
        options["title"] = options.get("title") or (annotations and annotations.title)

        def declare(function: F) -> F:
            named = name if callable(name_or_fn) else name or name_or_fn
            schema = output_schema if isinstance(output_schema, dict) else None
            self._register_tool(function, name=named, structured=output_schema is ..., output_schema=schema, **options)
            return function

        return declare(name_or_fn) if callable(name_or_fn) else declare

    def add_tool(self, tool: Any) -> None:
        """Register a function, or a `Tool` made of one."""
        declared = declared_function(tool, Tool)
        self.tool(**declared.options)(declared.function)

    def add_middleware(self, middleware: Any) -> None:
        """Add accord's middleware. Raises `Different` for a class of FastMCP's middleware, which has `on_call_tool`."""
        if not _HOOKS.isdisjoint(dir(middleware)):
            raise Different(f"{type(middleware).__name__} is FastMCP's middleware: write {REPLACEMENTS['Middleware']}")
        super().add_middleware(middleware)

    def add_prompt(self, prompt: Any) -> None:
        """Register a function that was declared with `@prompt`."""
        declared = declared_function(prompt, Prompt)
        self.prompt(**declared.options)(declared.function)

    def add_resource(self, resource: Any) -> None:
        """Register a function that was declared with `@resource`, or a `FunctionResource`."""
        super().add_resource(declared_function(resource, FunctionResource))  # type: ignore[arg-type]

    add_template = add_resource

    def resource(self, uri: str, **options: Any) -> Callable[[F], F]:
        """Register a function as a resource or a resource template; `{path*}` matches slashes."""
        refuse(
            "resource()", {"version": options.pop("version", None)}, {"version": "give each version a URI of its own"}
        )
        options = self._check_options("resource()", options)

        def declare(function: F) -> F:
            self._register_resource(function, _WILD.sub(r"{+\1}", str(uri)), **options)
            return function

        return declare

    def prompt(self, name_or_fn: Any = None, *, name: str | None = None, **options: Any) -> Any:
        """Register a function as a prompt."""
        options = self._check_options("prompt()", options)

        def declare(function: F) -> F:
            named = name if callable(name_or_fn) else name or name_or_fn
            self._register_prompt(function, name=named, **options)
            return function

        return declare(name_or_fn) if callable(name_or_fn) else declare

    def _check_options(self, caller: str, options: dict[str, Any]) -> dict[str, Any]:
        refuse(
            caller,
            {key: value for key, value in significant_options(options, _IGNORED_OPTIONS).items() if key in _ADVICE},
            _ADVICE,
        )
        if options.get("version") is not None:
            options["version"] = str(options["version"])
        return {key: value for key, value in options.items() if key not in _IGNORED_OPTIONS}

    # --- composing ---------------------------------------------------------------------------------------------

    def mount(self, server: Any, namespace: str | None = None, **unsupported: Any) -> None:
        """Mount another server; its names get the prefix `namespace_`."""
        refuse("mount()", unsupported, _ADVICE)
        super().mount(server, prefix=namespace or "")

    def add_provider(self, provider: Any, namespace: str | None = None) -> None:
        """Add a provider: a `LocalProvider`, which is a server in accord, or one of accord's own."""
        if isinstance(provider, CompatServer):
            self.mount(provider, namespace)
        else:
            super().add_provider(provider)

    def add_transform(self, transform: Any) -> None:
        """Offer prompts or resources as tools. Raises `Different` for any other transform."""
        if not isinstance(transform, PromptsAsTools | ResourcesAsTools):
            raise Different("change tools by server.change_tool(name, ToolChange(...)), and show them by server.enable")
        transform.apply(self)

    def enable(self, *, names: Collection[str] = (), tags: Collection[str] = (), **unsupported: Any) -> FastMCP:
        """Show hidden tools, resources and prompts."""
        refuse("enable()", unsupported, {})
        super().enable(*names, tags=tags)
        return self

    def disable(self, *, names: Collection[str] = (), tags: Collection[str] = (), **unsupported: Any) -> FastMCP:
        """Hide tools, resources and prompts from clients."""
        refuse("disable()", unsupported, {})
        super().disable(*names, tags=tags)
        return self

    # --- serving -----------------------------------------------------------------------------------------------

    def _public_url(self, path: str) -> str | None:
        return public_url(None if self._base_url is None else str(self._base_url).rstrip("/") + path)

    def run(self, transport: str | None = None, **options: Any) -> None:
        """Run the server; "http", "streamable-http" and "sse" mean the same."""
        self._serve(transport or "stdio", **serving_options(options))

    async def run_async(self, transport: str | None = None, **options: Any) -> None:
        """Run the server as `run` does, on the running event loop."""
        await self._serve_async(transport or "stdio", **serving_options(options))

    async def run_http_async(self, **options: Any) -> None:
        """Run the server over HTTP on the running event loop."""
        await self._serve_async("http", **serving_options(options))

    def http_app(self, path: str | None = None, **options: Any) -> HTTPApp:
        """Return an ASGI application; its lifespan need not be run."""
        return self.asgi(serving_options({**options, "path": path})["options"])


class LocalProvider(FastMCP):
    """A server that holds tools, resources and prompts until it is mounted."""

    def __init__(self, **options: Any) -> None:
        refuse("LocalProvider()", options, _ADVICE)
        super().__init__("components")


def serving_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the host, the port and the HTTP options. Raises `Different` for an option that accord replaces."""
    remaining = {
        key: value for key, value in significant_options(options, _IGNORED_OPTIONS).items() if value is not None
    }
    host, port = remaining.pop("host", settings.host), remaining.pop("port", settings.port)
    path, sse = remaining.pop("path", settings.streamable_http_path), remaining.pop("transport", None) == "sse"
    hosts = remaining.pop("allowed_hosts", settings.http_allowed_hosts)
    origins = remaining.pop("allowed_origins", settings.http_allowed_origins)
    stateless = bool(remaining.pop("stateless_http", remaining.pop("stateless", settings.stateless_http)))
    refuse("run()", remaining, {**_ADVICE, "middleware": "put middleware of ASGI around mcp.app"})
    # The application serves HTTP+SSE at /sse in addition to this path.
    mcp_path = "/mcp" if sse or path == "/sse" else path
    return {
        "host": host,
        "port": port,
        "options": HTTPOptions(path=mcp_path, hosts=hosts, origins=origins, stateless=stateless),
    }


def create_streamable_http_app(server: FastMCP, streamable_http_path: str = "/mcp", **options: Any) -> HTTPApp:
    """Return the ASGI application of a server, with Streamable HTTP at a path."""
    return server.http_app(streamable_http_path, **options)


def create_sse_app(server: FastMCP, message_path: str, sse_path: str = "/sse", **options: Any) -> HTTPApp:
    """Return the ASGI application of a server, which serves HTTP+SSE at /sse and sends clients the message URL."""
    if sse_path.rstrip("/") != "/sse":
        raise Different("HTTP+SSE is at /sse in accord: mount the application where it should be, as at /tools")
    return server.http_app(transport="sse", **options)


def lifespan(function: F) -> F:
    """Return the function: in accord, a lifespan is any function that yields once."""
    return function


def _current(ctx: Plain) -> Plain:
    return ctx


def CurrentContext() -> Any:
    """Return the default of a parameter that receives the context: `ctx: Context = CurrentContext()`."""
    return Depends(_current)
