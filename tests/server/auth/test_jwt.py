"""`JWT`: which tokens of an issuer are accepted, and what their principals have."""

from __future__ import annotations

import logging
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, OKPKey, RSAKey

from accord import Principal
from accord.errors import DeclarationError
from accord.server.auth import token_verifier
from accord.server.auth.jwt import JWT
from accord.server.auth.refusals import InsufficientScope, InvalidToken, Unauthorized
from accord.server.auth.token_verifier import TOKEN_BYTES

from tests.server.auth.issuer import AUDIENCE, ES256, RS256, Issuer, Sent, issuing


async def principal_of(auth: JWT, token: str) -> Principal:
    return await auth.authenticate(Sent(token))


async def refusal(auth: JWT, token: str) -> str:
    with pytest.raises(InvalidToken) as caught:
        await auth.authenticate(Sent(token))
    return caught.value.reason


@pytest.mark.parametrize("key", [ES256, RS256], ids=["ES256", "RS256"])
async def test_a_token_of_the_issuer_has_a_principal(key: Any) -> None:
    async with issuing() as issuer:
        auth = JWT(issuer.url, AUDIENCE)
        found = await principal_of(auth, issuer.token(key, scope="read write", email="ann@example.org"))
        assert found.id == f"{issuer.url} ann"
        assert (found.issuer, found.client) == (issuer.url, "desk")
        assert found.scopes == {"read", "write"}
        assert found.claims["email"] == "ann@example.org"
        assert found.expires_at == found.claims["exp"]


async def test_a_token_seen_before_is_not_verified_again() -> None:
    async with issuing() as issuer:
        auth, token = JWT(issuer.url, AUDIENCE), issuer.token()
        assert await principal_of(auth, token) is await principal_of(auth, token)


async def test_without_a_token_the_challenge_has_no_error() -> None:
    with pytest.raises(Unauthorized, match="Bearer TOKEN") as caught:
        await JWT("https://login.example", AUDIENCE).authenticate(Sent(None))
    assert caught.value.challenge == "Bearer"


@pytest.mark.parametrize("edge", [("exp", -58, True), ("exp", -61, False), ("nbf", 58, True), ("nbf", 90, False)])
@pytest.mark.parametrize("claim", ["iat", "nbf"])
async def test_clocks_may_differ_by_a_minute(edge: tuple[str, int, bool], claim: str) -> None:
    name, seconds, accepted = edge
    name = claim if name == "nbf" else name
    async with issuing() as issuer:
        auth, token = JWT(issuer.url, AUDIENCE), issuer.token(**{name: int(time.time()) + seconds})
        if accepted:
            assert (await principal_of(auth, token)).id.endswith(" ann")
        else:
            assert await refusal(auth, token) in ("the token has expired", "the token is not valid yet")


async def test_a_cached_token_ends_with_its_leeway(monkeypatch: pytest.MonkeyPatch) -> None:
    async with issuing() as issuer:
        auth, token = JWT(issuer.url, AUDIENCE), issuer.token()
        await principal_of(auth, token)
        later = time.time() + 661
        monkeypatch.setattr(time, "time", lambda: later)
        assert await refusal(auth, token) == "the token has expired"


@pytest.mark.parametrize("typ", ["at+jwt", "AT+JWT", "application/at+jwt", "JWT", "jwt", None])
async def test_types_of_access_tokens_are_accepted(typ: str | None) -> None:
    async with issuing() as issuer:
        assert await principal_of(JWT(issuer.url, AUDIENCE), issuer.token(header={"typ": typ}))


