"""`AuthServer` does what the standards say, and each of its faults what its row says."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from accord.auth import http as oauth_http
from accord.auth.challenge import parse_challenges, select_challenge
from accord.auth.http import OAuthClient
from accord.auth.registration import ClientIdentity
from accord.auth.steps import OAuthRequest, OAuthResponse
from accord.errors import AuthorizationError, OAuthError
from accord.testing import AuthServer
from accord.testing.auth_server.faults import FAULTS, Fault
from accord.testing.auth_server.grants import DEVICE_CODE, ID_JAG, ID_TOKEN, JWT_BEARER, TOKEN_EXCHANGE
from accord.testing.auth_server.issuer import ASSERTION
from accord.testing.auth_server.signing import SigningKey, encoded_digest, verify_token

from tests.auth.flow import REDIRECT_URI, Login, log_in


@asynccontextmanager
async def client_of(server: AuthServer) -> AsyncIterator[OAuthClient]:
    http = OAuthClient(server.resource)
    try:
        yield http
    finally:
        await http.close()


async def call(server: AuthServer, http: OAuthClient, headers: dict[str, str] | None = None) -> OAuthResponse:
    return await http.send(OAuthRequest("call", "POST", server.resource, headers or {}, json={}))


async def post(server: AuthServer, http: OAuthClient, endpoint: str, form: dict[str, str], **headers: str) -> Any:
    response = await http.send(OAuthRequest(endpoint, "POST", f"{server.issuer}/{endpoint}", headers, form=form))
    return response.status, json.loads(response.body) if response.body else None


async def login(server: AuthServer, http: OAuthClient, **options: Any) -> Login:
    """Log in as a client does that has called the server without a token."""
    challenged = await call(server, http)
    assert challenged.status == 401
    challenge = select_challenge(parse_challenges([challenged.headers.get("www-authenticate", "")]))
    return await log_in(server.resource, http, server.callback, challenge=challenge, **options)


@pytest.mark.parametrize("path", ["", "/tenant", "/a/b"])
@pytest.mark.parametrize("jwt", [True, False])
async def test_a_client_logs_in_calls_renews_and_logs_out(path: str, jwt: bool) -> None:
    async with AuthServer(path=path, jwt=jwt) as server, client_of(server) as http:
        first = await login(server, http)
        bearer = {"authorization": f"Bearer {first.tokens.access_token}"}
        assert (await call(server, http, bearer)).status == 200
        second = await first.refresh(http)
        assert second.tokens.refresh_token != first.tokens.refresh_token
        assert await second.revoke(http)
        assert (await call(server, http, bearer)).status == 401
        with pytest.raises(OAuthError, match="invalid_grant"):
            await second.refresh(http)
    assert server.counts["token"] == 3


async def test_a_refresh_token_that_is_used_twice_ends_the_authorization() -> None:
    async with AuthServer() as server, client_of(server) as http:
        first = await login(server, http)
        second = await first.refresh(http)
        with pytest.raises(OAuthError, match="used before"):
            await first.refresh(http)
        with pytest.raises(OAuthError, match="invalid_grant"):
            await second.refresh(http)


async def test_tokens_are_signed_for_the_resource_and_can_be_introspected() -> None:
    async with AuthServer(lifetime=60) as server, client_of(server) as http:
        server.add_client("shop", "secret")
        tokens = (await login(server, http)).tokens
        header, claims = verify_token(tokens.access_token, server.keys)
        assert header["typ"] == "at+jwt"
        assert (claims["iss"], claims["aud"], claims["sub"]) == (server.issuer, server.resource, "alice")
        form = {"token": tokens.access_token, "client_id": "shop", "client_secret": "secret"}
        status, document = await post(server, http, "introspect", form)
        assert (status, document["active"], document["sub"]) == (200, True, "alice")
        server.expire_access_tokens()
        assert await post(server, http, "introspect", form) == (200, {"active": False})
        assert (await post(server, http, "introspect", {**form, "client_secret": "guess"}))[0] == 401


async def test_the_user_may_refuse_and_other_redirect_uris_are_refused() -> None:
    async with AuthServer(user=lambda attempt: None) as server, client_of(server) as http:
        with pytest.raises(OAuthError, match="access_denied"):
            await login(server, http)
        server.add_client("shop", redirect_uris=["https://shop.example/callback"])
        with pytest.raises(ValueError, match="redirect_uri"):
            server.callback(f"{server.issuer}/authorize?client_id=shop&redirect_uri=https://shop.example/callbacK")


@pytest.mark.parametrize(
    ("left_out", "error"),
    [("code_challenge", "invalid_request"), ("response_type", "unsupported_response_type")],
)
async def test_an_authorization_request_is_checked(left_out: str, error: str) -> None:
    async with AuthServer() as server:
        server.add_client("shop")
        asked = {
            "client_id": "shop",
            "redirect_uri": REDIRECT_URI,
            "response_type": "code",
            "state": "s",
            "code_challenge": encoded_digest("v" * 43),
            "code_challenge_method": "S256",
        }
        asked.pop(left_out)
        found = parse_qs(urlsplit(server.callback(f"{server.issuer}/authorize?{urlencode(asked)}")).query)
        assert (found["error"], found["state"], found["iss"]) == ([error], ["s"], [server.issuer])


async def test_a_code_is_for_one_client_one_verifier_and_one_use() -> None:
    async with AuthServer() as server, client_of(server) as http:
        for name in ("shop", "other"):
            server.add_client(name)
        query = urlencode(
            {
                "client_id": "shop",
                "redirect_uri": REDIRECT_URI,
                "response_type": "code",
                "code_challenge": encoded_digest("v" * 43),
                "code_challenge_method": "S256",
                "resource": server.resource,
            }
        )

        def code() -> str:
            return parse_qs(urlsplit(server.callback(f"{server.issuer}/authorize?{query}")).query)["code"][0]

        form = {"grant_type": "authorization_code", "client_id": "shop", "code_verifier": "v" * 43}
        for change in (
            {"client_id": "other"},
            {"code_verifier": "w" * 43},
            {"redirect_uri": "http://127.0.0.1:1/callback"},
            {"code": "guess"},
        ):
            assert (await post(server, http, "token", {**form, "code": code(), **change}))[0] == 400, change
        assert (await post(server, http, "token", {**form, "code": code(), "resource": "https://other.example"}))[
            1
        ] == {"error": "invalid_target"}
        used = code()
        status, tokens = await post(server, http, "token", {**form, "code": used})
        assert status == 200
        assert (await post(server, http, "token", {**form, "code": used}))[0] == 400
        bearer = {"authorization": f"Bearer {tokens['access_token']}"}
        assert (await call(server, http, bearer)).status == 401, "a code that is used twice ends its authorization"


async def test_client_id_metadata_documents_are_known_once_they_are_published() -> None:
    async with AuthServer() as server, client_of(server) as http:
        url = "https://client.example/accord.json"
        identity = ClientIdentity(metadata_url=url)
        assert (await login(server, http, identity=identity)).client.source == "registered"
        server.add_document(url, {"client_id": url, "redirect_uris": ["http://127.0.0.1/callback"]})
        client = (await login(server, http, identity=identity)).client
        assert (client.client_id, client.source) == (url, "metadata document")


async def test_clients_prove_their_identity_by_secret_and_by_key() -> None:
    key = SigningKey("robot")
    async with AuthServer() as server, client_of(server) as http:
        server.add_client("secret", "s:%c")
        server.add_client("key", keys=key.public_keys())
        form = {"grant_type": "client_credentials", "resource": server.resource, "scope": "read"}
        posted = {**form, "client_id": "secret", "client_secret": "s:%c"}
        assert (await post(server, http, "token", posted))[0] == 200
        assert (await post(server, http, "token", {**posted, "client_secret": "s"}))[0] == 401
        claims = {
            "iss": "key",
            "sub": "key",
            "aud": server.issuer,
            "exp": time.time() + 60,
            "jti": "1",
        }
        proven = {**form, "client_assertion_type": ASSERTION, "client_assertion": key.sign(claims)}
        status, tokens = await post(server, http, "token", proven)
        assert (status, verify_token(tokens["access_token"], server.keys)[1]["sub"]) == (200, "key")
        assert (await post(server, http, "token", proven))[0] == 401, "an assertion is used once"
        for wrong in ({"aud": "https://other.example"}, {"exp": 1}, {"iss": "secret"}):
            assertion = key.sign({**claims, "jti": "2", **wrong})
            assert (await post(server, http, "token", {**proven, "client_assertion": assertion}))[0] == 401
        stranger = SigningKey("robot").sign({**claims, "jti": "3"})
        assert (await post(server, http, "token", {**proven, "client_assertion": stranger}))[0] == 401


async def test_a_device_waits_for_its_user() -> None:
    async with AuthServer(faults={"device_slow_down"}) as server, client_of(server) as http:
        server.add_client("tv")
        for approved in ("alice", None):
            status, begun = await post(server, http, "device", {"client_id": "tv", "scope": "read"})
            assert status == 200
            form = {"grant_type": DEVICE_CODE, "client_id": "tv", "device_code": begun["device_code"]}
            answers = [await post(server, http, "token", form) for _ in range(2)]
            assert {answer[1]["error"] for answer in answers} <= {"slow_down", "authorization_pending"}
            server.approve_device(begun["user_code"], approved)
            answer = await post(server, http, "token", form)
            assert answer[1].get("error") == (None if approved else "access_denied")


@pytest.mark.parametrize(("user", "error"), [("alice", None), (None, "access_denied")])
async def test_the_page_of_a_device_asks_the_user(user: str | None, error: str | None) -> None:
    async with AuthServer(user=lambda attempt: user) as server, client_of(server) as http:
        server.add_client("tv")
        _, begun = await post(server, http, "device", {"client_id": "tv", "scope": "read"})
        unknown = await http.send(OAuthRequest("page", "GET", begun["verification_uri"]))
        assert (unknown.status, json.loads(unknown.body)["error"]) == (400, "invalid_request")
        page = await http.send(OAuthRequest("page", "GET", begun["verification_uri_complete"]))
        assert page.status == 200
        form = {"grant_type": DEVICE_CODE, "client_id": "tv", "device_code": begun["device_code"]}
        assert (await post(server, http, "token", form))[1].get("error") == error


async def test_a_port_in_use_is_an_error_without_a_traceback() -> None:
    async with AuthServer() as server:
        command = (sys.executable, "-m", "accord.testing.auth_server", str(urlsplit(server.issuer).port))
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        _, errors = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 1
        assert errors.decode().startswith("error: 127.0.0.1:")
        assert "is in use by another program" in errors.decode()


async def test_an_id_token_becomes_an_assertion_for_another_issuer_and_this_a_token() -> None:
    async with AuthServer() as company, AuthServer() as server, client_of(server) as http:
        company.add_client("agent", "at company")
        server.add_client("agent", "at server")
        server.trust(company)
        exchanged = {
            "grant_type": TOKEN_EXCHANGE,
            "client_id": "agent",
            "client_secret": "at company",
            "requested_token_type": ID_JAG,
            "subject_token_type": ID_TOKEN,
            "subject_token": company.id_token("alice", "agent"),
            "audience": server.issuer,
            "resource": server.resource,
            "scope": "read",
        }
        status, assertion = await post(company, http, "token", exchanged)
        assert (status, assertion["issued_token_type"], assertion["token_type"]) == (200, ID_JAG, "N_A")
        accepted = {
            "grant_type": JWT_BEARER,
            "client_id": "agent",
            "client_secret": "at server",
            "assertion": assertion["access_token"],
        }
        status, tokens = await post(server, http, "token", accepted)
        assert status == 200
        bearer = {"authorization": f"Bearer {tokens['access_token']}"}
        assert b"alice" in (await call(server, http, bearer)).body
        assert (await post(server, http, "token", accepted))[0] == 400, "an assertion is used once"
        assert (await post(company, http, "token", {**accepted, "client_secret": "at company"}))[0] == 400


@pytest.mark.parametrize("nonce", [None, "a nonce"])
async def test_tokens_are_bound_to_a_key(nonce: str | None) -> None:
    key = SigningKey("proof")
    async with AuthServer(dpop_nonce=nonce) as server, client_of(server) as http:
        server.add_client("robot", "secret")
        form = {
            "grant_type": "client_credentials",
            "client_id": "robot",
            "client_secret": "secret",
            "resource": server.resource,
        }
        endpoint, now = f"{server.issuer}/token", time.time()
        claims = {"nonce": nonce} if nonce else {}
        if nonce:
            proof = key.prove("POST", endpoint, now, "0")
            assert (await post(server, http, "token", form, DPoP=proof))[1] == {"error": "use_dpop_nonce"}
        proof = key.prove("POST", endpoint, now, "1", **claims)
        status, tokens = await post(server, http, "token", form, DPoP=proof)
        assert (status, tokens["token_type"]) == (200, "DPoP")
        assert (await post(server, http, "token", form, DPoP=proof))[0] == 400, "a proof is used once"
        old = key.prove("POST", endpoint, now - 3600, "2", **claims)
        assert (await post(server, http, "token", form, DPoP=old))[0] == 400
        value = tokens["access_token"]
        proof = key.prove("POST", server.resource, now, "3", ath=encoded_digest(value), **claims)
        assert (await call(server, http, {"authorization": f"DPoP {value}", "DPoP": proof})).status == 200
        assert (await call(server, http, {"authorization": f"Bearer {value}"})).status == 401
        other = SigningKey("other").prove("POST", server.resource, now, "4", **claims)
        assert (await call(server, http, {"authorization": f"DPoP {value}", "DPoP": other})).status == 401


async def test_requests_are_recorded_without_secrets_in_their_repr() -> None:
    async with AuthServer() as server, client_of(server) as http:
        tokens = (await login(server, http)).tokens
        await call(server, http, {"authorization": f"Bearer {tokens.access_token}"})
        assert [request.endpoint for request in server.requests][-3:] == ["authorization", "token", "challenge"]
        assert {tokens.access_token, tokens.refresh_token} < server.secrets
        verifier = next(request for request in server.requests if request.endpoint == "token").parameters[
            "code_verifier"
        ]
        assert verifier in server.secrets
        shown = repr(server.requests) + repr(server)
        assert not [secret for secret in server.secrets if secret in shown]


async def test_a_parameter_that_is_there_twice_is_refused() -> None:
    async with AuthServer() as server:
        with pytest.raises(ValueError, match="twice"):
            server.callback(f"{server.issuer}/authorize?client_id=a&client_id=b")


def test_an_unknown_fault_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown faults \['nothing'\]; there are .*issuer_mismatch"):
        AuthServer(faults={"nothing"})


ELSEWHERE = {
    *("device_expired", "device_uri_javascript", "device_500"),
    *("jwks_500", "jwks_html", "jwks_empty", "jwks_null", "jwks_huge", "jwks_slow"),
    *("introspection_500", "introspection_html", "introspection_text", "introspection_slow"),
    *(name for name in FAULTS if name.startswith(("program_", "credentials_", "assertion_", "exchange_"))),
    "resource_nonce_endless",
}
"""Faults that a login does not reach."""


@pytest.mark.parametrize(("name", "fault"), FAULTS.items(), ids=FAULTS)
async def test_a_client_refuses_a_fault_or_goes_on_as_its_row_says(
    name: str, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oauth_http, "SECONDS", 0.2 if "slow" in name else 60)
    path = "/tenant" if name == "oidc_appended_only" else ""
    async with AuthServer(faults={name}, path=path) as server, client_of(server) as http:
        failure: AuthorizationError | None = None
        try:
            tokens = await login(server, http)
            if tokens.tokens.refresh_token is not None:
                tokens = await tokens.refresh(http)
            await tokens.revoke(http)
        except AuthorizationError as exc:
            failure = exc
        assert (failure is not None) == (fault.refused and name not in ELSEWHERE), failure
        assert not [secret for secret in server.secrets if secret in f"{failure} {failure!r}"]
