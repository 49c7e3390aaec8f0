"""FastMCP 4's context and the results that a handler may return.

`fastmcp.settings` holds the defaults for serving, from `FASTMCP_PORT` and the other environment variables.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

import msgspec

from accord.compat.context import CompatContext as Shared, ResourceContent
from accord.compat.differ import Different
from accord.messages.base import LoggingLevel, ModelMeta
from accord.messages.tools import CallToolResult
from accord.server.core.results import content_of

# mypy: disable-error-code="override"
# The methods have the signatures of another library in place of accord's.


_STATES: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
"""State of each session, by the client information of its handshake."""

_UNSUPPORTED = {
    "session_id": "2026-07-28 knows no sessions; keep what belongs together in Handles",
    "transport": "a handler is the same on all of them",
    "list_tools": "ctx.server.list_tools()",
    "list_resources": "ctx.server.list_resources()",
    "list_prompts": "ctx.server.list_prompts()",
    "get_prompt": "call the function that the prompt is",
    "input_responses": "await ctx.elicit(...): it asks in the same way in every revision",
    "request_state": "keep it in the function: await ctx.elicit(...) comes back to it",
    "task_id": "the client has it; set what it sees by accord's ctx.status(text)",
    "is_background_task": "await accord's ctx.run_as_task(), which returns it",
}
"""Attributes that accord's context lacks, and what to write instead."""


class _ToolResultMeta(ModelMeta):
    """A metaclass that makes a `CallToolResult` of any content."""

    def __call__(
        cls,
        content: Any = None,
        structured_content: Any = None,
        meta: dict[str, Any] | None = None,
        is_error: bool = False,
    ) -> Any:
        value = structured_content if content is None else content
        structured = (
            {} if structured_content is None else {"structured_content": msgspec.to_builtins(structured_content)}
        )
        return CallToolResult(content=content_of(value), meta=meta, is_error=is_error or None, **structured)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, CallToolResult)


class ToolResult(CallToolResult, metaclass=_ToolResultMeta):
    """A tool result with all its fields: `ToolResult(content="text", structured_content={...}, meta={...})`."""


class ResourceResult(msgspec.Struct):
    """The contents of a resource, as `ctx.read_resource` returns them."""

    contents: list[ResourceContent]


