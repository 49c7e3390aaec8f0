"""The official SDK's context, its errors, and its in-process clients for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.client.client import Client as Native
from accord.compat.context import CompatContext as Shared, ResourceContent
from accord.compat.types import ErrorData
from accord.errors import ProtocolError, ResourceNotFound, UrlElicitationRequired
from accord.messages.base import LoggingLevel
from accord.messages.prompts import ListPromptsResult
from accord.messages.resources import ListResourcesResult, ListResourceTemplatesResult
from accord.messages.tools import ListToolsResult

# mypy: disable-error-code="override"
# The methods have the signatures of another library in place of accord's.


class Context(Shared):
    """The official SDK's context."""

    @property
    def mcp_server(self) -> Any:
        """Return the server."""
        return self.server

    @property
    def fastmcp(self) -> Any:
        """Return the server."""
        return self.server

    def log(self, level: LoggingLevel, message: Any, *, logger_name: str | None = None, **extra: Any) -> Any:
        """Send a log message to the client."""
        return super().log(level, {"message": message, **extra} if extra else message, logger_name)

    def debug(self, message: Any, *, logger_name: str | None = None, **extra: Any) -> Any:
        """Log at level debug."""
        return self.log("debug", message, logger_name=logger_name, **extra)

    def info(self, message: Any, *, logger_name: str | None = None, **extra: Any) -> Any:
        """Log at level info."""
        return self.log("info", message, logger_name=logger_name, **extra)

    def warning(self, message: Any, *, logger_name: str | None = None, **extra: Any) -> Any:
        """Log at level warning."""
        return self.log("warning", message, logger_name=logger_name, **extra)

    def error(self, message: Any, *, logger_name: str | None = None, **extra: Any) -> Any:
        """Log at level error."""
        return self.log("error", message, logger_name=logger_name, **extra)

    async def elicit(self, message: str, schema: Any) -> Any:
        """Send the user a form with the fields of `schema`."""
        return await super().elicit(message, schema)

    async def read_resource(self, uri: Any) -> Any:
        """Read a resource of this server: a list with `.content` and `.mime_type`."""
        return [ResourceContent.of(one) for one in await super().read_resource(str(uri))]


class McpError(ProtocolError):
    """A JSON-RPC error, as mcp 1 raises it: `McpError(ErrorData(code=..., message=...))`."""

    def __init__(self, error: ErrorData) -> None:
        super().__init__(error.message, code=error.code, data=error.data)


class MCPError(ProtocolError):
    """A JSON-RPC error, as mcp 2 raises it: `MCPError(code, message, data)`."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message, code=code, data=data)


class ResourceNotFoundError(ResourceNotFound):
    """An unknown resource; the message names it."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, data={})


class UrlElicitationRequiredError(UrlElicitationRequired):
    """The user must first visit pages (`URLElicitationRequiredError`)."""

    def __init__(self, elicitations: Sequence[Any], message: str | None = None) -> None:
        pages = [{"mode": "url", "message": one.message, "url": one.url, "elicitationId": one.elicitation_id}
                 for one in elicitations]  # fmt: skip
        super().__init__(message or "the person must visit a page first", elicitations=pages)


class Client(Native):
    """A client whose list methods return results: `(await client.list_tools()).tools`."""

    async def list_tools(self, **options: Any) -> Any:
        """Return all tools, as `.tools`."""
        return ListToolsResult(tools=await super().list_tools(**options))

    async def list_prompts(self, **options: Any) -> Any:
        """Return all prompts, as `.prompts`."""
        return ListPromptsResult(prompts=await super().list_prompts(**options))

    async def list_resources(self, **options: Any) -> Any:
        """Return all resources, as `.resources`."""
        return ListResourcesResult(resources=await super().list_resources(**options))

    async def list_resource_templates(self, **options: Any) -> Any:
        """Return all resource templates, as `.resource_templates`."""
        return ListResourceTemplatesResult(resource_templates=await super().list_resource_templates(**options))

    async def initialize(self) -> None:
        """Do nothing: entering the client completes the handshake."""


def create_connected_server_and_client_session(server: Any, **options: Any) -> Client:
    """Return a client of a server in this process, to be used with `async with`."""
    return Client(server, **options)
