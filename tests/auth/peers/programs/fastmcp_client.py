"""A client on FastMCP (see login_story). It opens `$BROWSER`, and listens for the callback itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import login_story
from fastmcp import Client as FastMcpClient
from fastmcp.client.auth import OAuth


class Client:
    def __init__(self, client: FastMcpClient[Any]) -> None:
        self._client = client

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self._client.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        return (await self._client.call_tool(name, arguments)).content[0].text


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Client]:
    async with FastMcpClient(url, auth=OAuth(callback_host="127.0.0.1")) as client:
        yield Client(client)


if __name__ == "__main__":
    login_story.main(connect)