class Context(Shared):
    """FastMCP's context."""

    @property
    def fastmcp(self) -> Any:
        """Return the server."""
        return self.server

    @property
    def lifespan_context(self) -> Any:
        """Return the value that the lifespan yielded, or an empty dict without a lifespan."""
        return self.request_context.lifespan_context

    def log(
        self, message: Any, level: LoggingLevel | None = None, logger_name: str | None = None, extra: Any = None
    ) -> Any:
        """Send a log message to the client."""
        data = {"msg": message, "extra": dict(extra)} if extra else message
        return super().log(level or "info", data, logger_name)

    def debug(self, message: Any, logger_name: str | None = None, extra: Any = None) -> Any:
        """Log at level debug."""
        return self.log(message, "debug", logger_name, extra)

    def info(self, message: Any, logger_name: str | None = None, extra: Any = None) -> Any:
        """Log at level info."""
        return self.log(message, "info", logger_name, extra)

    def warning(self, message: Any, logger_name: str | None = None, extra: Any = None) -> Any:
        """Log at level warning."""
        return self.log(message, "warning", logger_name, extra)

    def error(self, message: Any, logger_name: str | None = None, extra: Any = None) -> Any:
        """Log at level error."""
        return self.log(message, "error", logger_name, extra)

    async def elicit(self, message: str, response_type: Any = None, **unsupported: Any) -> Any:
        """Send the user a form: a type, or a list of choices. Raises `Different` for any other shape."""
        if (
            unsupported
            or isinstance(response_type, dict)
            or (isinstance(response_type, list) and not all(isinstance(one, str) for one in response_type))
        ):
            raise Different("ctx.elicit takes a type here, or a list of strings; titles stand in an Enum or a record")
        return await super().elicit(message, response_type)

    async def read_resource(self, uri: Any) -> Any:
        """Read a resource of this server; `.contents` is a list with `.content` and `.mime_type`."""
        return ResourceResult([ResourceContent.of(one) for one in await super().read_resource(str(uri))])

    async def sample(self, messages: Any, system_prompt: str | None = None, **options: Any) -> Any:
        """Send a sampling request to the client's model; `.text` is the answer."""
        options["model"] = options.pop("model_preferences", None)
        for name in ("result_type", "tool_concurrency", "mask_error_details"):
            if options.pop(name, None) is not None:
                raise Different(
                    f"ctx.sample takes no {name}= here: read the text, and call tools in a loop of your own"
                )
        return await super().sample(
            messages, system_prompt=system_prompt, max_tokens=options.pop("max_tokens", 512), **options
        )

    # --- what a session keeps ----------------------------------------------------------------------------------

    async def set_state(self, key: str, value: Any, *, serializable: bool = True) -> None:
        """Store a value for the session, or for the request when there is no session, as in 2026-07-28."""
        self._session_state[key] = value

    async def get_state(self, key: str) -> Any:
        """Return a stored value, or None."""
        return self._session_state.get(key)

    async def delete_state(self, key: str) -> None:
        """Delete a stored value."""
        self._session_state.pop(key, None)

    @property
    def _session_state(self) -> dict[str, Any]:
        if not self._call.pending.rules.sessions:
            return self.state
        return _STATES.setdefault(self._call.peer.channel.session.peer_info, {})

    async def enable_components(
        self, *, names: Collection[str] = (), tags: Collection[str] = (), **unsupported: Any
    ) -> None:
        """Show hidden components to this session. Raises `Different` when the server hides any from all sessions."""
        _check(unsupported)
        if self.server.registry.visibility:
            raise Different("what mcp.disable(...) hides, no session sees: hide it with ctx.disable_components instead")
        self.enable(*names, tags=tags)

    async def disable_components(
        self, *, names: Collection[str] = (), tags: Collection[str] = (), **unsupported: Any
    ) -> None:
        """Hide components from this session."""
        _check(unsupported)
        self.disable(*names, tags=tags)

    async def reset_visibility(self) -> None:
        """Reset the visibility of components in this session to that of the server."""
        self._call.record("session")
        self._call.peer.visibility = None
        await self.notify_tools_changed()
        await self.notify_prompts_changed()
        await self.notify_resources_changed()

    def __getattr__(self, name: str) -> NoReturn:
        if name in _UNSUPPORTED:
            raise Different(f"ctx.{name} is not in accord: {_UNSUPPORTED[name]}")
        raise AttributeError(f"a context has no attribute {name!r}")


def _check(filters: dict[str, Any]) -> None:
    if any(filters.values()):
        raise Different(f"things are shown and hidden by names and tags here, not by {', '.join(filters)}")


_IGNORED = {
    *("client_disconnect_timeout", "client_init_timeout", "client_log_level", "debug", "deprecation_warnings"),
    *("enable_rich_logging", "enable_rich_tracebacks", "json_response", "log_enabled", "log_level", "message_path"),
    *("check_for_updates", "show_server_banner", "sse_path", "test_mode"),
}


_KNOWN = {"host", "port", "streamable_http_path", "stateless_http", "http_allowed_hosts", "http_allowed_origins"}


class FastMCPSettings:
    """Defaults for serving that can be read and set. Raises `Different` for a setting that accord replaces."""

    def __init__(self) -> None:
        self.host: str = os.environ.get("FASTMCP_HOST", "127.0.0.1")
        self.port: int = int(os.environ.get("FASTMCP_PORT", "8000"))
        self.streamable_http_path: str = os.environ.get("FASTMCP_STREAMABLE_HTTP_PATH", "/mcp")
        self.stateless_http: bool = os.environ.get("FASTMCP_STATELESS_HTTP", "").lower() in ("1", "true", "yes", "on")
        self.http_allowed_hosts: Sequence[str] = ()
        self.http_allowed_origins: Sequence[str] = ()

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _KNOWN | _IGNORED:
            raise Different(f"fastmcp.settings.{name} is not in accord: say it of the server, or of each client")
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name in _IGNORED:
            return None
        raise Different(f"fastmcp.settings.{name} is not in accord: say it of the server, or of each client")


settings: FastMCPSettings = FastMCPSettings()
