"""The official SDK's server: `MCPServer` of mcp 2 and `FastMCP` of mcp 1, and the names that programs import with it.

from accord.compat.mcpserver import Context, MCPServer       # was: from mcp.server.mcpserver import ...
from accord.compat.mcpserver import Context, FastMCP         # was: from mcp.server.fastmcp import ...
"""

# mypy: disable-error-code="override"
# The methods have the signatures of another library in place of accord's.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from logging import getLogger
from types import SimpleNamespace
from typing import Any, ClassVar, TypeAlias, TypeVar

from accord.compat import types as types
from accord.compat.auth import (
    AccessToken as AccessToken,
    AuthSettings as AuthSettings,
    TokenVerifier as TokenVerifier,
    public_url,
    sdk_auth,
)
from accord.compat.context import ContextSession, NoOpContext, RequestContext as RequestContext
from accord.compat.declared import (
    FunctionResource as FunctionResource,
    Prompt as Prompt,
    TextResource as TextResource,
    Tool as Tool,
)
from accord.compat.differ import refuse, significant_options
from accord.compat.http import (
    DEFAULT_RESOURCE_SECURITY,
    PathEscapeError as PathEscapeError,
    ResourceSecurity,
    TransportSecuritySettings as TransportSecuritySettings,
    safe_join as safe_join,
)
from accord.compat.mcp_context import (
    Client as Client,
    Context as Context,
    MCPError as MCPError,
    McpError as McpError,
    ResourceNotFoundError as ResourceNotFoundError,
    UrlElicitationRequiredError as UrlElicitationRequiredError,
    create_connected_server_and_client_session as create_connected_server_and_client_session,
)
from accord.compat.mcp_middleware import (
    CallNext as CallNext,
    HandlerResult as HandlerResult,
    MiddlewareList,
    ServerMiddleware as ServerMiddleware,
    ServerRequestContext as ServerRequestContext,
)
from accord.compat.messages import (
    AssistantMessage as AssistantMessage,
    Message as Message,
    UserMessage as UserMessage,
)
from accord.compat.resolve import Resolve as Resolve
from accord.compat.server import CompatServer
from accord.compat.tool_manager import ToolManager
from accord.compat.types import Icon as Icon
from accord.errors import ToolError as ToolError
from accord.messages.revision import LATEST, RULES
from accord.server.core.content import CacheHint as Native
from accord.server.core.context import Context as Plain
from accord.server.declare.media import Audio as Audio, Image as Image
from accord.server.http.app import HTTPApp
from accord.server.http.options import HTTPOptions
from accord.server.input.questions import (
    Accepted as AcceptedElicitation,
    Cancelled as CancelledElicitation,
    Declined as DeclinedElicitation,
    Elicit as Elicit,
    Roots as ListRoots,
    Sample as Sample,
)

__all__ = [
    "DEFAULT_RESOURCE_SECURITY",
    "AcceptedElicitation",
    "AccessToken",
    "AssistantMessage",
    "Audio",
    "AuthSettings",
    "CacheHint",
    "CallNext",
    "CancelledElicitation",
    "Client",
    "Context",
    "DeclinedElicitation",
    "Elicit",
    "ElicitationResult",
    "FastMCP",
    "FunctionResource",
    "HandlerResult",
    "Icon",
    "Image",
    "ListRoots",
    "MCPError",
    "MCPServer",
    "McpError",
    "Message",
    "PathEscapeError",
    "Prompt",
    "RequestContext",
    "Resolve",
    "ResourceError",
    "ResourceNotFoundError",
    "ResourceSecurity",
    "Sample",
    "ServerMiddleware",
    "ServerRequestContext",
    "ServerSession",
    "TextResource",
    "TokenVerifier",
    "Tool",
    "ToolError",
    "TransportSecuritySettings",
    "UrlElicitationRequiredError",
    "UserMessage",
    "create_connected_server_and_client_session",
    "get_logger",
    "safe_join",
    "types",
]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

