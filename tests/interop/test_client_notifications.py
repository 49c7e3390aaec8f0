"""accord's client hears what other people's servers tell of, over stdio and HTTP: logs, changes, completions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from accord import REVISIONS, Client
from accord.client.subscription import ListChanged, ResourceUpdated

from tests.interop.peers import npm_server, peer_server
from tests.interop.serving import serving

SECONDS = 150


@pytest.fixture(scope="module", params=["stdio", "mcp"])
def telling(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The target of a server that tells."""
    command = peer_server("mcp2", "notifications")
    if request.param == "stdio":
        yield command
        return
    with serving([*command, request.param]) as server:
        yield f"{server.url}/{request.param}"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_official_sdk_completes_and_logs(telling: Any, revision: str) -> None:
    logged: list[Any] = []

    def log(message: Any) -> None:
        logged.append((message.level, message.data))

    async with asyncio.timeout(SECONDS), Client(telling, revisions=[revision], on_log=log) as client:
        found = await client.complete(prompt="plan", argument="city", value="O")
        assert (found.values, found.total) == (["Oslo", "Osaka"], 2)
        await client.call_tool("change")
        await client.ping()
        assert logged == [("info", "changed")]


async def test_the_official_sdk_notifies_of_changes_in_2026(telling: Any) -> None:
    async with asyncio.timeout(SECONDS), Client(telling, revisions=[REVISIONS[-1]]) as client:
        async with client.subscribe("notes://today", tools=True) as subscription:
            assert subscription.granted == subscription.wish
            await client.call_tool("change")
            assert [await anext(subscription) for _ in range(2)] == [
                ResourceUpdated("notes://today"),
                ListChanged("tools"),
            ]
        await client.call_tool("change")
        assert [event async for event in subscription] == []


async def test_everything_completes_updates_and_logs() -> None:
    updated = "demo://resource/dynamic/text/1"
    logged: list[Any] = []
    options: dict[str, Any] = {"on_log": logged.append, "log_level": "debug"}
    async with asyncio.timeout(SECONDS), Client(npm_server("everything"), **options) as client:
        name = await client.complete(
            prompt="completable-prompt", argument="name", value="A", context={"department": "Engineering"}
        )
        assert name.values == ["Alice"]
        async with client.subscribe(updated, tools=True) as subscription:
            assert subscription.uris == [updated]
            await client.call_tool("toggle-subscriber-updates")
            assert await anext(subscription) == ResourceUpdated(updated)
        assert any("Received Subscribe Resource request" in str(message.data) for message in logged)
