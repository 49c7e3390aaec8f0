"""A client on the official SDK 1.x (see login_story)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import login_story
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientMetadata


class Client:
    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self._session.list_tools()).tools]

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        return (await self._session.call_tool(name, arguments)).content[0].text


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Client]:
    user = login_story.User()

    async def callback() -> tuple[str, str | None]:
        found = user.callback()
        return found["code"], found["state"]

    metadata = OAuthClientMetadata(redirect_uris=[login_story.REDIRECT_URI], token_endpoint_auth_method="none")
    auth = OAuthClientProvider(url, metadata, login_story.Memory(), user.visit, callback)
    async with (
        create_mcp_http_client(auth=auth) as http,
        streamable_http_client(url, http_client=http) as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        yield Client(session)


if __name__ == "__main__":
    login_story.main(connect)
