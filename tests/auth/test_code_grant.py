"""The authorization code grant: the URL, the callback, a mix-up of two issuers, and the code."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from accord.auth.client_authentication import SecretAuthentication
from accord.auth.code_grant import (
    PendingAuthorization,
    begin_authorization,
    code_challenge,
    parse_callback,
    read_callback,
    redeem_code,
    select_scopes,
)
from accord.auth.discovery import Discovery
from accord.auth.metadata import AuthorizationServerMetadata
from accord.auth.registration import ClientRegistration
from accord.auth.steps import OAuthResponse
from accord.errors import AuthorizationError, OAuthError

from tests.auth.flow import REDIRECT_URI, answered

ISSUER = "https://login.example"
RESOURCE = "https://MCP.example/a/"
RANDOM = ("state-" + "s" * 37, "verifier-" + "v" * 34)


def discovery(issuer: str = ISSUER, scopes: list[str] | None = None, **change: Any) -> Discovery:
    known: dict[str, Any] = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }
    return Discovery(RESOURCE, RESOURCE, AuthorizationServerMetadata(**known | change), scopes)


def begin(found: Discovery | None = None, scopes: list[str] | None = None, **options: Any) -> PendingAuthorization:
    found = found or discovery()
    client = ClientRegistration(found.issuer, "accord", "given")
    texts = iter(RANDOM)
    return begin_authorization(found, client, REDIRECT_URI, scopes or [], lambda: next(texts), **options)


def test_the_url_has_what_the_specification_demands() -> None:
    pending = begin(scopes=["read", "write"])
    assert pending.url.startswith(f"{ISSUER}/authorize?")
    assert {name: value for name, [value] in parse_qs(urlsplit(pending.url).query).items()} == {
        "response_type": "code",
        "client_id": "accord",
        "redirect_uri": REDIRECT_URI,
        "state": RANDOM[0],
        "code_challenge": code_challenge(RANDOM[1]),
        "code_challenge_method": "S256",
        "resource": RESOURCE,
        "scope": "read write",
    }
    assert RANDOM[1] not in pending.url
    assert not [secret for secret in RANDOM if secret in repr(pending)]


def test_an_endpoint_with_a_query_keeps_it() -> None:
    pending = begin(discovery(authorization_endpoint=f"{ISSUER}/authorize?tenant=a"))
    assert pending.url.startswith(f"{ISSUER}/authorize?tenant=a&response_type=code&")
    assert "scope" not in pending.url


def test_offline_access_needs_consent() -> None:
    assert "prompt=consent" in begin(scopes=["offline_access"]).url
    assert "prompt" not in begin(scopes=["read"]).url


def test_the_challenge_is_that_of_rfc_7636() -> None:
    challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    assert code_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == challenge


@pytest.mark.parametrize("methods", [None, [], ["plain"], ["s256"]])
def test_a_server_that_does_not_state_s256_is_refused_unless_the_user_knows(methods: list[str] | None) -> None:
    found = discovery(code_challenge_methods_supported=methods)
    with pytest.raises(AuthorizationError, match=r"expected S256.*--assume-pkce"):
        begin(found)
    assert "code_challenge_method=S256" in begin(found, assume_pkce=True).url


def test_a_server_without_an_authorization_endpoint_is_refused() -> None:
    with pytest.raises(AuthorizationError, match="has no authorization_endpoint"):
        begin(discovery(authorization_endpoint=None))


@pytest.mark.parametrize(
    ("scopes", "previous", "chosen", "supported", "expected"),
    [
        (None, [], None, None, []),
        (["read"], [], None, None, ["read"]),
        (["write"], ["read"], None, None, ["read", "write"]),
        (["read"], ["read"], None, ["offline_access"], ["read", "offline_access"]),
        (["offline_access"], [], None, ["offline_access"], ["offline_access"]),
        (["read"], [], ["admin"], [], ["admin"]),
        (["read"], [], [], [], []),
    ],
)
def test_which_scopes_are_requested(scopes: Any, previous: Any, chosen: Any, supported: Any, expected: Any) -> None:
    assert select_scopes(discovery(scopes=scopes, scopes_supported=supported), previous, chosen) == expected


def callback(**change: str | None) -> dict[str, str]:
    found = {"state": RANDOM[0], "iss": ISSUER, "code": "the code"} | change
    return {name: value for name, value in found.items() if value is not None}


def test_a_callback_has_a_code() -> None:
    unquoted = urlencode(callback(), safe=":/")  # RFC 3986, 3.4 allows both in a query
    for text in (
        *(urlencode(callback()), unquoted),
        *(f"{REDIRECT_URI}?{each}" for each in (urlencode(callback()), unquoted)),
    ):
        assert read_callback(begin(), parse_callback(text)) == "the code"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("state=a&state=a", "a parameter twice"),
        ("code=a&state=b&code=c", "a parameter twice"),
        ("&".join(f"a{index}=" for index in range(40)), "more than 32 parameters"),
        ("a=" + "x" * 20_000, "too long"),
        ("", "state"),
        ("?", "state"),
        ("state=é%ff", "state"),
        ("state=\ud800", "state"),
        ("http://[?code=a&state=b", "not a URL"),
    ],
)
def test_a_callback_that_cannot_be_used_is_an_error(query: str, reason: str) -> None:
    with pytest.raises(AuthorizationError, match=reason):
        read_callback(begin(), parse_callback(query))


@pytest.mark.parametrize("state", [None, "", "state", RANDOM[0] + "s", RANDOM[0].upper(), "é", RANDOM[1]])
@pytest.mark.parametrize("error", [None, "access_denied"])
def test_nothing_is_used_of_a_callback_with_another_state(state: str | None, error: str | None) -> None:
    with pytest.raises(AuthorizationError, match="state of the callback") as caught:
        read_callback(begin(), callback(state=state, error=error, error_description="call 555"))
    assert not isinstance(caught.value, OAuthError)
    assert "555" not in str(caught.value)


@pytest.mark.parametrize("iss", ["https://other.example", f"{ISSUER}/", ISSUER.upper(), "", "\x1b[2J"])
@pytest.mark.parametrize("stated", [True, False, None])
@pytest.mark.parametrize("error", [None, "access_denied"])
def test_nothing_is_used_of_a_callback_of_another_issuer(iss: str, stated: bool | None, error: str | None) -> None:
    pending = begin(discovery(authorization_response_iss_parameter_supported=stated))
    with pytest.raises(AuthorizationError, match="the response is another server's") as caught:
        read_callback(pending, callback(iss=iss, error=error, error_description="call 555"))
    assert "555" not in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("error", [None, "access_denied"])
def test_iss_may_be_absent_only_if_the_server_does_not_state_it(error: str | None) -> None:
    with pytest.raises(AuthorizationError, match="has no iss"):
        read_callback(begin(), callback(iss=None, error=error))
    unstated = begin(discovery(authorization_response_iss_parameter_supported=None))
    assert read_callback(unstated, callback(iss=None)) == "the code"


def test_a_mix_up_of_two_issuers_ends_before_the_code_leaves() -> None:
    """The user chose the attacker's server, which sent the browser to an honest one (RFC 9700, 4.4)."""
    attacker = "https://attacker.example"
    for endpoint in (f"{attacker}/authorize", f"{ISSUER}/authorize"):
        pending = begin(discovery(attacker, authorization_endpoint=endpoint))
        with pytest.raises(AuthorizationError, match="do not enter credentials there"):
            read_callback(pending, callback(iss=ISSUER))


