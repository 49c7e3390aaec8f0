"""`mcp._tool_manager` of the official SDK: private there, and used by programs that look at their own tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from accord.messages.revision import LATEST, RULES
from accord.messages.tools import ToolAnnotations
from accord.server.server import Server


class RegisteredTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of a server, as the manager has it."""

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
        """All of them."""
        found = []
        for offer in self._server.registry.tools.values():
            about = offer.define(RULES[LATEST])
            found.append(
                RegisteredTool(
                    name=about.name,
                    fn=offer.function,
                    title=about.title,
                    description=about.description or "",
                    parameters=about.input_schema,
                    output_schema=about.output_schema,
                    annotations=about.annotations,
                    is_async=offer.is_async,
                )
            )
        return found

    def get_tool(self, name: str) -> RegisteredTool | None:
        """The tool of that name."""
        return self._tools.get(name)

    def add_tool(self, fn: Callable[..., Any], **about: Any) -> RegisteredTool:
        """Offer a function as a tool."""
        self._server.add_tool(fn, **about)  # type: ignore[arg-type]  # that of the adapted server takes a function
        return self.list_tools()[-1]

    def remove_tool(self, name: str) -> None:
        """Offer a tool no longer."""
        self._server.remove_tool(name)

    async def call_tool(self, name: str, arguments: dict[str, Any], *_: Any, **__: Any) -> Any:
        """The result of a tool, as a client in this process gets it."""
        return await self._server.call_tool(name, arguments)  # type: ignore[attr-defined]
