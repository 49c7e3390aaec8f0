"""accord's client gives up a call over HTTP, and servers on the official Python SDKs stop working on it."""

from __future__ import annotations

import asyncio

import pytest

from accord import Client

from tests.interop.peers import Sdk, peer_server
from tests.interop.serving import serving

SECONDS = 150

SPOKEN: list[tuple[Sdk, str, str]] = [
    ("mcp2", "mcp", "2026-07-28"),  # that the response is closed says it; in the others a notification does
    ("mcp2", "mcp", "2025-11-25"),
    ("mcp1", "mcp", "2025-11-25"),
    ("mcp1", "sse", "2025-11-25"),
]
"""A server, the way to it, and the revision."""


@pytest.mark.parametrize(("sdk", "way", "revision"), SPOKEN)
async def test_a_call_that_is_given_up_is_cancelled_in_the_server(sdk: Sdk, way: str, revision: str) -> None:
    with serving([*peer_server(sdk, "slow"), way]) as server:
        client = Client(f"{server.url}/{way}", revisions=[revision])
        async with asyncio.timeout(SECONDS), client:
            call = asyncio.create_task(client.call_tool("wait"))
            assert (await client.call_tool("begun")).data == "begun"
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert (await client.call_tool("ended")).data == "cancelled"
