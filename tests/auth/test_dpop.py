"""Tokens are bound to a key (RFC 9449), end to end against `AuthServer`, which verifies each proof."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from accord import AuthorizationError, Client, ClientCredentials, ConnectError, CredentialStore
from accord.auth import dpop
from accord.auth.dpop import DPoPKey
from accord.testing.auth_server.signing import verify_proof

from tests.auth.place import Clock, Place, Timed, place, stored

NONCES: list[Any] = [None, "a nonce"]


def proofs(at: Place, endpoint: str) -> list[str]:
    return [
        request.headers["dpop"]
        for request in at.issuer.requests
        if "dpop" in request.headers and request.endpoint == endpoint
    ]


@pytest.mark.parametrize("support", ["supported", "required"])
@pytest.mark.parametrize("nonce", NONCES)
async def test_a_user_has_tokens_that_only_the_key_can_use(
    support: Any, nonce: str | None, store: CredentialStore
) -> None:
    async with place(dpop=support, dpop_nonce=nonce) as at:
        for _ in range(2):  # the second client uses the stored key
            async with Client(at.url, auth=at.login(store)) as client:
                assert (await client.call_tool("who")).text == "alice"
        login = await stored(store)
        assert login.tokens.token_type == "DPoP"
        assert at.issuer.counts["authorization"] == 1
        used = proofs(at, "challenge") + proofs(at, "token")
        assert len(set(used)) == len(used), "each request has a proof of its own"
        with pytest.raises(ConnectError, match="401"):
            await Client(at.url, auth=login.tokens.access_token).connect()


@pytest.mark.parametrize("nonce", NONCES)
async def test_a_program_has_tokens_that_only_its_key_can_use(nonce: str | None) -> None:
    async with place(dpop="required", dpop_nonce=nonce) as at:
        at.issuer.add_client("robot", "secret")
        async with Client(at.url, auth=ClientCredentials("robot", secret="secret")) as client:
            assert (await client.call_tool("who")).text == "robot"
            at.issuer.expire_access_tokens()
            assert (await client.call_tool("who")).text == "robot"
        tokens = [token for token in at.issuer._tokens.tokens.values() if token.thumbprint is None]
        assert not tokens, "every token is bound"


async def test_a_refreshed_token_is_bound_to_the_same_key(store: CredentialStore) -> None:
    clock = Clock()
    async with place(dpop="required", dpop_nonce="a nonce", clock=clock) as at:
        auth = Timed(at.login(store), clock)
        async with Client(at.url, auth=auth) as client:
            clock.now += 3_590
            assert (await client.call_tool("who")).text == "alice"
        assert at.issuer.counts["authorization"] == 1
        assert len({token.thumbprint for token in at.issuer._tokens.tokens.values()}) == 1


async def test_a_new_nonce_of_the_server_costs_one_more_request(store: CredentialStore) -> None:
    async with place(dpop="supported", dpop_nonce="first") as at, Client(at.url, auth=at.login(store)) as client:
        await client.call_tool("who")
        before = at.refusals
        await asyncio.gather(*(client.call_tool("who") for _ in range(5)))
        assert at.refusals == before
        at.issuer._tokens.dpop_nonce = "second"
        assert (await client.call_tool("who")).text == "alice"
        assert at.refusals == before + 1
        assert (await client.call_tool("who")).text == "alice"
        assert at.refusals == before + 1


async def test_a_redirected_request_has_a_proof_for_its_new_url(store: CredentialStore) -> None:
    async with place(dpop="required") as at, Client(f"{at.url}/", auth=at.login(store)) as client:
        before = at.refusals
        for _ in range(2):
            assert (await client.call_tool("who")).text == "alice"
        assert at.refusals == before
        assert at.issuer.counts["token"] == 1


REFUSALS = {
    "token_nonce_endless": r"token request at .* answered use_dpop_nonce; log in again",
    "token_nonce_missing": r"token request at .* answered use_dpop_nonce; log in again",
    "proof_refused": r"token request at .* answered invalid_dpop_proof; log in again",
}


@pytest.mark.parametrize("fault", REFUSALS)
async def test_a_refused_proof_ends_the_login(fault: str, store: CredentialStore) -> None:
    async with place(dpop="required", faults={fault}) as at:
        with pytest.raises(AuthorizationError, match=REFUSALS[fault]) as caught:
            await Client(at.url, auth=at.login(store)).connect()
        assert at.issuer.counts["token"] <= 2
        assert at.issuer.counts["authorization"] == 1
        assert not [secret for secret in at.issuer.secrets if secret in str(caught.value)]


async def test_a_server_that_demands_ever_new_nonces_ends_the_request(store: CredentialStore) -> None:
    async with place(dpop="required") as at, Client(at.url, auth=at.login(store)) as client:
        await client.call_tool("who")
        at.issuer.set_faults("resource_nonce_endless")
        before = at.refusals
        with pytest.raises(AuthorizationError, match=r"proof of possession: .* demanded a nonce 3 times .*report it"):
            await client.call_tool("who")
        assert at.refusals == before + 3
        assert at.issuer.counts["authorization"] == 1


async def test_a_token_that_is_bound_to_no_key_of_the_client_is_refused(store: CredentialStore) -> None:
    async with place() as at, store:
        at.issuer.set_faults("token_type_dpop")
        with pytest.raises(AuthorizationError, match="found token_type 'DPoP', and the request had no proof"):
            await Client(at.url, auth=at.login(store)).connect()
        assert not await store.logins()


async def test_a_token_without_a_binding_is_used_where_none_is_required(store: CredentialStore) -> None:
    async with place(dpop="supported", faults={"proof_ignored"}) as at:
        at.issuer._tokens.proven_key = lambda request, url: None  # type: ignore[method-assign]
        async with Client(at.url, auth=at.login(store)) as client:
            assert (await client.call_tool("who")).text == "alice"
        assert (await stored(store)).tokens.token_type == "Bearer"


async def test_a_refresh_token_may_be_bound_alone(store: CredentialStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "this has the effect of DPoP-binding the refresh token alone" (RFC 9449, 5)."""
    clock = Clock()
    async with place(dpop="supported", faults={"proof_ignored"}, clock=clock) as at:
        unbound = at.issuer._tokens.access_token
        monkeypatch.setattr(at.issuer._tokens, "access_token", lambda of, scopes, key: unbound(of, scopes, None))
        for _ in range(3):
            async with Client(at.url, auth=Timed(at.login(store), clock)) as client:
                assert (await client.call_tool("who")).text == "alice"
                clock.now += 3_601
        assert (await stored(store)).tokens.token_type == "Bearer"
        assert at.issuer.counts["token"] == 3
        assert at.issuer.counts["authorization"] == 1


