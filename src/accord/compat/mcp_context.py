"""What the official SDK gives a handler, and the errors that a handler raises there."""

# mypy: disable-error-code="override"
# The words of another library are taken in the place of accord's own: that is what this is for.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.compat.context import CompatContext as Shared, ResourceContent
from accord.compat.types import ErrorData
from accord.errors import ProtocolError, ResourceNotFound, UrlElicitationRequired
from accord.messages.base import LoggingLevel


class Context(Shared):
    """What a handler may know, tell and ask."""

    @property
    def mcp_server(self) -> Any:
        """The server."""
        return self.server

    @property
    def fastmcp(self) -> Any:
        """The server."""
        return self.server

    def log(self, level: LoggingLevel, message: Any, *, logger_name: str | None = None, **extra: Any) -> Any:
        """Tell the client what happens here."""
        return super().log(level, {"message": message, **extra} if extra else message, logger_name)

    def debug(self, message: Any, *, logger_name: str | None = None, **extra: Any) -> Any:
        """`log` for the details of a fault."""
        return self.log("debug", message, logger_name=logger_name, **extra)

    def info(self, message: Any, *, logger_name: str | None = None, **extra: Any) -> Any:
        """`log` for what goes on."""
        return self.log("info", message, logger_name=logger_name, **extra)

    def warning(self, message: Any, *, logger_name: str | None = None, **extra: Any) -> Any:
        """`log` for what should not be."""
        return self.log("warning", message, logger_name=logger_name, **extra)

    def error(self, message: Any, *, logger_name: str | None = None, **extra: Any) -> Any:
        """`log` for what failed."""
        return self.log("error", message, logger_name=logger_name, **extra)

    async def elicit(self, message: str, schema: Any) -> Any:
        """Ask the person to fill in a form, with the fields of `schema`."""
        return await super().elicit(message, schema)

    async def read_resource(self, uri: Any) -> Any:
        """Read a resource of this server: what it holds, each with `.content` and `.mime_type`."""
        return [ResourceContent.of(one) for one in await super().read_resource(str(uri))]


class McpError(ProtocolError):
    """A JSON-RPC error, as mcp 1 raises it: `McpError(ErrorData(code=..., message=...))`."""

    def __init__(self, error: ErrorData) -> None:
        super().__init__(error.message, code=error.code, data=error.data)


class MCPError(ProtocolError):
    """A JSON-RPC error, as mcp 2 raises it."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message, code=code, data=data)


class ResourceNotFoundError(ResourceNotFound):
    """There is no such resource; the text says which."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, data={})


class UrlElicitationRequiredError(UrlElicitationRequired):
    """The person must visit pages first."""

    def __init__(self, elicitations: Sequence[Any], message: str | None = None) -> None:
        pages = [{"mode": "url", "message": one.message, "url": one.url, "elicitationId": one.elicitation_id}
                 for one in elicitations]  # fmt: skip
        super().__init__(message or "the person must visit a page first", elicitations=pages)