@pytest.mark.parametrize("typ", ["JWT", None, "dpop+jwt"])
async def test_a_server_may_insist_on_the_type_of_rfc_9068(typ: str | None) -> None:
    async with issuing() as issuer:
        auth = JWT(issuer.url, AUDIENCE, types=("at+jwt",))
        assert await refusal(auth, issuer.token(header={"typ": typ})) == "the token is of another type"
        assert await principal_of(auth, issuer.token())


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "n"},
        {"at_hash": "h"},
        {"c_hash": "h"},
        {"token_use": "id"},
        {"typ": "ID"},
        {"typ": "Refresh"},
        {"events": {}},
    ],
)
async def test_other_tokens_of_the_issuer_are_refused(claims: dict[str, Any]) -> None:
    async with issuing() as issuer:
        reason = await refusal(JWT(issuer.url, AUDIENCE), issuer.token(header={"typ": "JWT"}, **claims))
        assert reason == "the token is not an access token"


@pytest.mark.parametrize("aud", [AUDIENCE, [AUDIENCE], ["https://other.example", AUDIENCE]])
async def test_the_audience_is_one_of_the_recipients(aud: Any) -> None:
    async with issuing() as issuer:
        assert await principal_of(JWT(issuer.url, AUDIENCE), issuer.token(aud=aud))
        assert await principal_of(JWT(issuer.url, {"urn:a", AUDIENCE}), issuer.token(aud=aud))


async def test_cognito_has_clients_in_place_of_an_audience() -> None:
    async with issuing() as issuer:
        auth = JWT(issuer.url, clients={"desk"})
        good = {"aud": None, "token_use": "access"}
        assert (await principal_of(auth, issuer.token(**good))).client == "desk"
        assert await refusal(auth, issuer.token(**good | {"client_id": "x"})) == "the token is of another client"
        assert await refusal(auth, issuer.token(**good | {"token_use": "id"})) == "the token is not an access token"
        assert await refusal(auth, issuer.token(**good | {"token_use": None})) == "the token is not an access token"
        assert await refusal(auth, issuer.token(**good | {"aud": "desk"})) == "the token is for another server"


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({"scope": "a b"}, {"a", "b"}),
        ({"scope": ["a", "b"]}, {"a", "b"}),
        ({"scope": None, "scp": "a b"}, {"a", "b"}),
        ({"scope": None, "scp": ["a"]}, {"a"}),
        ({"scope": "a", "permissions": ["b:c"]}, {"a", "b:c"}),
        ({"scope": None}, set()),
        ({"scope": ""}, set()),
    ],
)
async def test_scopes_are_found_where_providers_put_them(claims: dict[str, Any], scopes: set[str]) -> None:
    async with issuing() as issuer:
        auth = JWT(issuer.url, AUDIENCE, scopes_claim="permissions")
        assert (await principal_of(auth, issuer.token(**claims))).scopes == scopes


async def test_scopes_of_another_form_are_refused() -> None:
    async with issuing() as issuer:
        auth = JWT(issuer.url, AUDIENCE, scopes_claim="permissions")
        assert "neither a text" in await refusal(auth, issuer.token(permissions={"admin": True}))
        assert await refusal(auth, issuer.token(scope=7)) == "the token has an invalid header or claim"


async def test_a_scope_implies_others_through_others() -> None:
    async with issuing() as issuer:
        auth = JWT(issuer.url, AUDIENCE, implies={"admin": {"write"}, "write": {"read", "admin"}})
        assert (await principal_of(auth, issuer.token(scope="admin"))).scopes == {"admin", "write", "read"}


async def test_required_scopes_are_named_all_at_once_and_expiry_is_checked_first() -> None:
    async with issuing() as issuer:
        auth = JWT(issuer.url, AUDIENCE, required_scopes=("shop", "read"))
        with pytest.raises(InsufficientScope) as caught:
            await principal_of(auth, issuer.token(scope="read"))
        assert caught.value.challenge == 'Bearer error="insufficient_scope", scope="read shop"'
        assert await refusal(auth, issuer.token(scope="", exp=1)) == "the token has expired"


