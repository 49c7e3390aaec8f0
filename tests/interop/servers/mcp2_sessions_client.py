"""A peer client on the official SDK 2.x whose calls last (see sessions_story)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.client.client import Client as McpClient

import sessions_story
from mcp2_client import mode_for


class Client:
    def __init__(self, client: McpClient) -> None:
        self.client = client
        self.revision = client.protocol_version

    async def call(self, name: str) -> Any:
        return await self.client.call_tool(name, {})

    async def cancel(self) -> None:
        pass


@asynccontextmanager
async def connect(url: str, revision: str | None) -> AsyncIterator[Client]:
    async with McpClient(url, mode=mode_for(revision)) as client:
        yield Client(client)


if __name__ == "__main__":
    sessions_story.main(connect)
