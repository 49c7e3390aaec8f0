"""A peer client on the official SDK 1.x whose calls last (see sessions_story)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client

import sessions_story


class Client:
    def __init__(self, session: ClientSession, revision: str) -> None:
        self.session = session
        self.revision = revision
        self.ids: dict[str, int] = {}

    async def call(self, name: str) -> Any:
        self.ids[name] = self.session._request_id  # the SDK says it nowhere, and never cancels by itself
        return await self.session.call_tool(name, {})

    async def cancel(self) -> None:
        params = types.CancelledNotificationParams(requestId=self.ids["wait"], reason="given up")
        await self.session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))


@asynccontextmanager
async def connect(url: str, revision: str | None) -> AsyncIterator[Client]:
    async with streamable_http_client(url) as streams, ClientSession(*streams[:2]) as session:
        yield Client(session, str((await session.initialize()).protocolVersion))


if __name__ == "__main__":
    sessions_story.main(connect)
