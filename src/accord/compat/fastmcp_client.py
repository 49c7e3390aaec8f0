"""FastMCP's `Client`: accord's own, with the shapes of its results."""

# mypy: disable-error-code="override"
# The words of another library are taken in the place of accord's own: that is what this is for.

from __future__ import annotations

from typing import Any

from accord.client.answers import ToolResult
from accord.client.client import Client as Native
from accord.errors import ToolError


class Client(Native):
    """A client whose `call_tool` raises `ToolError` where a tool failed, and whose `read_resource` gives a list."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None, *, raise_on_error: bool = True, **options: Any
    ) -> ToolResult:
        """Call a tool. Raises `ToolError` unless `raise_on_error` is false."""
        result = await super().call_tool(name, arguments, **options)
        if result.is_error and raise_on_error:
            raise ToolError(result.text)
        return result

    async def read_resource(self, uri: Any, **options: Any) -> Any:
        """What a resource holds, as a list."""
        return (await super().read_resource(str(uri), **options)).contents
