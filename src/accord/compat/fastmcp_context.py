"""What FastMCP 4 gives a handler, and what a handler gives back there.

`fastmcp.settings`: where servers are reached that do not say so themselves; `FASTMCP_PORT` and its like.
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
# The words of another library are taken in the place of accord's own: that is what this is for.


_STATES: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
"""What handlers keep for a session, by what its client said of itself when it began."""

_UNSUPPORTED = {
    "session_id": "2026-07-28 knows no sessions; keep what belongs together in Handles",
    "transport": "a handler is the same on all of them",
    "list_tools": "ctx.server.list_tools()",
    "list_resources": "ctx.server.list_resources()",
    "list_prompts": "ctx.server.list_prompts()",
    "get_prompt": "call the function that the prompt is",
    "input_responses": "await ctx.elicit(...): it asks in the same way in every revision",
    "request_state": "keep it in the function: await ctx.elicit(...) comes back to it",
    "task_id": "accord has no tasks",
    "is_background_task": "accord has no tasks",
}
"""What is not here, and what to write for it."""


class _ToolResultMeta(ModelMeta):
    """Makes a `CallToolResult` of whatever is given as content."""

    def __call__(
        cls,
        content: Any = None,
        structured_content: Any = None,
        meta: dict[str, Any] | None = None,
        is_error: bool = False,
    ) -> Any:
        shown = structured_content if content is None else content
        rest = {} if structured_content is None else {"structured_content": msgspec.to_builtins(structured_content)}
        return CallToolResult(content=content_of(shown), meta=meta, is_error=is_error or None, **rest)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, CallToolResult)


class ToolResult(CallToolResult, metaclass=_ToolResultMeta):
    """A tool's result in all its parts: `ToolResult(content="text", structured_content={...}, meta={...})`."""


class ResourceResult(msgspec.Struct):
    """What a resource holds, as `ctx.read_resource` gives it."""

    contents: list[ResourceContent]


class Context(Shared):
    """What a handler may know, tell and ask."""

    @property
    def fastmcp(self) -> Any:
        """The server."""
        return self.server

    @property
    def lifespan_context(self) -> Any:
        """What the lifespan yielded; an empty dict where there is none."""
        return self.request_context.lifespan_context

    def log(
        self, message: Any, level: LoggingLevel | None = None, logger_name: str | None = None, extra: Any = None
    ) -> Any:
        """Tell the client what happens here."""
        data = {"msg": message, "extra": dict(extra)} if extra else message
        return super().log(level or "info", data, logger_name)

    def debug(self, message: Any, logger_name: str | None = None, extra: Any = None) -> Any:
        """`log` for the details of a fault."""
        return self.log(message, "debug", logger_name, extra)

    def info(self, message: Any, logger_name: str | None = None, extra: Any = None) -> Any:
        """`log` for what goes on."""
        return self.log(message, "info", logger_name, extra)

    def warning(self, message: Any, logger_name: str | None = None, extra: Any = None) -> Any:
        """`log` for what should not be."""
        return self.log(message, "warning", logger_name, extra)

    def error(self, message: Any, logger_name: str | None = None, extra: Any = None) -> Any:
        """`log` for what failed."""
        return self.log(message, "error", logger_name, extra)

    async def elicit(self, message: str, response_type: Any = None, **about: Any) -> Any:
        """Ask the person to fill in a form: a type, or a list of choices. Raises `Different` for other shapes."""
        if (
            about
            or isinstance(response_type, dict)
            or (isinstance(response_type, list) and not all(isinstance(one, str) for one in response_type))
        ):
            raise Different("ctx.elicit takes a type here, or a list of strings; titles stand in an Enum or a record")
        return await super().elicit(message, response_type)

    async def read_resource(self, uri: Any) -> Any:
        """Read a resource of this server: `.contents`, each with `.content` and `.mime_type`."""
        return ResourceResult([ResourceContent.of(one) for one in await super().read_resource(str(uri))])

    async def sample(self, messages: Any, system_prompt: str | None = None, **about: Any) -> Any:
        """Ask the client's model; `.text` is what it said."""
        about["model"] = about.pop("model_preferences", None)
        for name in ("result_type", "tool_concurrency", "mask_error_details"):
            if about.pop(name, None) is not None:
                raise Different(
                    f"ctx.sample takes no {name}= here: read the text, and call tools in a loop of your own"
                )
        return await super().sample(
            messages, system_prompt=system_prompt, max_tokens=about.pop("max_tokens", 512), **about
        )

    # --- what a session keeps ----------------------------------------------------------------------------------

    async def set_state(self, key: str, value: Any, *, serializable: bool = True) -> None:
        """Keep a value for this session; for this request where there is none, as in 2026-07-28."""
        self._session_state[key] = value

    async def get_state(self, key: str) -> Any:
        """A value that was kept; None where there is none."""
        return self._session_state.get(key)

    async def delete_state(self, key: str) -> None:
        """Keep a value no longer."""
        self._session_state.pop(key, None)

    @property
    def _session_state(self) -> dict[str, Any]:
        if not self._call.exchange.rules.sessions:
            return self.state
        return _STATES.setdefault(self._call.peer.channel.session.peer_info, {})

    async def enable_components(self, *, names: Collection[str] = (), tags: Collection[str] = (), **by: Any) -> None:
        """Show what is hidden from this session. Raises `Different` where the server hides something from all."""
        _check(by)
        if self.server.registry.visibility:
            raise Different("what mcp.disable(...) hides, no session sees: hide it with ctx.disable_components instead")
        self.enable(*names, tags=tags)

    async def disable_components(self, *, names: Collection[str] = (), tags: Collection[str] = (), **by: Any) -> None:
        """Hide something from this session."""
        _check(by)
        self.disable(*names, tags=tags)

    async def reset_visibility(self) -> None:
        """Show this session what everybody sees."""
        self._call.record("session")
        self._call.peer.visibility = None
        await self.notify_tools_changed()
        await self.notify_prompts_changed()
        await self.notify_resources_changed()

    def __getattr__(self, name: str) -> NoReturn:
        if name in _UNSUPPORTED:
            raise Different(f"ctx.{name} is not in accord: {_UNSUPPORTED[name]}")
        raise AttributeError(f"a context has no attribute {name!r}")


def _check(by: dict[str, Any]) -> None:
    if any(by.values()):
        raise Different(f"things are shown and hidden by names and tags here, not by {', '.join(by)}")


_IGNORED = {
    *("client_disconnect_timeout", "client_init_timeout", "client_log_level", "debug", "deprecation_warnings"),
    *("enable_rich_logging", "enable_rich_tracebacks", "json_response", "log_enabled", "log_level", "message_path"),
    *("check_for_updates", "show_server_banner", "sse_path", "test_mode"),
}


_KNOWN = {"host", "port", "streamable_http_path", "stateless_http", "http_allowed_hosts", "http_allowed_origins"}


class FastMCPSettings:
    """What may be read and set; what accord says in another way raises `Different`."""

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
