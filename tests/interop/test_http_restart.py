"""accord's client over HTTP finds servers on the official Python SDKs again, once they were restarted."""

from __future__ import annotations

import asyncio

import pytest

from accord import Client
from accord.errors import ConnectionLost, NotExecuted

from tests.interop.peers import Sdk, peer_server
from tests.interop.serving import free_port, serving

SECONDS = 150


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
