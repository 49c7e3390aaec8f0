"""A peer client on the official SDK 1.x (see story)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl

import story


class Client:
    def __init__(self, session: ClientSession, result: types.InitializeResult) -> None:
        self.session = session
        self.result = result

    def opened(self) -> story.Opened:
        result = self.result
        return story.Opened(str(result.protocolVersion), result.serverInfo, result.capabilities, result.instructions)

    async def ping(self) -> None:
        await self.session.send_ping()

    async def page(self, kind: str, cursor: str | None) -> Any:
        session = self.session
        lists = {
            "tools": session.list_tools,
            "resources": session.list_resources,
            "resourceTemplates": session.list_resource_templates,
            "prompts": session.list_prompts,
        }
        return await lists[kind](params=types.PaginatedRequestParams(cursor=cursor))

    async def call(self, name: str, arguments: dict[str, Any], progress: story.Progress) -> Any:
        return await self.session.call_tool(name, arguments, progress_callback=progress)

    async def read(self, uri: str) -> Any:
        return await self.session.read_resource(AnyUrl(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        return await self.session.get_prompt(name, arguments)


@asynccontextmanager
async def connect(target: story.Target, revision: str | None) -> AsyncIterator[Client]:
    if revision:
        types.LATEST_PROTOCOL_VERSION = revision  # what initialize asks for; the SDK has no setting
    async with streams_to(target) as streams, ClientSession(*streams[:2]) as session:
        yield Client(session, await session.initialize())


def streams_to(target: story.Target) -> Any:
    """What the SDK's session reads from and writes to, while it is open."""
    if target.url:
        return sse_client(target.url) if target.sse else streamable_http_client(target.url)
    return stdio_client(StdioServerParameters(command=target.command[0], args=target.command[1:]))


if __name__ == "__main__":
    story.main("mcp", connect)
