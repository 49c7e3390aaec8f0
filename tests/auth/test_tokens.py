"""Token responses, refresh and revocation."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from accord.auth.client_authentication import ClientAuthentication, SecretAuthentication
from accord.auth.dpop import DPoPKey, with_proof
from accord.auth.metadata import AuthorizationServerMetadata
from accord.auth.registration import ClientRegistration
from accord.auth.steps import OAuthRequest, OAuthResponse
from accord.auth.tokens import Tokens, refresh_tokens, revoke_token
from accord.errors import AuthorizationError, OAuthError

from tests.auth.flow import answered

ISSUER = "https://login.example"
METADATA = AuthorizationServerMetadata(ISSUER, token_endpoint=f"{ISSUER}/token", revocation_endpoint=f"{ISSUER}/revoke")
STORED = Tokens("old access", refresh_token="old refresh", scopes=["read"], requested=["read", "write"])


def client(secret: str | None = None, method: Any = "none") -> SecretAuthentication:
    return SecretAuthentication(ClientRegistration(ISSUER, "a:client", "given", secret, method))


def refresh(document: Any, status: int = 200, proof: ClientAuthentication | None = None) -> tuple[Any, Any]:
    body = document if isinstance(document, bytes) else msgspec.json.encode(document)
    steps = refresh_tokens(METADATA, proof or client(), STORED, "https://mcp.example", 1_000.0)
    [request], tokens = answered(steps, OAuthResponse(status, body))
    return request, tokens


def test_a_refresh_keeps_what_the_server_does_not_replace() -> None:
    request, tokens = refresh({"access_token": "new", "token_type": "bearer"})
    assert request.form["resource"] == "https://mcp.example"
    assert (tokens.access_token, tokens.refresh_token) == ("new", "old refresh")
    assert (tokens.scopes, tokens.requested) == (["read"], ["read", "write"])
    document = {"access_token": "new", "refresh_token": "next", "scope": "write", "token_type": "DPOP"}
    _, tokens = refresh(document, proof=with_proof(client(), DPoPKey(), lambda: 0))
    assert (tokens.refresh_token, tokens.scopes, tokens.token_type) == ("next", ["write"], "DPoP")


@pytest.mark.parametrize(
    ("seconds", "expires_at"),
    [(60, 1_060), (0.5, 1_000.5), ("60", 1_060), (0, 1_000), (None, None), (-1, None), ("soon", None), ("nan", None),
     (10**400, None), (1e300, 1_000 + 10 * 366 * 86_400), ("inf", 1_000 + 10 * 366 * 86_400)],
)  # fmt: skip
def test_lifetimes(seconds: Any, expires_at: float | None) -> None:
    written = str(seconds) if isinstance(seconds, int) else msgspec.json.encode(seconds).decode()
    _, tokens = refresh(b'{"access_token": "a", "expires_in": %s}' % written.encode())
    assert tokens.expires_at == expires_at


def test_a_token_is_fresh_until_it_expires() -> None:
    assert Tokens("a").is_fresh(1e12)
    assert Tokens("a", expires_at=100).is_fresh(99)
    assert not Tokens("a", expires_at=100).is_fresh(99, margin=1)


@pytest.mark.parametrize(("lifetime", "margin"), [(3_600, 30), (60, 15), (20, 5), (0, 0), (None, 30)])
def test_a_token_with_a_short_lifetime_is_renewed_later(lifetime: Any, margin: float) -> None:
    _, tokens = refresh({"access_token": "a", "expires_in": lifetime})
    assert tokens.margin == margin


@pytest.mark.parametrize(
    "document",
    [{}, [], None, {"access_token": ""}, {"access_token": "a b"}, {"access_token": "a\r\nb"}, {"access_token": 7},
     {"access_token": "a", "token_type": "mac"}, {"access_token": "a", "refresh_token": ""}, b"", b"\xff",
     {"access_token": "a\n"}, b'{"x":' + b"[" * 100_000],
    ids=str,
)  # fmt: skip
def test_a_response_that_cannot_be_used_is_an_error(document: Any) -> None:
    with pytest.raises(AuthorizationError) as caught:
        refresh(document)
    assert "old" not in str(caught.value)


@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_an_error_of_the_server_shows_no_secret(status: int) -> None:
    proof = client("s:cret word", "client_secret_basic")
    text = "old refresh of s:cret word as s%3Acret+word"
    with pytest.raises(OAuthError) as caught:
        refresh({"error": "invalid_grant", "error_description": text}, status, proof)
    assert caught.value.error == "invalid_grant"
    assert caught.value.description == "[redacted] of [redacted] as [redacted]"


def test_without_a_refresh_token_nothing_is_sent() -> None:
    with pytest.raises(AuthorizationError, match="no refresh token; log in again"):
        next(refresh_tokens(METADATA, client(), Tokens("a"), "https://mcp.example", 0))


def test_how_a_client_proves_its_identity() -> None:
    for proof in (client(), client("secret", "none")):
        request, _ = refresh({"access_token": "a"}, proof=proof)
        assert request.form["client_id"] == "a:client"
        assert "client_secret" not in request.form
    request, _ = refresh({"access_token": "a"}, proof=client("s:cret", "client_secret_post"))
    assert (request.form["client_id"], request.form["client_secret"]) == ("a:client", "s:cret")
    request, _ = refresh({"access_token": "a"}, proof=client("s:cret", "client_secret_basic"))
    assert base64.b64decode(request.headers["Authorization"].removeprefix("Basic ")) == b"a%3Aclient:s%3Acret"
    assert "client_id" not in request.form


@pytest.mark.parametrize(("status", "revoked"), [(200, True), (400, False), (503, False)])
def test_revocation(status: int, revoked: bool) -> None:
    [request], outcome = answered(revoke_token(METADATA, client(), "t", "refresh_token"), OAuthResponse(status))
    assert (request.url, request.form["token"] if request.form else None, outcome) == (f"{ISSUER}/revoke", "t", revoked)
    without = AuthorizationServerMetadata(ISSUER, token_endpoint=f"{ISSUER}/token")
    assert answered(revoke_token(without, client(), "t", "refresh_token")) == ([], False)


@pytest.mark.parametrize("credentials", ["Basic %", "Basic /w==", "Bearer abcdef"])
def test_secrets_of_headers_are_redacted(credentials: str) -> None:
    request = OAuthRequest("a step", "POST", ISSUER, {"Authorization": credentials, "Accept": "text"})
    value = credentials.partition(" ")[2]
    assert request.without_secrets(f"found {value}") == (f"found {value}" if len(value) < 4 else "found [redacted]")
    assert repr(OAuthResponse(200, b"abc")) == "OAuthResponse(200, <3 bytes>)"


def test_no_repr_shows_a_secret() -> None:
    request, _ = refresh({"access_token": "a"})
    assert "old" not in repr(request) + repr(STORED)