get_logger = getLogger
ResourceError = ToolError
ServerSession: TypeAlias = ContextSession
ElicitationResult: TypeAlias = AcceptedElicitation[T] | DeclinedElicitation | CancelledElicitation

_ADVICE = {
    "auth_server_provider": "accord.OAuthProxy is the authorization server before a provider: see docs/http.md",
    "event_store": "pass HTTPOptions(events=...) to asgi() or run()",
    "request_state_security": "pass state_keys= of accord.Server",
    "subscriptions": "leave it out: clients are always told of changes",
}
_IGNORED_OPTIONS = (
    "debug",
    "log_level",
    "dependencies",
    "json_response",
    "retry_interval",
    "max_request_body_size",
    "session_idle_timeout",
    "max_sessions",
    "warn_on_duplicate_tools",
    "warn_on_duplicate_resources",
    "warn_on_duplicate_prompts",
)
"""Options about how the official server works inside; accord ignores them: it answers in JSON where it can, stores no
more than `Limits` allow, and rejects duplicate registrations.
"""


def CacheHint(*, ttl_ms: float = 0, scope: Any = "private") -> Native:
    """Return a cache hint; `ttl_ms` is the time to live in milliseconds."""
    return Native(ttl=ttl_ms / 1000, scope=scope)


class MCPServer(CompatServer):
    """The server of mcp 2."""

    context_type: ClassVar[type[Plain]] = Context
    _ignores_unknown: ClassVar[bool] = True

    def __init__(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: Sequence[Icon] | None = None,
        version: str = "",
        *,
        lifespan: Any = None,
        cache_hints: Mapping[str, Any] | None = None,
        resource_security: ResourceSecurity | None = DEFAULT_RESOURCE_SECURITY,
        middleware: Sequence[Any] = (),
        tools: Sequence[Tool] = (),
        resources: Sequence[FunctionResource] = (),
        auth: AuthSettings | None = None,
        token_verifier: Any = None,
        **unsupported: Any,
    ) -> None:
        refuse(type(self).__name__, significant_options(unsupported, _IGNORED_OPTIONS), _ADVICE)
        metadata: dict[str, Any] = {
            "title": title,
            "description": description,
            "website_url": website_url,
            "icons": icons,
            "auth": sdk_auth(auth, token_verifier),
        }
        self._resource_url = None if auth is None else auth.resource_server_url
        self._security = resource_security
        hints = dict(cache_hints or {})
        self._read_hint = hints.pop("resources/read", None)
        if hints:
            metadata["cache"] = min(hints.values(), key=lambda hint: hint.ttl)
        metadata = {key: value for key, value in metadata.items() if value is not None}
        super().__init__(
            name or "mcp-server", version or "0.0.0", instructions=instructions, lifespan=lifespan, **metadata
        )
        self.middleware.extend(middleware or ())
        for tool in tools or ():
            self.add_tool(tool)
        for resource in resources or ():
            self.add_resource(resource)

    @cached_property
    def middleware(self) -> MiddlewareList:
        """Return the list of mcp 2 middleware, to append to; it is also accord's own decorator."""
        return MiddlewareList(self.add_middleware)

    @property
    def _tool_manager(self) -> ToolManager:
        return ToolManager(self)

    def tool(
        self,
        name: Any = None,
        title: str | None = None,
        description: str | None = None,
        annotations: Any = None,
        icons: Sequence[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
    ) -> Any:
        """Register a function as a tool."""
        options = {"title": title, "description": description, "annotations": annotations, "icons": icons, "meta": meta}

        def declare(function: F) -> F:
            named = None if callable(name) else name
            self._register_tool(function, name=named, structured=structured_output is not False, **options)
            return function

        return declare(name) if callable(name) else declare

    def add_tool(self, fn: Any, name: str | None = None, **options: Any) -> None:
        """Register a function, or a `Tool` made of one."""
        tool = fn if isinstance(fn, Tool) else Tool(fn, name=name, **options)
        self.tool(**tool.options)(tool.function)

    def resource(self, uri: str, **options: Any) -> Callable[[F], F]:
        """Register a function as a resource or a resource template."""

        def declare(function: F) -> F:
            self._register_resource(function, uri, cache=self._read_hint, **options)
            return function

        return declare

    def prompt(
        self, name: Any = None, title: str | None = None, description: str | None = None, icons: Any = None
    ) -> Any:
        """Register a function as a prompt."""

        def declare(function: F) -> F:
            named = None if callable(name) else name
            self._register_prompt(function, name=named, title=title, description=description, icons=icons)
            return function

        return declare(name) if callable(name) else declare

    def add_prompt(self, prompt: Prompt) -> None:
        """Register a `Prompt` made of a function."""
        self.prompt(**prompt.options)(prompt.function)

    async def list_tools(self) -> list[Any]:
        """Return the tools without running middleware, which may call this method itself."""
        view = self.registry.view
        if view.requires_scopes or view.has_providers or self.registry.search is not None:
            return await super().list_tools()
        return [define(RULES[LATEST]) for define in view.definitions("tools/list").values()]

    def _public_url(self, path: str) -> str | None:
        return public_url(self._resource_url)

    def run(self, transport: str = "stdio", **options: Any) -> None:
        """Run the server; "streamable-http" and "sse" mean the same."""
        self._serve(transport, **self._serving_options(options))

    async def run_streamable_http_async(self, **options: Any) -> None:
        """Run the server over HTTP on the running event loop."""
        await self._serve_async("streamable-http", **self._serving_options(options))

    def streamable_http_app(self, **options: Any) -> HTTPApp:
        """Return an ASGI application; its lifespan need not be run."""
        return self.asgi(self._serving_options(options)["options"])

    def sse_app(self, **options: Any) -> HTTPApp:
        """Return an ASGI application, which serves HTTP+SSE at /sse."""
        return self.asgi(self._serving_options(options)["options"])

    @property
    def session_manager(self) -> NoOpContext:
        """Return a session manager whose `run()` does nothing, for programs that mount the application."""
        return NoOpContext()

    def _serving_options(self, options: dict[str, Any]) -> dict[str, Any]:
        remaining = significant_options(options, _IGNORED_OPTIONS)
        host, port = remaining.pop("host", "127.0.0.1"), remaining.pop("port", 8000)
        path, security = remaining.pop("streamable_http_path", "/mcp"), remaining.pop("transport_security", None)
        stateless = bool(remaining.pop("stateless_http", False))
        refuse("run()", remaining, _ADVICE)
        hosts, origins = ((), ()) if security is None else security.allowed
        http = HTTPOptions(path=path, hosts=hosts, origins=origins, stateless=stateless)
        return {"host": host, "port": port, "options": http}


class FastMCP(MCPServer):
    """The server of mcp 1, which takes its HTTP options as arguments, or in `settings`."""

    def __init__(
        self,
        name: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: Sequence[Icon] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 8000,
        streamable_http_path: str = "/mcp",
        stateless_http: bool = False,
        transport_security: TransportSecuritySettings | None = None,
        lifespan: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(
            name or "FastMCP",
            instructions=instructions,
            website_url=website_url,
            icons=icons,
            lifespan=lifespan,
            resource_security=None,
            **options,
        )
        self.settings: Any = SimpleNamespace(
            host=host,
            port=port,
            streamable_http_path=streamable_http_path,
            stateless_http=stateless_http,
            transport_security=transport_security,
        )
        """The HTTP options, under the names of the arguments."""

    @property
    def _mcp_server(self) -> FastMCP:
        """Return the server to which tests of mcp 1 connect a client."""
        return self

    def _serving_options(self, options: dict[str, Any]) -> dict[str, Any]:
        return super()._serving_options({**vars(self.settings), **options})
