"""Tokens of `OAuthProxy`: rotation, revocation, the provider's tokens behind them, and what is on the disk."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from accord.errors import StoreError
from accord.testing import AuthServer

from tests.server.auth.proxy.proxying import ISSUER, KEY, Clock, Proxied, proxied, send


async def renewed(shop: Proxied, tokens: dict[str, Any]) -> dict[str, Any]:
    reply = await shop.refresh(tokens)
    assert reply.status == 200, reply.text
    return {**reply.json(), "client_id": tokens["client_id"]}


def contents(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def upstream_token(shop: Proxied, tokens: dict[str, Any]) -> str:
    reply = await shop.call(tokens["access_token"], "upstream")
    result = reply.json()["result"]
    assert not result.get("isError"), result
    text: str = result["content"][0]["text"]
    return text


# --- rotation --------------------------------------------------------------------------------------------------------


async def test_a_refresh_token_is_replaced_at_each_use() -> None:
    async with proxied() as shop:
        first = await shop.tokens()
        second = await renewed(shop, first)
        third = await renewed(shop, second)
        assert len({each["refresh_token"] for each in (first, second, third)}) == 3
        assert len({each["access_token"] for each in (first, second, third)}) == 3
        for each in (first, second, third):
            assert (await shop.call(each["access_token"])).status == 200


async def test_for_30_s_the_old_refresh_token_returns_the_same_successor(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxied(monkeypatch=monkeypatch) as shop:
        first = await shop.tokens()
        second = await renewed(shop, first)
        shop.clock.ahead += 15
        third = await renewed(shop, second)
        shop.clock.ahead += 14
        again = await renewed(shop, first)
        assert (again["refresh_token"], again["access_token"]) == (second["refresh_token"], second["access_token"])
        assert (await renewed(shop, second))["refresh_token"] == third["refresh_token"]
        assert again["expires_in"] < second["expires_in"]


async def test_parallel_refreshes_have_one_successor() -> None:
    async with proxied() as shop:
        first = await shop.tokens()
        found = await asyncio.gather(*(renewed(shop, first) for _ in range(20)))
        assert len({each["refresh_token"] for each in found}) == 1
        assert len({each["access_token"] for each in found}) == 1


async def test_later_use_of_a_replaced_refresh_token_ends_the_grant(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxied(monkeypatch=monkeypatch) as shop:
        first = await shop.tokens()
        second = await renewed(shop, first)
        assert (await shop.call(second["access_token"])).status == 200
        shop.clock.ahead += 31
        assert (await shop.refresh(first)).json()["error"] == "invalid_grant"
        assert (await shop.refresh(second)).json()["error"] == "invalid_grant"
        assert (await shop.call(second["access_token"])).status == 401


async def test_tokens_and_logins_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxied(monkeypatch=monkeypatch, token_seconds=600, session_seconds=3_600) as shop:
        tokens = await shop.tokens()
        assert tokens["expires_in"] == 600
        shop.clock.ahead += 599
        assert (await shop.call(tokens["access_token"])).status == 200
        shop.clock.ahead += 2
        assert (await shop.call(tokens["access_token"])).status == 401
        tokens = await renewed(shop, tokens)
        shop.clock.ahead += 3_601
        assert (await shop.refresh(tokens)).json()["error"] == "invalid_grant"


async def test_a_code_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxied(monkeypatch=monkeypatch) as shop:
        client = (await shop.register())["client_id"]
        login, code = await shop.authorize(client)
        shop.clock.ahead += 61
        reply = await shop.post("/token", shop.redeeming(client, login, code))
        assert reply.json()["error"] == "invalid_grant"


async def test_a_consent_page_and_a_login_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxied(monkeypatch=monkeypatch) as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        page = await browser.open(shop.login(client).url)
        callback = shop.at_provider(await shop.consent(browser, shop.login(client)))
        shop.clock.ahead += 601
        assert (await browser.decide(page)).status == 400
        assert (await browser.open(callback)).status == 400


# --- revocation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
async def test_revocation_takes_effect_at_once(kind: str) -> None:
    async with proxied() as shop:
        tokens, other = await shop.tokens(), await shop.tokens()
        for each in (tokens, other):
            assert (await shop.call(each["access_token"])).status == 200
        reply = await shop.post("/revoke", {"token": tokens[kind], "client_id": tokens["client_id"]})
        assert reply.status == 200
        assert (await shop.call(tokens["access_token"])).status == 401
        assert (await shop.refresh(tokens)).json()["error"] == "invalid_grant"
        assert (await shop.call(other["access_token"])).status == 200


async def test_a_client_cannot_revoke_tokens_of_another() -> None:
    async with proxied() as shop:
        tokens, other = await shop.tokens(), await shop.register()
        reply = await shop.post("/revoke", {"token": tokens["refresh_token"], "client_id": other["client_id"]})
        assert reply.status == 200, "RFC 7009, 2.2: invalid tokens do not cause an error response"
        assert (await shop.call(tokens["access_token"])).status == 200


async def test_revocation_reaches_the_provider() -> None:
    async with (
        AuthServer(jwt=False) as provider,
        proxied(provider=provider, revoke=f"{provider.issuer}/revoke") as shop,
    ):
        tokens = await shop.tokens()
        await shop.post("/revoke", {"token": tokens["access_token"], "client_id": tokens["client_id"]})
        assert provider.counts["revocation"] == 1
        assert all(token.authorization.revoked for token in provider._tokens.tokens.values())


async def test_no_token_is_accepted_after_a_revocation_amid_calls_and_refreshes() -> None:
    async with proxied() as shop:
        for _ in range(10):
            first = await shop.tokens()
            live = [first]

            async def call(live: list[dict[str, Any]] = live) -> None:
                for each in range(5):
                    await shop.call(live[each % len(live)]["access_token"])

            async def refresh(live: list[dict[str, Any]] = live) -> None:
                reply = await shop.refresh(live[-1])
                if reply.status == 200:
                    live.append({**live[0], **reply.json()})

            async def revoke(tokens: dict[str, Any] = first) -> None:
                await shop.post("/revoke", {"token": tokens["access_token"], "client_id": tokens["client_id"]})

            await asyncio.gather(*(call() for _ in range(5)), refresh(), call(), revoke(), refresh(), call())
            for each in live:
                assert (await shop.call(each["access_token"])).status == 401
                assert (await shop.refresh(each)).status == 400


# --- the provider's tokens -------------------------------------------------------------------------------------------


async def test_the_providers_token_is_renewed_before_a_handler_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = AuthServer(jwt=False, lifetime=300)
    async with provider, proxied(monkeypatch=monkeypatch, provider=provider) as shop:
        provider._tokens.clock = shop.clock
        tokens = await shop.tokens()
        before = await upstream_token(shop, tokens)
        assert await upstream_token(shop, tokens) == before
        assert provider.counts["token"] == 1
        shop.clock.ahead += 301
        found = await asyncio.gather(*(upstream_token(shop, tokens) for _ in range(20)))
        assert len({before, *found}) == 2
        assert provider.counts["token"] == 2, "one renewal for all"
        assert await upstream_token(shop, tokens) == found[0]


async def test_a_login_that_has_ended_at_the_provider_ends_here(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = AuthServer(jwt=False, lifetime=300)
    async with provider, proxied(monkeypatch=monkeypatch, provider=provider) as shop:
        provider._tokens.clock = shop.clock
        tokens = await shop.tokens()
        shop.clock.ahead += 301
        provider.revoke_all()
        reply = await shop.call(tokens["access_token"], "upstream")
        assert reply.json()["result"]["isError"]
        assert (await shop.call(tokens["access_token"])).status == 401
        assert (await shop.refresh(tokens)).json()["error"] == "invalid_grant"


async def test_the_provider_confirms_the_user_at_each_refresh() -> None:
    allowed = {"ann"}

    async def verify(token: str) -> dict[str, Any]:
        from accord.http import Forbidden

        if not allowed:
            raise Forbidden("no access any more")
        return {"sub": next(iter(allowed)), "scope": "read"}

    async with proxied(verify=verify) as shop:
        tokens = await renewed(shop, await shop.tokens())
        assert tokens["scope"] == "read"
        allowed.clear()
        assert (await shop.refresh(tokens)).json()["error"] == "invalid_grant"
        assert (await shop.call(tokens["access_token"])).status == 401
        allowed.add("ann")
        tokens = await shop.tokens()
        allowed.clear()
        allowed.add("bob")
        assert (await shop.refresh(tokens)).json()["error"] == "invalid_grant", "the tokens are another user's"


async def test_a_refresh_token_stays_valid_while_the_provider_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = AuthServer(jwt=False, lifetime=300)
    async with provider, proxied(monkeypatch=monkeypatch, provider=provider) as shop:
        provider._tokens.clock = shop.clock
        tokens = await shop.tokens()
        shop.clock.ahead += 301
        clients = dict(provider._tokens.clients)
        provider._tokens.clients.clear()
        reply = await shop.refresh(tokens)
        assert (reply.status, reply.json()["error"]) == (503, "temporarily_unavailable")
        provider._tokens.clients.update(clients)
        await renewed(shop, tokens)


async def test_without_a_refresh_token_a_login_ends_with_the_providers_token(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = AuthServer(jwt=False, lifetime=300)
    provider.set_faults("no_refresh_token")
    async with provider, proxied(monkeypatch=monkeypatch, provider=provider) as shop:
        provider._tokens.clock = shop.clock
        tokens = await shop.tokens()
        assert 298 <= tokens["expires_in"] <= 300
        assert (await shop.call(tokens["access_token"])).status == 200
        shop.clock.ahead += 301
        assert (await shop.call(tokens["access_token"])).status == 401
        assert (await shop.refresh(tokens)).json()["error"] == "invalid_grant"


# --- scopes ----------------------------------------------------------------------------------------------------------


async def test_a_client_gets_the_scopes_that_it_requests_and_the_user_has() -> None:
    async def verify(token: str) -> dict[str, Any]:
        return {"sub": 7, "scope": ["read", "admin"]}

    async with proxied(verify=verify, scopes=("read", "write")) as shop:
        assert (await shop.tokens(scope="read write"))["scope"] == "read admin"
        assert (await shop.tokens(scope="write"))["scope"] == "admin"
        found = await shop.call((await shop.tokens())["access_token"])
        assert f"{shop.provider.issuer} 7 admin read" in found.text


async def test_required_scopes_are_demanded_and_published() -> None:
    async with proxied(required_scopes=("read",), scopes=()) as shop:
        metadata = (await send(shop.app, "GET", f"{ISSUER}/.well-known/oauth-authorization-server")).json()
        assert metadata["scopes_supported"] == ["read"]
        assert (await shop.tokens())["scope"] == "read"


# --- the database ----------------------------------------------------------------------------------------------------


async def test_logins_survive_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "proxy.db"
    async with AuthServer(jwt=False) as provider:
        async with proxied(path, provider=provider) as shop:
            tokens = await shop.tokens()
            before = await upstream_token(shop, tokens)
            client, browser = (await shop.register())["client_id"], shop.browser()
            login = shop.login(client)
            callback = shop.at_provider(await shop.consent(browser, login))
        async with proxied(path, provider=provider) as again:
            assert await upstream_token(again, tokens) == before
            tokens = await renewed(again, tokens)
            browser.app = again.app
            assert (await browser.open(callback)).parameters["code"], "a login goes on"


async def test_no_token_is_on_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "proxy.db"
    async with proxied(path) as shop:
        tokens = await renewed(shop, await shop.tokens())
        client = await shop.register(token_endpoint_auth_method="client_secret_post")
        login, code = await shop.authorize(client["client_id"], state="the-state-of-the-client")
        await shop.consent(shop.browser(), shop.login(client["client_id"]))
        secrets = {*map(str, tokens.values()), *shop.provider.secrets, client["client_secret"], code, login.verifier}
        secrets |= {"the-state-of-the-client"}
        secrets -= {"Bearer", tokens["client_id"], tokens["scope"], str(tokens["expires_in"])}
        content = contents(tmp_path)
        assert len(secrets) > 8
        for secret in secrets:
            assert len(secret) < 8 or secret.encode() not in content, secret


async def test_the_files_belong_to_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "proxy.db"
    async with proxied(path, key=None) as shop:
        await shop.tokens()
        files = list(path.parent.iterdir())
        assert path.with_name("proxy.db.key") in files
        assert all(file.stat().st_mode & 0o077 == 0 for file in files)


async def test_a_key_file_is_reused_and_a_lost_one_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "proxy.db"
    async with AuthServer(jwt=False) as provider:
        async with proxied(path, provider=provider, key=None) as shop:
            tokens = await shop.tokens()
        async with proxied(path, provider=provider, key=None) as shop:
            await upstream_token(shop, tokens)
        path.with_name("proxy.db.key").unlink()
        async with proxied(path, provider=provider, key=None) as shop:
            assert (await shop.call(tokens["access_token"])).status == 503
            with pytest.raises(StoreError, match="another key"):
                await shop.auth._database.run(lambda db, sealer: None)


async def test_keys_are_rotated(tmp_path: Path) -> None:
    path = tmp_path / "proxy.db"
    fresh = os.urandom(32)
    async with AuthServer(jwt=False) as provider:
        async with proxied(path, provider=provider, key=KEY) as shop:
            old, oldest = await shop.tokens(), await shop.tokens()
        async with proxied(path, provider=provider, key=[fresh, KEY]) as shop:
            await upstream_token(shop, old)
            new = await shop.tokens()
        async with proxied(path, provider=provider, key=fresh) as shop:
            await upstream_token(shop, new)
            assert (await shop.refresh(oldest)).json()["error"] == "invalid_grant", "its key is lost: log in again"


async def test_a_file_that_others_can_read_or_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "proxy.db"
    sqlite3.connect(path).execute("CREATE TABLE other (x)").connection.close()
    path.chmod(0o644)
    async with proxied(path) as shop:
        with pytest.raises(StoreError, match="chmod 600"):
            await shop.auth._database.run(lambda db, sealer: None)
        path.chmod(0o600)
        with pytest.raises(StoreError, match="no database of an OAuth proxy"):
            await shop.auth._database.run(lambda db, sealer: None)
        assert (await send(shop.app, "GET", shop.login("x").url)).status == 503


async def test_two_processes_share_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "proxy.db"
    provider = AuthServer(jwt=False, lifetime=300)
    clock = Clock()
    async with (
        provider,
        proxied(path, monkeypatch, provider, clock=clock) as one,
        proxied(path, monkeypatch, provider, clock=clock) as other,
    ):
        provider._tokens.clock = clock
        client, browser = (await one.register())["client_id"], one.browser()
        login = one.login(client)
        redirect = await one.consent(browser, login)
        browser.app = other.app
        code = (await browser.open(one.at_provider(redirect))).parameters["code"]
        tokens = (await one.post("/token", one.redeeming(client, login, code))).json()
        assert (await other.call(tokens["access_token"])).status == 200
        clock.ahead += 301
        found = await asyncio.gather(*(upstream_token(each, tokens) for each in (one, other, one, other)))
        assert len(set(found)) == 1
        assert provider.counts["token"] == 2, "only one of them renews"
