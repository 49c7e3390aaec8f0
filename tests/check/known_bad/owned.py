"""A server on the official SDK 1.x with two users, each with a token, and a tool that runs as a task."""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.fastmcp import FastMCP
from mcp.types import CallToolResult, TextContent, Tool, ToolExecution

import http_arguments

USERS = {"key-of-ann-0123456789": "ann", "key-of-ben-0123456789": "ben"}
REST = 0.2
"""In seconds."""


class Users:
    """Knows the users by their tokens."""

    async def verify_token(self, token: str) -> AccessToken | None:
        user = USERS.get(token)
        return None if user is None else AccessToken(token=token, client_id=user, scopes=[])


way = http_arguments.asked()
assert way is not None, "it is served over HTTP"
server = FastMCP(
    "owned",
    host=way.host,
    port=way.port,
    token_verifier=Users(),
    auth=AuthSettings(issuer_url="https://login.example", resource_server_url=f"http://{way.host}:{way.port}/mcp"),
)
handlers = server._mcp_server
handlers.experimental.enable_tasks()


@handlers.list_tools()
async def tools() -> list[Tool]:
    """Its only tool."""
    return [Tool(name="rest", inputSchema={"type": "object"}, execution=ToolExecution(taskSupport="required"))]


@handlers.call_tool()
async def call(name: str, arguments: dict[str, Any]) -> Any:
    """Take a rest, as a task."""

    async def rest(task: Any) -> CallToolResult:
        await anyio.sleep(REST)
        return CallToolResult(content=[TextContent(type="text", text="rested")])

    return await handlers.request_context.experimental.run_task(rest)


if __name__ == "__main__":
    server.run("streamable-http")
