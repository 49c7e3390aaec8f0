"""accord's client over HTTP with servers on the official Python SDKs that change: lists, resources, and the process."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from accord import REVISIONS, Client
from accord.client.subscription import ListChanged, ResourceUpdated
from accord.errors import ConnectionLost, NotExecuted

from tests.interop.peers import Sdk, peer_server
from tests.interop.serving import free_port, serving

SECONDS = 50


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_official_sdk_completes_and_logs(revision: str) -> None:
    logged: list[Any] = []
    with serving([*peer_server("mcp2", "telling"), "mcp"]) as server:
        client = Client(f"{server.url}/mcp", revisions=[revision], on_log=logged.append)
        async with asyncio.timeout(SECONDS), client:
            found = await client.complete(prompt="plan", argument="city", value="O")
            assert (found.values, found.total) == (["Oslo", "Osaka"], 2)
            await client.call_tool("change")
            await client.ping()
            assert [(message.level, message.data) for message in logged] == [("info", "changed")]


async def test_the_official_sdk_tells_of_changes_in_2026() -> None:
    with serving([*peer_server("mcp2", "telling"), "mcp"]) as server:
        async with asyncio.timeout(SECONDS), Client(f"{server.url}/mcp", revisions=[REVISIONS[-1]]) as client:
            async with client.subscribe("notes://today", tools=True) as subscription:
                assert subscription.granted == subscription.wish
                await client.call_tool("change")
                assert [await anext(subscription) for _ in range(2)] == [
                    ResourceUpdated("notes://today"),
                    ListChanged("tools"),
                ]
            await client.call_tool("change")
            assert [event async for event in subscription] == []


@pytest.mark.parametrize("sdk", ["mcp2", "mcp1"])
async def test_a_server_that_was_restarted_is_found_again(sdk: Sdk) -> None:
    command, port = [*peer_server(sdk), "mcp"], free_port()
    with serving(command, port) as server:
        async with asyncio.timeout(SECONDS), Client(f"{server.url}/mcp") as client:
            assert (await client.call_tool("echo", {"text": "before"})).data == "before"
            server.end()
            with pytest.raises((NotExecuted, ConnectionLost)):
                await client.call_tool("echo", {"text": "meanwhile"})
            with serving(command, port):
                assert (await client.call_tool("echo", {"text": "after"})).data == "after"
