"""A peer client on the official SDK 2.x (see story)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp.client.session
from mcp.client.client import Client as McpClient
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

import story


class Client:
    def __init__(self, client: McpClient) -> None:
        self.client = client

    def opened(self) -> story.Opened:
        client = self.client
        return story.Opened(
            client.protocol_version, client.server_info, client.server_capabilities, client.instructions
        )

    async def ping(self) -> None:
        await self.client.session.send_ping()

    async def page(self, kind: str, cursor: str | None) -> Any:
        client = self.client
        lists = {
            "tools": client.list_tools,
            "resources": client.list_resources,
            "resourceTemplates": client.list_resource_templates,
            "prompts": client.list_prompts,
        }
        return await lists[kind](cursor=cursor)

    async def call(self, name: str, arguments: dict[str, Any], progress: story.Progress) -> Any:
        return await self.client.call_tool(name, arguments, progress_callback=progress)

    async def read(self, uri: str) -> Any:
        return await self.client.read_resource(uri)

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        return await self.client.get_prompt(name, arguments)


@asynccontextmanager
async def connect(target: story.Target, revision: str | None) -> AsyncIterator[Client]:
    async with McpClient(server_at(target), mode=mode_for(revision)) as client:
        yield Client(client)


def server_at(target: story.Target) -> Any:
    """What the SDK's client is given."""
    if target.url:
        return sse_client(target.url) if target.sse else target.url
    return StdioServerParameters(command=target.command[0], args=target.command[1:])


def mode_for(revision: str | None) -> str:
    if revision is None or revision in MODERN_PROTOCOL_VERSIONS:
        return revision or "auto"
    mcp.client.session.LATEST_HANDSHAKE_VERSION = revision  # what initialize asks for; the SDK has no setting
    return "legacy"


if __name__ == "__main__":
    story.main("mcp", connect)
