"""`fastmcp.settings`: where servers are reached that do not say so themselves; `FASTMCP_PORT` and its like."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from accord.compat.differ import Different

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
