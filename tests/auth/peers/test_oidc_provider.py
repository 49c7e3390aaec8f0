"""A login at oidc-provider, with the parts of `accord.auth` alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from accord.auth.discovery import DiscoveryOptions
from accord.auth.http import OAuthClient
from accord.auth.registration import ClientIdentity
from accord.errors import OAuthError
from accord.testing import AuthServer

from tests.auth.flow import REDIRECT_URI, log_in
from tests.auth.peers.oidc import Browser

Oidc = Callable[..., AbstractAsyncContextManager[str]]
DOCUMENT = "https://client.example/accord.json"


@pytest.mark.parametrize("by", ["registration", "metadata document", "client ID"])
async def test_a_user_logs_in_a_client_renews_and_revokes(oidc: Oidc, by: str) -> None:
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
    async with (
        AuthServer() as server,  # the MCP server; the user chooses another issuer than it names
        oidc(
            resource=server.resource,
            clients=[{"client_id": "given", **common}],
            documents={DOCUMENT: {"client_id": DOCUMENT, "client_name": "accord", **common}},
        ) as issuer,
        Browser() as browser,
    ):
        http = OAuthClient(server.resource)
        try:
            login = await log_in(
                server.resource, http, browser.login, identity=identity, options=DiscoveryOptions(issuer=issuer)
            )
            assert login.client.source == {"client ID": "given", "registration": "registered"}.get(by, by)
            assert browser.pages == 2, "the user logs in, and consents"
            assert (login.tokens.token_type, login.tokens.scopes) == ("Bearer", ["read", "write"])
            renewed = await login.refresh(http)
            assert renewed.tokens.refresh_token != login.tokens.refresh_token
            assert renewed.tokens.access_token != login.tokens.access_token
            assert await renewed.revoke(http)
            with pytest.raises(OAuthError, match="invalid_grant"):
                await renewed.refresh(http)
        finally:
            await http.close()
    assert server.counts["token"] == 0, "no secret goes to another issuer"


async def test_reuse_of_a_refresh_token_ends_the_grant(oidc: Oidc) -> None:
    async with AuthServer() as server, oidc() as issuer, Browser() as browser:
        http = OAuthClient(server.resource)
        try:
            first = await log_in(server.resource, http, browser.login, options=DiscoveryOptions(issuer=issuer))
            second = await first.refresh(http)
            for stored in (first, second):
                with pytest.raises(OAuthError, match="invalid_grant"):
                    await stored.refresh(http)
        finally:
            await http.close()
