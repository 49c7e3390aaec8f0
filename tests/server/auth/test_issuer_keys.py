"""The keys of an issuer: found through its metadata, shared, fetched seldom, and dropped when it withdraws them."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from joserfc.jwk import ECKey

from accord.server.auth.issuer_keys import FETCH_SECONDS
from accord.server.auth.jwt import JWT
from accord.server.auth.refusals import InvalidToken, IssuerUnavailable

from tests.server.auth.issuer import AUDIENCE, ES256, OTHER, RS256, Sent, issuing


class Clock:
    """Time that a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = time.monotonic()
        monkeypatch.setattr("accord.server.auth.issuer_keys.monotonic", lambda: self.now)


async def test_concurrent_first_uses_share_one_fetch() -> None:
    async with issuing() as issuer:
        auth = JWT(issuer.url, AUDIENCE)
        issuer.open.clear()
        uses = [asyncio.create_task(auth.authenticate(Sent(issuer.token(jti=str(n))))) for n in range(200)]
        while not issuer.counts:
            await asyncio.sleep(0.01)
        issuer.open.set()
        assert len({each.id for each in await asyncio.gather(*uses)}) == 1
        assert issuer.counts == {"/.well-known/oauth-authorization-server": 1, "/jwks": 1}


async def test_ten_thousand_tokens_with_unknown_keys_lead_to_one_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    async with issuing() as issuer:
        auth = JWT(issuer.url, AUDIENCE)
        await auth.authenticate(Sent(issuer.token()))
        clock.now += FETCH_SECONDS
        head, claims, signature = issuer.token(OTHER, {"kid": "unknown"}).split(".")
        for n in range(10_000):
            with pytest.raises(InvalidToken):
                await auth.authenticate(Sent(f"{head}.{claims}.{n:06}{signature[6:]}"))
        assert issuer.counts["/jwks"] == 2
        assert await auth.authenticate(Sent(issuer.token(jti="2")))
        assert issuer.counts["/jwks"] == 2


async def test_a_new_key_is_found_and_a_withdrawn_one_is_refused_also_for_cached_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    new = ECKey.generate_key("P-256", {"kid": "new"})
    async with issuing() as issuer:
        auth, old = JWT(issuer.url, AUDIENCE), Sent(issuer.token(RS256))
        await auth.authenticate(old)
        issuer.keys = [ES256, new]
        with pytest.raises(InvalidToken):
            await auth.authenticate(Sent(issuer.token(new)))
        clock.now += FETCH_SECONDS
        assert await auth.authenticate(Sent(issuer.token(new)))
        with pytest.raises(InvalidToken):
            await auth.authenticate(old)


async def test_a_withdrawn_key_is_noticed_though_all_tokens_are_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    started, begin = clock.now, time.time()
    monkeypatch.setattr(time, "time", lambda: begin + clock.now - started)
    async with issuing() as issuer:
        auth = JWT(issuer.url, AUDIENCE)
        old = Sent(issuer.token(RS256, exp=int(begin) + 1_000_000))
        await auth.authenticate(old)
        issuer.keys = [ES256]
        clock.now += 3_601
        await auth.authenticate(old)  # while the keys are fetched anew
        async with asyncio.timeout(5):
            while issuer.counts["/jwks"] < 2 or auth._keys._fetches.is_running(None):
                await asyncio.sleep(0)
        with pytest.raises(InvalidToken):
            await auth.authenticate(old)


async def test_old_keys_serve_while_new_ones_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    async with issuing() as issuer:
        auth = JWT(issuer.url, AUDIENCE)
        await auth.authenticate(Sent(issuer.token()))
        clock.now += 3_601
        issuer.open.clear()
        assert await auth.authenticate(Sent(issuer.token(jti="2")))
        issuer.open.set()
        with pytest.raises(InvalidToken):  # a token with an unknown key waits for the end of the fetch
            await auth.authenticate(Sent(issuer.token(OTHER, {"kid": "unknown"})))
        assert issuer.counts["/jwks"] == 2
        issuer.status = 500
        clock.now += 90_000
        with pytest.raises(IssuerUnavailable):
            await auth.authenticate(Sent(issuer.token(jti="3")))


async def test_an_issuer_that_does_not_answer_is_a_503_and_is_tried_again_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock(monkeypatch)
    async with issuing() as issuer:
        auth = JWT(issuer.url, AUDIENCE)
        issuer.status = 500
        for _ in range(100):
            with pytest.raises(IssuerUnavailable) as caught:
                await auth.authenticate(Sent(issuer.token()))
        assert caught.value.status == 503
        assert issuer.url not in str(caught.value)
        assert issuer.counts.total() == 1
        assert "HTTP 500" in caplog.text
        issuer.status = 200
        clock.now += 6
        assert await auth.authenticate(Sent(issuer.token()))


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"issuer": "https://login.example", "jwks_uri": "https://login.example/jwks"},
        {"issuer": "ISSUER/", "jwks_uri": "ISSUER/jwks"},
        {"issuer": "ISSUER"},
        {"issuer": "ISSUER", "jwks_uri": "file:///etc/passwd"},
        {"issuer": "ISSUER", "jwks_uri": "http://169.254.169.254/keys"},
        {"issuer": "ISSUER", "jwks_uri": "http://10.0.0.1/keys"},
    ],
)
async def test_metadata_of_another_issuer_and_unsafe_key_urls_are_refused(document: Any) -> None:
    async with issuing() as issuer:
        filled = {name: value.replace("ISSUER", issuer.url) for name, value in document.items()}
        issuer.documents["/.well-known/oauth-authorization-server"] = filled
        with pytest.raises(IssuerUnavailable):
            await JWT(issuer.url, AUDIENCE).authenticate(Sent(issuer.token()))
        assert issuer.counts["/jwks"] == 0


@pytest.mark.parametrize("keys", [{"keys": []}, {"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}, {"keys": "x"}, {}, []])
async def test_a_key_set_without_usable_keys_is_no_key_set(keys: Any) -> None:
    async with issuing() as issuer:
        issuer.documents["/jwks"] = keys
        with pytest.raises(IssuerUnavailable):
            await JWT(issuer.url, AUDIENCE).authenticate(Sent(issuer.token()))


async def test_a_given_key_url_needs_no_metadata() -> None:
    async with issuing() as issuer:
        auth = JWT(issuer.url, AUDIENCE, jwks_uri=f"{issuer.url}/jwks")
        assert await auth.authenticate(Sent(issuer.token()))
        assert issuer.counts == {"/jwks": 1}


async def test_a_request_that_is_cancelled_does_not_cancel_the_fetch_of_others() -> None:
    async with issuing() as issuer:
        auth = JWT(issuer.url, AUDIENCE)
        issuer.open.clear()
        first, second = (asyncio.create_task(auth.authenticate(Sent(issuer.token(jti=n)))) for n in "12")
        while not issuer.counts:
            await asyncio.sleep(0.01)
        first.cancel()
        issuer.open.set()
        assert (await second).client == "desk"
        with pytest.raises(asyncio.CancelledError):
            await first


def test_one_object_serves_several_event_loops() -> None:
    async def serve(auths: list[JWT]) -> None:
        async with issuing() as issuer:
            auths.append(JWT(issuer.url, AUDIENCE))
            await auths[-1].authenticate(Sent(issuer.token()))
            token.append(issuer.token(jti="2"))

    async def again() -> None:
        assert await auths[0].authenticate(Sent(token[0]))

    auths: list[JWT] = []
    token: list[str] = []
    asyncio.run(serve(auths))
    asyncio.run(again())
