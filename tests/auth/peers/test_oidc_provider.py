"""A login at oidc-provider, with the parts of `accord.auth` alone."""

from __future__ import annotations

import asyncio

import pytest

from accord import CredentialStore, OAuth
from accord.auth.discovery import DiscoveryOptions, discover
from accord.auth.http import OAuthClient
from accord.auth.oauth import grant_settings
from accord.auth.registration import ClientIdentity
from accord.auth.steps import run_steps
from accord.auth.user_grants import DeviceGrant
from accord.errors import OAuthError
from accord.testing import AuthServer

from tests.auth.flow import REDIRECT_URI, log_in
from tests.auth.peers.browser import Browser
from tests.auth.peers.oidc import serving_oidc

DOCUMENT = "https://client.example/accord.json"


@pytest.mark.parametrize("by", ["registration", "metadata document", "client ID"])
async def test_a_user_logs_in_a_client_renews_and_revokes(by: str) -> None:
    common = {
        "redirect_uris": [REDIRECT_URI],
        "application_type": "native",
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
    }
    identity = {
        "registration": ClientIdentity(),
        "metadata document": ClientIdentity(metadata_url=DOCUMENT),
        "client ID": ClientIdentity(client_id="given"),
    }[by]
    async with AuthServer() as server:  # the MCP server; the user chooses another issuer than it names
        http, browser = OAuthClient(server.resource), Browser()
        with serving_oidc(
            resource=server.resource,
            clients=[{"client_id": "given", **common}],
            documents={DOCUMENT: {"client_id": DOCUMENT, "client_name": "accord", **common}},
        ) as provider:
            options = DiscoveryOptions(issuer=provider.issuer)
            login = await log_in(server.resource, http, browser.login, identity=identity, options=options)
            assert login.client.source == {"client ID": "given", "registration": "registered"}.get(by, by)
            assert browser.pages == 2, "the user logs in, and consents"
            assert (login.tokens.token_type, login.tokens.scopes) == ("Bearer", ["read", "write"])
            renewed = await login.refresh(http)
            assert renewed.tokens.refresh_token != login.tokens.refresh_token
            assert renewed.tokens.access_token != login.tokens.access_token
            assert await renewed.revoke(http)
            with pytest.raises(OAuthError, match="invalid_grant"):
                await renewed.refresh(http)
            await http.close()
    assert server.counts["token"] == 0, "no secret goes to another issuer"


async def test_reuse_of_a_refresh_token_ends_the_grant() -> None:
    async with AuthServer() as server:
        http = OAuthClient(server.resource)
        with serving_oidc() as provider:
            options = DiscoveryOptions(issuer=provider.issuer)
            first = await log_in(server.resource, http, Browser().login, options=options)
            second = await first.refresh(http)
            for stored in (first, second):
                with pytest.raises(OAuthError, match="invalid_grant"):
                    await stored.refresh(http)
            await http.close()


async def test_a_user_logs_in_on_another_device() -> None:
    shown: list[str] = []
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:  # after one request that is too early
            assert "Success" in await asyncio.to_thread(Browser().submit, shown[0])

    settings = OAuth(device=lambda page, code: shown.extend((page, code)))
    async with AuthServer() as server:
        http, store = OAuthClient(server.resource), CredentialStore(":memory:")
        await store.open()
        with serving_oidc() as provider:
            options = DiscoveryOptions(issuer=provider.issuer)
            discovery = await run_steps(discover(server.resource, None, options), http.send)
            login = await DeviceGrant(grant_settings(settings), server.resource, http, sleep=sleep).obtain(
                discovery, None, store
            )
        await http.close()
        await store.close()
    assert (login.client.source, len(waits)) == ("registered", 2)
    assert login.tokens.refresh_token is not None
    assert login.tokens.scopes == ["read", "write"]
