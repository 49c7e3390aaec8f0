"""Tokens of the checker as an issuer: valid ones verify with its published keys, and forged ones do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from accord.check.issuer.keys import TokenForge

FORGE = TokenForge("http://127.0.0.1:9400", "https://shop.example/mcp", ["read", "write"])
KEYS = KeySet.import_key_set(FORGE.public_keys)  # type: ignore[arg-type]


def test_a_valid_token_verifies_with_the_published_keys() -> None:
    token = jwt.decode(FORGE.token("ann"), KEYS, algorithms=["RS256"])
    assert token.header == {"alg": "RS256", "typ": "at+jwt", "kid": "accord-check"}
    assert token.claims["sub"] == "ann"
    assert (token.claims["iss"], token.claims["aud"]) == (FORGE.issuer, FORGE.audience)
    assert token.claims["scope"] == "read write"
    assert token.claims["exp"] > token.claims["iat"]


def test_a_claim_may_be_changed_or_left_out() -> None:
    claims = jwt.decode(FORGE.token("ann", exp=None, aud="other", scope=None), KEYS, algorithms=["RS256"]).claims
    assert claims["aud"] == "other"
    assert not claims.keys() & {"exp", "scope"}


FORGERIES: dict[str, Callable[[], str]] = {
    "the key of a stranger": lambda: FORGE.strange_token("ann"),
    "no signature": lambda: FORGE.unsigned_token("ann", "none"),
    "the public key as a secret": lambda: FORGE.confused_token("ann", FORGE.public_pem),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_a_forged_token_does_not_verify(forge: Callable[[], str]) -> None:
    with pytest.raises((JoseError, ValueError)):
        jwt.decode(forge(), KEYS, algorithms=["RS256"])


def test_only_public_keys_are_published() -> None:
    assert {each["kid"] for each in FORGE.public_keys["keys"]} == {"accord-check", "accord-check-2"}
    assert not any({"d", "p", "q"} & each.keys() for each in FORGE.public_keys["keys"])