async def test_an_expired_token_is_invalid_and_does_not_lack_a_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client would request more scopes, where it has to refresh: also for a token that was seen before."""
    async with issuing() as issuer:
        auth, token = JWT(issuer.url, AUDIENCE, required_scopes=("shop",)), issuer.token(scope="read")
        with pytest.raises(InsufficientScope):
            await principal_of(auth, token)
        later = time.time() + 700
        for module in ("jwt", "token_cache"):
            monkeypatch.setattr(f"accord.server.auth.{module}.time", SimpleNamespace(time=lambda: later))
        assert await refusal(auth, token) == "the token has expired"


async def test_a_token_of_a_client_without_a_user_is_refused_unless_allowed() -> None:
    async with issuing() as issuer:
        token = issuer.token(sub=None)
        assert await refusal(JWT(issuer.url, AUDIENCE), token) == "the token identifies no user"
        found = await principal_of(JWT(issuer.url, AUDIENCE, allow_clients=True), token)
        assert found.id == f"{issuer.url}#desk"
        same = await principal_of(JWT(issuer.url, AUDIENCE, allow_clients=True), issuer.token(sub="#desk"))
        assert same.id != found.id


@pytest.mark.parametrize("sub", ["", "a\nb", "a\x1b[31m", "x" * 1025, "\u202eann"])
async def test_subjects_are_printable_and_short(sub: str) -> None:
    async with issuing() as issuer:
        assert await refusal(JWT(issuer.url, AUDIENCE), issuer.token(sub=sub)) == "the token identifies no user"


@pytest.mark.parametrize(
    "exp",
    [None, -1, 1e11, 10**400, 1754400000000, "600", True],
    ids=["none", "-1", "1e11", "huge", "ms", "str", "bool"],
)
async def test_every_token_expires(exp: Any) -> None:
    async with issuing() as issuer:
        assert await refusal(JWT(issuer.url, AUDIENCE), issuer.token(exp=exp))


async def test_the_log_says_what_was_found_and_expected_and_never_the_token(caplog: pytest.LogCaptureFixture) -> None:
    async with issuing() as issuer:
        auth, token = JWT(issuer.url, AUDIENCE), issuer.token(aud="https://other.example")
        with caplog.at_level(logging.DEBUG):
            reason = await refusal(auth, token)
            await refusal(auth, token)
    assert "found aud https://other.example; expected https://shop.example/mcp" in caplog.text
    assert "other.example" not in reason
    assert caplog.text.count("was refused") == 1
    assert not any(part in caplog.text for part in token.split("."))


async def test_only_the_text_that_is_logged_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may send tokens, and redaction takes longer than the rest of a refusal."""
    redacted: list[str] = []

    def counted(text: str) -> str:
        redacted.append(text)
        return text

    monkeypatch.setattr(token_verifier, "redact_beginning", counted)
    monkeypatch.setattr(token_verifier, "_LOG_SECONDS", 3_600)
    async with issuing() as issuer:
        auth, token = JWT(issuer.url, AUDIENCE), issuer.token(iss="curl " * 2_000)
        reasons = [await refusal(auth, token) for _ in range(20)]
    assert reasons == ["the token is from another issuer"] * 20
    assert redacted == ["curl " * 2_000, issuer.url]


async def test_text_in_a_token_cannot_write_lines_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with issuing() as issuer:
        await refusal(JWT(issuer.url, AUDIENCE), issuer.token(aud="a\naccord: forged line\x1b[2J"))
    (record,) = [each for each in caplog.records if "refused" in each.getMessage()]
    assert "\n" not in record.getMessage()
    assert "\x1b" not in record.getMessage()