@pytest.mark.parametrize(
    ("error", "cure"),
    [
        ("access_denied", "log in again"),
        ("invalid_scope", "--scope"),
        ("unauthorized_client", "--client-id"),
        ("x", ""),
    ],
)
def test_an_error_of_the_server_has_a_cure(error: str, cure: str) -> None:
    with pytest.raises(OAuthError) as caught:
        read_callback(begin(), callback(code=None, error=error, error_description="<b>\x1b\u202e"))
    assert caught.value.error == error
    assert caught.value.description == "<b>\\x1b\\u202e"
    assert cure in caught.value.cure


@pytest.mark.parametrize("code", [None, ""])
def test_a_callback_without_a_code_is_an_error(code: str | None) -> None:
    with pytest.raises(AuthorizationError, match="neither a code nor an error"):
        read_callback(begin(), callback(code=code))


def test_an_error_that_repeats_the_code_does_not_show_it() -> None:
    with pytest.raises(OAuthError) as caught:
        read_callback(begin(), callback(error="server_error", error_description="for the code"))
    assert "the code" not in str(caught.value)


def test_a_code_is_redeemed_at_the_recorded_issuer_with_the_verifier() -> None:
    pending = begin(scopes=["read"])
    steps = redeem_code(pending, "the code", SecretAuthentication(pending.client), 1_000.0)
    body = b'{"access_token": "a", "token_type": "bearer", "expires_in": 60, "refresh_token": "r"}'
    [request], tokens = answered(steps, OAuthResponse(200, body))
    assert (request.method, request.url) == ("POST", f"{ISSUER}/token")
    assert request.headers == {"Accept": "application/json"}
    assert request.form == {
        "grant_type": "authorization_code",
        "code": "the code",
        "redirect_uri": REDIRECT_URI,
        "code_verifier": RANDOM[1],
        "resource": RESOURCE,
        "client_id": "accord",
    }
    assert (tokens.expires_at, tokens.scopes, tokens.requested) == (1_060.0, ["read"], ["read"])  # type: ignore[attr-defined]
