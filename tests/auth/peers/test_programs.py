"""Programs log in at oidc-provider, and call a server of accord that verifies its tokens, also bound to a key."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from accord import AuthorizationError, Client, ClientCredentials, Context, EnterpriseManaged, Server, WorkloadIdentity
from accord.auth.client_authentication import ClientAuthentication, SecretAuthentication
from accord.auth.code_grant import begin_authorization, parse_callback, read_callback, redeem_code
from accord.auth.discovery import Discovery, DiscoveryOptions, discover
from accord.auth.dpop import DPoPKey, with_proof
from accord.auth.http import OAuthClient
from accord.auth.registration import ClientIdentity, identify_client
from accord.auth.steps import Steps, run_steps
from accord.auth.tokens import Tokens, refresh_tokens
from accord.client.authorization import ClientAuth
from accord.http import JWT
from accord.testing import AuthServer
from accord.testing.auth_server.issuer import unverified_claim
from accord.testing.auth_server.signing import SigningKey

from tests.auth.flow import REDIRECT_URI
from tests.auth.peers.browser import Browser
from tests.auth.peers.oidc import serving_oidc
from tests.server.http.raw import served
from tests.testing.test_auth_server import client_of

KEY = SigningKey("robot")
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
COMMON: dict[str, Any] = {"redirect_uris": [], "response_types": []}
CLIENTS: list[dict[str, Any]] = [
    {"client_id": "basic", "client_secret": "s:cret %", "grant_types": ["client_credentials"], **COMMON},
    {"client_id": "post", "client_secret": "secret", "token_endpoint_auth_method": "client_secret_post",
     "grant_types": ["client_credentials"], **COMMON},
    {"client_id": "key", "jwks": KEY.public_keys(), "token_endpoint_auth_method": "private_key_jwt",
     "token_endpoint_auth_signing_alg": "ES256", "grant_types": ["client_credentials"], **COMMON},
    {"client_id": "workload", "token_endpoint_auth_method": "none", "grant_types": [JWT_BEARER], **COMMON},
    {"client_id": "agent", "client_secret": "agent's", "grant_types": [JWT_BEARER, TOKEN_EXCHANGE], **COMMON},
]  # fmt: skip


@asynccontextmanager
async def desk(issuer: str) -> AsyncIterator[str]:
    """Serve a server of accord that accepts the tokens of an issuer; the value is its URL."""
    auth = JWT(issuer, ["http://127.0.0.1"], allow_clients=True)
    server = Server("desk", auth=auth)

    @server.tool
    def who(ctx: Context) -> str:
        """Return the user and the scopes."""
        assert ctx.principal is not None
        return f"{ctx.principal.id} {' '.join(sorted(ctx.principal.scopes))}"

    async with served(server.app) as socket:
        url = f"http://127.0.0.1:{socket.port}/mcp"
        auth._audiences = frozenset({url})  # the port is known only now
        yield url


def login(kind: str, company: AuthServer, issuer: str) -> ClientAuth:
    if kind in ("basic", "post"):
        secret = next(client["client_secret"] for client in CLIENTS if client["client_id"] == kind)
        return ClientCredentials(kind, secret=secret, scopes=["read"])
    if kind == "key":
        return ClientCredentials("key", key=KEY.private_pem().decode(), scopes=["read"])
    if kind == "workload":
        claims = {**company._tokens.registered_claims("pod", 300), "aud": issuer}
        return WorkloadIdentity("workload", lambda: company.sign(claims, "JWT"), scopes=["read"])
    return EnterpriseManaged(
        "agent",
        secret="agent's",
        idp_token_endpoint=f"{issuer}/token",
        idp_client_id="agent",
        idp_secret="agent's",
        id_token=lambda: company.id_token("alice", "agent"),
        scopes=["read"],
    )


@pytest.mark.parametrize(
    ("kind", "who"),
    [("basic", "basic"), ("post", "post"), ("key", "key"), ("workload", "pod"), ("enterprise", "alice")],
)
async def test_a_program_logs_in_and_calls_a_server_that_verifies_the_token(kind: str, who: str) -> None:
    async with AuthServer() as company:
        with serving_oidc(clients=CLIENTS, trusted={company.issuer: company.keys}) as provider:
            issuer = provider.issuer
            async with desk(issuer) as url, Client(url, auth=login(kind, company, issuer)) as client:
                assert (await client.call_tool("who")).text == f"{issuer} {who} read"


async def test_a_refused_assertion_is_an_error_with_its_step() -> None:
    steps = {"workload": "workload identity", "enterprise": "token exchange at the identity provider"}
    with serving_oidc(clients=CLIENTS) as provider:
        async with AuthServer() as company, desk(provider.issuer) as url:
            for kind, step in steps.items():
                with pytest.raises(AuthorizationError, match=rf"{step} at .* answered invalid_grant: .*; see"):
                    await Client(url, auth=login(kind, company, provider.issuer)).connect()


async def found(issuer: str, http: OAuthClient, server: str) -> Discovery:
    return await run_steps(discover(server, None, DiscoveryOptions(issuer=issuer)), http.send)


def thumbprint(tokens: Tokens) -> str:
    return unverified_claim(tokens.access_token, "cnf")


@pytest.mark.parametrize("nonces", [False, True])
async def test_the_tokens_of_a_program_are_bound_to_its_key(nonces: bool) -> None:
    async with AuthServer() as server, client_of(server) as http:
        with serving_oidc(clients=CLIENTS, nonces=nonces) as provider:
            discovery, key = await found(provider.issuer, http, server.resource), DPoPKey()
            grant = ClientCredentials("basic", secret="s:cret %")
            tokens = await run_steps(grant.request(discovery, ["read"], key, time.time), http.send)
        assert tokens.token_type == "DPoP"
        assert key._key.thumbprint() in thumbprint(tokens)


@pytest.mark.parametrize("nonces", [False, True])
async def test_the_tokens_of_a_user_stay_bound_when_they_are_renewed(nonces: bool) -> None:
    async with AuthServer() as server, client_of(server) as http:
        with serving_oidc(nonces=nonces) as provider:
            discovery, key = await found(provider.issuer, http, server.resource), DPoPKey()
            client = await run_steps(identify_client(discovery.metadata, ClientIdentity(), REDIRECT_URI), http.send)
            scopes, randoms = ["read", "offline_access"], iter(("state" * 9, "verifier" * 6))
            pending = begin_authorization(discovery, client, REDIRECT_URI, scopes, lambda: next(randoms))
            code = read_callback(pending, parse_callback(await Browser().login(pending.url)))
            proof = with_proof(SecretAuthentication(client), key, time.time)
            tokens = await run_steps(redeem_code(pending, code, proof, time.time()), http.send)
            again = with_proof(SecretAuthentication(client), DPoPKey(key.pem), time.time)
            renewed = await run_steps(refresh(discovery, again, tokens), http.send)
            assert renewed.access_token != tokens.access_token
            assert {each.token_type for each in (tokens, renewed)} == {"DPoP"}
            assert all(key._key.thumbprint() in thumbprint(each) for each in (tokens, renewed))
            other = with_proof(SecretAuthentication(client), DPoPKey(), time.time)
            with pytest.raises(AuthorizationError, match=r"invalid_grant"):
                await run_steps(refresh(discovery, other, renewed), http.send)


def refresh(discovery: Discovery, authentication: ClientAuthentication, tokens: Tokens) -> Steps[Tokens]:
    return refresh_tokens(discovery.metadata, authentication, tokens, discovery.resource, time.time())
