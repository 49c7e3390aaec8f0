"""The official conformance suite for authorization servers, against `OAuthProxy` over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urljoin

import aiohttp

from accord import OAuthProxy, Server
from accord.testing import AuthServer
from accord.testing.http import served_over_http

from tests.auth.peers.browser import Browser
from tests.conformance.suite import AUTHORIZATION_SCENARIOS, play_authorization_server
from tests.interop.serving import free_port

SECRET = "secret-of-the-shop"


async def whose(token: str) -> str:
    return "alice"


def behind(provider: AuthServer, database: Path) -> Server:
    provider.add_client("shop", SECRET, redirect_uris=["http://127.0.0.1/callback"])
    auth = OAuthProxy(
        authorize=f"{provider.issuer}/authorize",
        token=f"{provider.issuer}/token",
        client_id="shop",
        client_secret=SECRET,
        verify=whose,
        scopes=("read",),
        database=database,
    )
    return Server("shop", auth=auth)


async def test_both_scenarios_of_authorization_servers_pass(tmp_path: Path) -> None:
    port = free_port()
    async with AuthServer(jwt=False) as provider:
        with served_over_http(behind(provider, tmp_path / "proxy.db")) as resource:
            issuer = urljoin(resource, "/").rstrip("/")
            client = {
                "redirect_uris": [f"http://127.0.0.1:{port}/callback"],
                "client_name": "the conformance suite",
                "token_endpoint_auth_method": "none",
            }
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"{issuer}/register", json=client) as response,
            ):
                client_id = (await response.json())["client_id"]
            browser = Browser()
            found = await asyncio.to_thread(
                play_authorization_server,
                issuer,
                client_id,
                resource,
                port,
                lambda url: browser.get(browser.visit(url)),
            )
    assert [fault for played in found for fault in played.faults()] == []
    assert {played.scenario for played in found} == {*AUTHORIZATION_SCENARIOS}
    assert browser.pages == 1, "the consent page"
