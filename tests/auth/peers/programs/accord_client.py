"""accord's client (see login_story). `$ISSUER` is the authorization server that the user chose, if any."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import login_story
from browser import Browser

from accord import Client as AccordClient, CredentialStore, OAuth


class Client:
    def __init__(self, client: AccordClient) -> None:
        self._client = client

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self._client.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        return (await self._client.call_tool(name, arguments)).text


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Client]:
    store, issuer = CredentialStore(":memory:"), os.environ.get("ISSUER")
    async with AccordClient(url, auth=OAuth(authorize=Browser().login, store=store, issuer=issuer)) as client:
        yield Client(client)


if __name__ == "__main__":
    login_story.main(connect)
