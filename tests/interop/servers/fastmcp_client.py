"""A peer client on FastMCP (see story)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp.client.session
from fastmcp import Client as FastMcpClient
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

import story


class Client:
    def __init__(self, client: FastMcpClient[Any]) -> None:
        self.client = client

    def opened(self) -> story.Opened:
        client = self.client
        return story.Opened(
            client.protocol_version, client.server_info, client.server_capabilities, client.instructions
        )

    async def ping(self) -> None:
        await self.client.ping()

    async def page(self, kind: str, cursor: str | None) -> Any:
        client = self.client
        lists = {
            "tools": client.list_tools_mcp,
            "resources": client.list_resources_mcp,
            "resourceTemplates": client.list_resource_templates_mcp,
            "prompts": client.list_prompts_mcp,
        }
        return await lists[kind](cursor=cursor)

    async def call(self, name: str, arguments: dict[str, Any], progress: story.Progress) -> Any:
        return await self.client.call_tool_mcp(name, arguments, progress_handler=progress)

    async def read(self, uri: str) -> Any:
        return await self.client.read_resource_mcp(uri)

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        return await self.client.get_prompt_mcp(name, arguments)


@asynccontextmanager
async def connect(target: story.Target, revision: str | None) -> AsyncIterator[Client]:
    async with FastMcpClient(server_at(target), mode=mode_for(revision)) as client:
        yield Client(client)


def server_at(target: story.Target) -> Any:
    """The SDK's transport."""
    if target.url:
        return SSETransport(target.url) if target.sse else StreamableHttpTransport(target.url)
    return StdioTransport(target.command[0], target.command[1:], keep_alive=False)


def mode_for(revision: str | None) -> str:
    if revision is None or revision in MODERN_PROTOCOL_VERSIONS:
        return revision or "auto"
    mcp.client.session.LATEST_HANDSHAKE_VERSION = revision  # what initialize asks for; there is no setting
    return "legacy"


if __name__ == "__main__":
    story.main("fastmcp", connect)
