"""Verified tokens are cached: in little memory, up to a bound, and not beyond their time."""

from __future__ import annotations

import gc
import secrets
import time
import tracemalloc

import pytest

from accord.server.auth import token_cache
from accord.server.auth.jwt import JWT
from accord.server.auth.jwt_claims import parse_jwt
from accord.server.auth.token_cache import TOKENS, TokenCache
from accord.server.core.principal import LEEWAY_SECONDS, Principal

from tests.server.auth.issuer import AUDIENCE, encoded

ISSUER = "https://login.example"


def token(number: int) -> bytes:
    """A token of a size that is usual, whose signature nobody checks here."""
    claims = {
        "iss": ISSUER,
        "sub": f"auth0|{number:024}",
        "aud": [AUDIENCE, f"{ISSUER}/userinfo"],
        "exp": int(time.time()) + 600,
        "iat": int(time.time()),
        "jti": secrets.token_hex(16),
        "client_id": "3MVG9lKcPoNINVBIPJjdw1J9LLM82HnFVVX19KY1uA5mu0",
        "scope": "openid profile email read write",
    }
    return f"{encoded({'alg': 'ES256'})}.{encoded(claims)}.{encoded(bytes(64))}".encode()


def test_ten_thousand_tokens_take_less_than_a_kilobyte_each() -> None:
    auth, tokens = JWT(ISSUER, AUDIENCE), [token(number) for number in range(TOKENS)]

    def fill() -> None:
        for each in tokens:
            parts = parse_jwt(each)
            auth._cache.put(auth._cache.digest(each), auth._principal(parts), len(parts.payload))

    fill()
    auth._cache.clear()
    gc.collect()
    tracemalloc.start()
    try:
        fill()
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(auth._cache) == TOKENS
    assert size / TOKENS <= 1_024


def principal(**changes: float) -> Principal:
    return Principal("ann", expires_at=time.time() + 600, **changes)  # type: ignore[arg-type]


def test_the_first_tokens_are_dropped_beyond_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_cache, "TOKENS", 10)
    monkeypatch.setattr(token_cache, "TOKENS_BYTES", 1_000)
    cache = TokenCache()
    for number in range(100):
        cache.put(b"%d" % number, principal(), 10)
        assert len(cache) <= 10
    assert [number for number in range(100) if cache.get(b"%d" % number)] == list(range(90, 100))
    cache.put(b"large", principal(), 995)
    assert len(cache) == 1


def test_an_entry_ends_with_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    now, cache = time.time(), TokenCache()
    cache.put(b"until exp", Principal("ann", expires_at=now + 600), 10)
    cache.put(b"until then", Principal("ann", expires_at=now + 600), 10, until=now + 60)
    for later, expected in ((59, 2), (61, 1), (600 + LEEWAY_SECONDS - 1, 1), (600 + LEEWAY_SECONDS + 1, 0)):
        monkeypatch.setattr(token_cache.time, "time", lambda later=later: now + later)
        assert sum(cache.get(key) is not None for key in (b"until exp", b"until then")) == expected
    assert len(cache) == 0


def test_the_digest_of_a_token_differs_between_caches_and_does_not_contain_it() -> None:
    first, second = TokenCache(), TokenCache()
    assert first.digest(b"token") == first.digest(b"token") != second.digest(b"token")
