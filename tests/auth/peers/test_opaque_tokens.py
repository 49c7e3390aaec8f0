"""Opaque tokens of oidc-provider, which `Introspection` verifies."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accord import Client, Context, CredentialStore, OAuth, Server
from accord.auth.client_authentication import SecretAuthentication
from accord.auth.http import OAuthClient
from accord.auth.login import Login
from accord.auth.steps import run_steps
from accord.auth.tokens import revoke_token
from accord.server.auth.introspection import Introspection
from accord.server.auth.refusals import InvalidToken

from tests.auth.peers.browser import Browser
from tests.auth.peers.oidc import Provider, serving_oidc
from tests.auth.place import stored
from tests.server.auth.issuer import Sent
from tests.server.http.raw import served

RESOURCE = "http://127.0.0.1/mcp"
SECRET = "secret-of-the-shop/+ %"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    shop = {"client_id": "shop", "client_secret": SECRET, "redirect_uris": [], "grant_types": [], "response_types": []}
    with serving_oidc(opaque=True, dpop=False, clients=[shop]) as provider:
        yield provider


def introspection(provider: Provider, **options: Any) -> Introspection:
    return Introspection(provider.issuer, client_id="shop", client_secret=SECRET, **{"audience": RESOURCE, **options})


@asynccontextmanager
async def logged_in(provider: Provider, folder: Path) -> AsyncIterator[tuple[Client, Login]]:
    """Yield a client whose user has logged in to a server with `Introspection`, and the login."""
    server = Server("desk", auth=introspection(provider))

    @server.tool
    def who(ctx: Context) -> str:
        """Return the user and the scopes."""
        assert ctx.principal is not None
        return f"{ctx.principal.claims['sub']}: {' '.join(sorted(ctx.principal.scopes))}"

    store = CredentialStore(folder / "credentials.db")
    auth = OAuth(authorize=Browser().login, store=store, resource=RESOURCE, scopes=["read"])
    async with served(server.app) as socket, Client(f"http://127.0.0.1:{socket.port}/mcp", auth=auth) as client:
        yield client, await stored(store)


async def test_an_opaque_token_has_a_user_and_scopes(provider: Provider, tmp_path: Path) -> None:
    async with logged_in(provider, tmp_path) as (client, login):
        assert (await client.call_tool("who")).text == "alice: read"
        assert "." not in login.tokens.access_token


async def test_a_revoked_token_is_refused_after_a_minute(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth = introspection(provider)
    async with logged_in(provider, tmp_path) as (_, login):
        request = Sent(login.tokens.access_token)
        assert (await auth.authenticate(request)).scopes == {"read"}
        http = OAuthClient(login.discovery.server)
        steps = revoke_token(
            login.discovery.metadata, SecretAuthentication(login.client), login.tokens.access_token, "access_token"
        )
        assert await run_steps(steps, http.send)
        await http.close()
        with pytest.raises(InvalidToken):
            await introspection(provider).authenticate(request)
        begun = time.time()
        for seconds in (0, 55):
            monkeypatch.setattr("accord.server.auth.token_cache.time", SimpleNamespace(time=lambda: begun + seconds))  # noqa: B023
            assert await auth.authenticate(request)
        monkeypatch.setattr("accord.server.auth.token_cache.time", SimpleNamespace(time=lambda: begun + 61))
        with pytest.raises(InvalidToken):
            await auth.authenticate(request)


async def test_a_refresh_token_is_no_access_token(provider: Provider, tmp_path: Path) -> None:
    """The issuer describes it as active all the same."""
    async with logged_in(provider, tmp_path) as (_, login):
        with pytest.raises(InvalidToken, match="another server"):
            await introspection(provider).authenticate(Sent(login.tokens.refresh_token))


async def test_a_token_for_another_server_is_refused(provider: Provider, tmp_path: Path) -> None:
    async with logged_in(provider, tmp_path) as (_, login):
        other = introspection(provider, audience="https://other.example/mcp")
        with pytest.raises(InvalidToken, match="another server"):
            await other.authenticate(Sent(login.tokens.access_token))