async def test_tokens_are_bounded() -> None:
    auth = JWT("https://login.example", AUDIENCE)
    assert await refusal(auth, "a" * (TOKEN_BYTES + 1)) == "the Authorization header has no token"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "audience"),
        ({"audience": ()}, "audience"),
        ({"audience": AUDIENCE, "algorithms": ("HS256",)}, "public key"),
        ({"audience": AUDIENCE, "algorithms": ("none",)}, "public key"),
        ({"audience": AUDIENCE, "algorithms": ()}, "public key"),
        ({"audience": AUDIENCE, "algorithms": "ES256"}, "algorithms="),
        ({"audience": AUDIENCE, "required_scopes": ("offline_access",)}, "offline_access"),
        ({"audience": AUDIENCE, "implies": {"admin": {"offline_access"}}}, "offline_access"),
        ({"audience": AUDIENCE, "implies": {"admin": "read"}}, "not a string"),
        ({"audience": AUDIENCE, "required_scopes": ('a"b',)}, "not a scope"),
    ],
)
def test_options_that_are_not_safe_are_refused_at_declaration(options: Any, reason: str) -> None:
    with pytest.raises(DeclarationError, match=reason):
        JWT("https://login.example", **options)


@pytest.mark.parametrize(
    "issuer", ["http://login.example", "login.example", "https://a@b.example", "https://a.example/#x"]
)
def test_an_issuer_is_a_safe_url(issuer: str) -> None:
    with pytest.raises(DeclarationError, match="issuer"):
        JWT(issuer, AUDIENCE)


def test_without_joserfc_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joserfc.jws", None)
    with pytest.raises(DeclarationError, match=r"accord\[auth\]"):
        JWT("https://login.example", AUDIENCE)


async def test_keys_of_every_kind_verify_and_unusable_ones_are_passed_over() -> None:
    edwards = OKPKey.generate_key("Ed25519", {"kid": "ed"})
    async with issuing() as issuer:
        with pytest.warns(SecurityWarning):
            short = RSAKey.generate_key(1024, {"kid": "short"})
        keys: list[Any] = [short, edwards, ES256]
        published = [key.as_dict(private=False) for key in keys]
        encrypts = ECKey.generate_key("P-256", {"kid": "enc", "use": "enc"})
        published += [{"kty": "oct", "k": "c2VjcmV0", "kid": "oct"}, {"kty": "new"}, {"kty": "EC", "crv": "P-256"}, {}]
        published.append(encrypts.as_dict(private=False))
        issuer.documents["/jwks"] = {"keys": published}
        auth = JWT(issuer.url, AUDIENCE)
        assert await principal_of(auth, issuer.token())
        assert await principal_of(auth, signed_by_edwards(issuer, edwards))
        assert await refusal(auth, issuer.token(keys[0])) == "the key of the token is not known"
        assert await refusal(auth, issuer.token(encrypts)) == "the key of the token is not known"


def signed_by_edwards(issuer: Issuer, key: OKPKey) -> str:
    from joserfc import jwt

    header = {"alg": "Ed25519", "kid": "ed", "typ": "at+jwt"}
    return jwt.encode(header, issuer.claims(), key, algorithms=["Ed25519"])


async def test_the_key_that_a_token_names_is_tried_before_keys_without_an_id() -> None:
    others = [ECKey.generate_key("P-256").as_dict(private=False) for _ in range(5)]
    published = [{name: value for name, value in each.items() if name != "kid"} for each in others]
    async with issuing() as issuer:
        issuer.documents["/jwks"] = {"keys": [*published, ES256.as_dict(private=False)]}
        assert await principal_of(JWT(issuer.url, AUDIENCE), issuer.token())


async def test_a_key_without_an_id_and_a_token_without_one_meet() -> None:
    key = ECKey.generate_key("P-256")
    published = {name: value for name, value in key.as_dict(private=False).items() if name != "kid"}
    async with issuing() as issuer:
        issuer.documents["/jwks"] = {"keys": [published, ES256.as_dict(private=False)]}
        auth = JWT(issuer.url, AUDIENCE)
        assert await principal_of(auth, issuer.token(key, header={"kid": None}))
        assert await principal_of(auth, issuer.token(ES256, header={"kid": None}))
