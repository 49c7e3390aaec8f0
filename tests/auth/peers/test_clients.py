"""Users of other clients (programs/login_story.py) at servers of accord with the logins of oidc-provider.

The official SDKs and FastMCP register only the scopes that they know of at first. provider.mjs lets them request others
later, as most authorization servers do; oidc-provider by itself would refuse their step-up.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from accord import Client
from accord.client.target import Command

from tests.auth.peers.oidc import BROWSER, Place, client_command, play
from tests.interop.peers import SDKS, npm_program
from tests.interop.serving import free_port

CLIENTS = (*SDKS, "ts2", "accord")


@pytest.mark.parametrize("sdk", CLIENTS)
def test_a_user_logs_in_calls_refreshes_and_steps_up(sdk: str, place: Place) -> None:
    before = len(place.provider.grants)
    seen = play(client_command(sdk, place), place)
    assert seen == {"tools": ["who", "write_note"], "calls": ["alice", "alice", "wrote milk"]}
    grants = place.provider.grants[before:]
    assert [each.grant for each in grants] == ["authorization_code", "refresh_token", "authorization_code"]
    assert grants[-1].scope == "read write"


def test_a_client_that_refreshes_where_it_should_step_up_is_refused_once_more(place: Place) -> None:
    """The TypeScript SDK 1.32 uses its refresh token if a call needs more scopes, so that it never gets them."""
    before = len(place.provider.grants)
    seen = play(client_command("ts1", place), place)
    error = "Streamable HTTP error: Server returned 403 after trying upscoping"
    assert seen == {"tools": ["who", "write_note"], "calls": ["alice", "alice", error]}
    grants = place.provider.grants[before:]
    assert [each.grant for each in grants] == ["authorization_code", "refresh_token", "refresh_token"]


@pytest.mark.parametrize("sdk", CLIENTS)
def test_a_user_logs_in_calls_refreshes_and_steps_up_at_a_proxy(sdk: str, proxy: Place) -> None:
    before = len(proxy.provider.grants)
    seen = play(client_command(sdk, proxy), proxy)
    assert seen == {"tools": ["who", "write_note"], "calls": ["alice", "alice", "wrote milk"]}
    grants = proxy.provider.grants[before:]
    assert [each.grant for each in grants] == ["authorization_code", "refresh_token", "authorization_code"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the bridge takes no notice of $BROWSER")
async def test_a_user_behind_the_bridge_mcp_remote_does_so_too(place: Place, tmp_path: Path) -> None:
    environment = {**os.environ, "BROWSER": BROWSER.removesuffix(" &"), "MCP_REMOTE_CONFIG_DIR": str(tmp_path)}
    bridge = [*npm_program("mcp-remote"), place.url, str(free_port()), "--host", "127.0.0.1"]
    before = len(place.provider.grants)
    async with Client(Command(tuple(bridge), env=environment)) as client:
        assert [tool.name for tool in await client.list_tools()] == ["who", "write_note"]
        assert (await client.call_tool("who")).text == "alice"
        place.provider.advance(700)
        assert (await client.call_tool("who")).text == "alice"
        assert (await client.call_tool("write_note", {"text": "milk"})).text == "wrote milk"
    grants = place.provider.grants[before:]
    assert [each.grant for each in grants] == ["authorization_code", "refresh_token", "authorization_code"]
