"""FastMCP's `Client`: accord's client with FastMCP's result shapes."""

# mypy: disable-error-code="override"
# The methods have the signatures of another library in place of accord's.

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from accord.auth.oauth import OAuth
from accord.client.client import Client as Native
from accord.client.results import ToolResult
from accord.compat.differ import Different, refuse

_ADVICE = {
    "elicitation_handler": "pass elicitation= to accord.Client: a function of the question",
    "log_handler": "pass on_log= to accord.Client",
    "message_handler": "pass on_notification= to accord.Client",
    "mode": "accord.Client(..., revisions=[...]) says which revisions are tried",
    "progress_handler": "pass on_progress= to each call",
    "sampling_handler": "pass sampling= to accord.Client: a function of the question",
}


class Client(Native):
    """A client whose `call_tool` raises `ToolError` for a tool error, and whose `read_resource` returns a list."""

    def __init__(
        self, transport: Any, *, auth: Any = None, timeout: Any = None, roots: Any = None, **unsupported: Any
    ) -> None:
        refuse("Client()", unsupported, _ADVICE)
        target = str(transport) if isinstance(transport, Path) else transport
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        super().__init__(target, auth=_login(auth), timeout=seconds, roots=roots)

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None, *, raise_on_error: bool = True, **options: Any
    ) -> ToolResult:
        """Call a tool. Raises `ToolError` for a tool error, unless `raise_on_error` is false."""
        known = {"timeout": options.pop("timeout", None), "meta": options.pop("meta", None)}
        refuse("call_tool()", options, _ADVICE)
        result: ToolResult = await super().call_tool(name, arguments, raise_on_error=raise_on_error, **known)
        return result

    async def read_resource(self, uri: Any, **options: Any) -> Any:
        """Return the contents of a resource as a list."""
        return (await super().read_resource(str(uri), **options)).contents


def _login(auth: Any) -> Any:
    """Return the login for `auth=`: "oauth", a bearer token, or a login of accord. Raises `Different`."""
    if auth == "oauth":
        return OAuth()
    if auth is None or isinstance(auth, str) or hasattr(auth, "credentials"):
        return auth
    raise Different(f"Client() takes no {type(auth).__name__} as auth= in accord: give the token, or accord.OAuth()")