@pytest.mark.parametrize("support", ["supported", "required"])
async def test_without_the_extra_a_required_proof_is_an_error_and_a_possible_one_is_left_out(
    support: Any, store: CredentialStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dpop, "find_spec", lambda name: None)
    async with place(dpop=support) as at:
        client = Client(at.url, auth=at.login(store))
        if support == "required":
            with pytest.raises(AuthorizationError, match=r"proof of possession: .*DPoP.*; install accord\[auth\]"):
                await client.connect()
            assert at.issuer.counts["authorization"] == 0, "before the user logs in"
        else:
            async with client:
                assert (await client.call_tool("who")).text == "alice"
            assert (await stored(store)).tokens.token_type == "Bearer"


ANOTHER_KEY = """-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f
-----END PRIVATE KEY-----
"""


@pytest.mark.parametrize("token_type", ["Bearer", "DPoP"])
@pytest.mark.parametrize("fault", ["no extra", "damaged", "of another type"])
async def test_a_key_that_cannot_be_used_is_an_error_with_its_cure(
    fault: str, token_type: str, store: CredentialStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program in an environment without the extra uses a login that was made in another one."""
    async with place(dpop="required") as at:
        async with Client(at.url, auth=at.login(store)) as client:
            await client.call_tool("who")
        login = await stored(store)
        expires_at = 1.0 if token_type == "Bearer" else None
        tokens = msgspec.structs.replace(login.tokens, token_type=token_type, expires_at=expires_at)
        pem = {"damaged": "no key", "of another type": ANOTHER_KEY}.get(fault, login.dpop_key)
        async with store:
            await store.save(at.url, msgspec.structs.replace(login, tokens=tokens, dpop_key=pem))
        if fault == "no extra":
            monkeypatch.setattr(dpop, "find_spec", lambda name: None)
        cure = r"damaged; log in again" if fault != "no extra" else r"bound to a key \(DPoP\); install accord\[auth\]"
        client = Client(at.url, auth=at.login(store))
        for _ in range(2):
            with pytest.raises(AuthorizationError, match=f"proof of possession: .*{cure}"):
                await client.connect()


async def test_the_key_of_a_login_is_in_no_representation(store: CredentialStore) -> None:
    async with place(dpop="required") as at, Client(at.url, auth=at.login(store)) as client:
        await client.call_tool("who")
        login = await stored(store)
        assert login.dpop_key is not None
        secret = login.dpop_key.splitlines()[1]
        assert secret not in repr(login) + repr(client) + repr(DPoPKey(login.dpop_key))
        assert secret not in str(at.issuer.requests)


def test_a_nonce_of_any_bytes_can_be_sent() -> None:
    """Headers of HTTP may have bytes that are not UTF-8."""
    proof = DPoPKey().proof("POST", "https://x.example", 0, b"a\xff".decode(errors="surrogateescape"))
    assert verify_proof(proof, "POST", "https://x.example", 0)[1]["nonce"] == "a?"


def test_a_proof_is_for_one_request_and_one_token() -> None:
    key = DPoPKey()
    first, second = (key.proof("POST", "https://a.example/mcp?x=1#y", 1_000.0, "n", "token") for _ in range(2))
    assert first != second
    thumbprint, claims = verify_proof(first, "POST", "https://a.example/mcp", 1_000.0)
    assert (claims["htu"], claims["nonce"], claims["iat"]) == ("https://a.example/mcp", "n", 1_000)
    assert (
        verify_proof(DPoPKey(key.pem).proof("GET", "https://a.example/", 1.0), "GET", "https://a.example/", 1.0)[0]
        == thumbprint
    )
    with pytest.raises(ValueError, match="htm"):
        verify_proof(first, "GET", "https://a.example/mcp", 1_000.0)
