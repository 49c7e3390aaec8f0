"""`mcp._tool_manager` of the official SDK: private there, but used by programs that inspect their own tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from accord.messages.revision import LATEST, RULES
from accord.messages.tools import ToolAnnotations
from accord.server.server import Server


class RegisteredTool(msgspec.Struct, frozen=True, kw_only=True):
    """A registered tool, as the tool manager returns it."""

    name: str
    fn: Callable[..., Any]
    title: str | None = None
    description: str = ""
    parameters: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: ToolAnnotations | None = None
    is_async: bool = False


class ToolManager:
    """The tools of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def _tools(self) -> Mapping[str, RegisteredTool]:
        return {tool.name: tool for tool in self.list_tools()}

    def list_tools(self) -> list[RegisteredTool]:
        """Return all tools."""
        registered = []
        for entry in self._server.registry.tools.values():
            definition = entry.define(RULES[LATEST])
            registered.append(
                RegisteredTool(
                    name=definition.name,
                    fn=entry.function,
                    title=definition.title,
                    description=definition.description or "",
                    parameters=definition.input_schema,
                    output_schema=definition.output_schema,
                    annotations=definition.annotations,
                    is_async=entry.is_async,
                )
            )
        return registered

    def get_tool(self, name: str) -> RegisteredTool | None:
        """Return the tool with this name, or None."""
        return self._tools.get(name)

    def add_tool(self, fn: Callable[..., Any], **options: Any) -> RegisteredTool:
        """Register a function as a tool."""
        self._server.add_tool(fn, **options)  # type: ignore[arg-type]  # that of the adapted server takes a function
        return self.list_tools()[-1]

    def remove_tool(self, name: str) -> None:
        """Remove a tool."""
        self._server.remove_tool(name)

    async def call_tool(self, name: str, arguments: dict[str, Any], *_: Any, **__: Any) -> Any:
        """Return the result of a tool, as a client in this process receives it."""
        return await self._server.call_tool(name, arguments)  # type: ignore[attr-defined]
