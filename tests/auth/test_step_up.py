"""Scopes are requested step by step, at most so often; logins at several issuers stay apart."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from accord import AccordError, AuthorizationError, Client, ClientCredentials, CredentialStore, LoginNeeded, OAuth

from tests.auth.place import place, stored


class Demands(dict[str, str]):
    """Demands one more scope at each request of `who`."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def get(self, name: str, default: Any = None) -> Any:
        if name != "who":
            return default
        self.count += 1
        return f"s{self.count}"


async def test_an_operation_leads_to_3_authorizations_at_most(store: CredentialStore) -> None:
    scopes = ("read", "write", "openid", "offline_access", *(f"s{number}" for number in range(100)))
    async with place(scopes=scopes) as at, Client(at.url, auth=at.login(store), revisions=["2026-07-28"]) as client:
        await client.call_tool("extensions")
        at.auth.needed = Demands()
        with pytest.raises(LoginNeeded, match=r"HTTP 403: .* needs a login with the scopes .*; run: accord login"):
            await client.call_tool("who")
        assert at.issuer.counts["authorization"] == 1 + 3
        assert (await stored(store)).tokens.requested == ["read", "offline_access", "s1", "s2", "s3"]


async def test_the_first_login_of_an_operation_counts_too(store: CredentialStore) -> None:
    scopes = ("read", "write", "openid", "offline_access", *(f"s{number}" for number in range(100)))
    async with place(scopes=scopes) as at, Client(at.url, auth=at.login(store), revisions=["2026-07-28"]) as client:
        await client.call_tool("extensions")
        at.issuer.revoke_all()
        before = at.issuer.counts["authorization"]
        at.auth.needed = Demands()
        with pytest.raises(LoginNeeded):
            await client.call_tool("who")
        assert at.issuer.counts["authorization"] == before + 3


class HugeDemands(Demands):
    """Demands thousands of other scopes at each request of `who`."""

    def get(self, name: str, default: Any = None) -> Any:
        found = super().get(name, default)
        return found if name != "who" else " ".join(f"{found}.{number}" for number in range(1_000))


async def test_the_scopes_of_a_program_do_not_grow_without_bound() -> None:
    """A server may demand others with each refusal, and have an authorization server that grants them all."""
    async with place(faults={"scope_null"}) as at:
        at.issuer.add_client("robot", "secret of robot")
        robot = ClientCredentials("robot", secret="secret of robot")
        async with Client(at.url, auth=robot, revisions=["2026-07-28"]) as client:
            await client.call_tool("extensions")
            at.auth.needed = HugeDemands()
            errors = [await _error(client.call_tool("who")) for _ in range(16)]
            assert "demands more than 65,536 characters of scopes" in str(errors[-1])
            at.auth.needed = {}
            assert (await client.call_tool("who")).text == "robot"
        sent = [str(each.parameters.get("scope", "")) for each in at.issuer.requests if each.endpoint == "token"]
        assert 30_000 < max(map(len, sent)) <= 65_536


async def _error(call: Awaitable[object]) -> AccordError:
    with pytest.raises(AccordError) as caught:
        await call
    return caught.value


async def test_two_servers_with_different_issuers_share_nothing(store: CredentialStore) -> None:
    async with place() as first, place() as second:
        for at in (first, second):
            async with Client(at.url, auth=at.login(store)) as client:
                assert (await client.call_tool("who")).text == "alice"
        for at, other in ((first, second), (second, first)):
            received = {secret for request in at.issuer.requests for secret in request.secrets}
            assert not received & other.issuer._tokens.issued
            assert at.issuer.counts["registration"] == 1, "a client belongs to one issuer"


async def test_a_callback_of_another_issuer_ends_the_login_before_the_code_leaves(store: CredentialStore) -> None:
    """The user is led to the second issuer, which sends a callback with its own code and `iss`."""
    async with place() as first, place() as second:
        second.issuer.add_client("client-1", redirect_uris=["http://127.0.0.1:33418/callback"])

        async def mixed_up(url: str) -> str:
            return second.issuer.callback(url.replace(first.issuer.issuer, second.issuer.issuer, 1))

        with pytest.raises(AuthorizationError, match=r"found iss .*, expected .*: the response is another server's"):
            await Client(first.url, auth=OAuth(authorize=mixed_up, store=store)).connect()
        assert first.issuer.counts["token"] == second.issuer.counts["token"] == 0
