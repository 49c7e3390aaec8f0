"""Several ways to authenticate on one server: each token reaches only those it is meant for."""

from __future__ import annotations

from typing import Any

import pytest

from accord import APIKeys, Principal, Server
from accord.errors import DeclarationError
from accord.server.auth.alternatives import Alternatives
from accord.server.auth.introspection import Introspection
from accord.server.auth.jwt import JWT
from accord.server.auth.refusals import InsufficientScope, InvalidToken, Unauthorized

from tests.server.auth.issuer import AUDIENCE, Issuer, Sent, issuing
from tests.server.auth.proxy.proxying import proxied


def introspected(issuer: Issuer) -> Introspection:
    return Introspection(issuer.url, client_id="a", client_secret="b", endpoint=f"{issuer.url}/introspect")


async def test_each_token_goes_to_its_issuer_and_keys_stay_keys() -> None:
    async with issuing() as first, issuing() as second:
        auth = Alternatives([JWT(first.url, AUDIENCE), JWT(second.url, AUDIENCE), APIKeys({"key-of-ann": "ann"})])
        for _ in range(2):
            assert (await auth.authenticate(Sent(first.token()))).issuer == first.url
            assert (await auth.authenticate(Sent(second.token()))).issuer == second.url
            assert await auth.authenticate(Sent("key-of-ann")) == Principal("ann")
        assert (await auth.authenticate(Sent(first.token()))).id != (await auth.authenticate(Sent(second.token()))).id


async def test_an_issuer_cannot_sign_for_another() -> None:
    async with issuing() as first, issuing() as second:
        first.keys = []
        first.documents["/jwks"] = {"keys": [key.as_dict(private=False) | {"kid": "first"} for key in second.keys]}
        auth = Alternatives([JWT(first.url, AUDIENCE), JWT(second.url, "https://second.example")])
        with pytest.raises(InvalidToken, match="another server"):
            await auth.authenticate(Sent(second.token()))


async def test_no_other_issuer_sees_a_token() -> None:
    """A token that an issuer has signed is as good as a password there."""
    async with issuing() as first, issuing() as second:
        second.documents["/introspect"] = {"active": True, "sub": "mallory"}
        auth = Alternatives([JWT(first.url, AUDIENCE), introspected(second)])
        for token in (first.token(exp=1), first.token(aud="x"), first.token(iss="https://third.example")):
            with pytest.raises(InvalidToken):
                await auth.authenticate(Sent(token))
        assert not second.counts
        assert (await auth.authenticate(Sent("opaque"))).id == f"{second.url} mallory"


async def test_no_issuer_sees_a_token_of_the_proxy() -> None:
    async with issuing() as issuer, proxied() as shop:
        issuer.documents["/introspect"] = {"active": True, "sub": "mallory"}
        auth = Alternatives([introspected(issuer), shop.auth])
        tokens = await shop.tokens()
        assert (await auth.authenticate(Sent(tokens["access_token"]))).client == tokens["client_id"]
        await shop.post("/revoke", {"client_id": tokens["client_id"], "token": tokens["refresh_token"]})
        with pytest.raises(InvalidToken):
            await auth.authenticate(Sent(tokens["access_token"]))
        assert not issuer.counts
        assert (await auth.authenticate(Sent("opaque"))).id == f"{issuer.url} mallory"


async def test_opaque_tokens_are_introspected_in_order() -> None:
    async with issuing() as first, issuing() as second:
        first.documents["/introspect"] = {"active": False}
        second.documents["/introspect"] = {"active": True, "sub": "ann"}
        auth = Alternatives([introspected(first), introspected(second)])
        assert (await auth.authenticate(Sent("opaque"))).issuer == second.url


async def test_a_missing_scope_is_not_tried_elsewhere() -> None:
    async with issuing() as issuer:
        auth = Alternatives([JWT(issuer.url, AUDIENCE, required_scopes=("write",)), APIKeys({"key": "ann"})])
        with pytest.raises(InsufficientScope):
            await auth.authenticate(Sent(issuer.token()))


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "x" * 20_000])
async def test_what_no_part_accepts_is_refused(token: str) -> None:
    auth = Alternatives([JWT("https://login.example", AUDIENCE), APIKeys({"key": "ann"})])
    with pytest.raises(Unauthorized) as caught:
        await auth.authenticate(Sent(token))
    assert 'error="invalid_token"' in caught.value.challenge if token else True


async def test_without_a_token_there_is_no_error() -> None:
    for parts in ([JWT("https://login.example", AUDIENCE)], [APIKeys({"key": "ann"})]):
        with pytest.raises(Unauthorized) as caught:
            await Alternatives(parts).authenticate(Sent(None))  # type: ignore[arg-type]
        assert caught.value.challenge == "Bearer"


def test_a_server_takes_a_list() -> None:
    server = Server("shop", auth=[JWT("https://login.example", AUDIENCE), APIKeys({"key": "ann"})])
    assert isinstance(server.auth, Alternatives)
    assert "key" not in repr(server.auth).replace("keys>", "")


@pytest.mark.parametrize("parts", [[], [None], ["key"], [JWT("https://a.example", "a"), JWT("https://a.example", "b")]])
def test_a_list_is_of_different_methods(parts: Any) -> None:
    with pytest.raises(DeclarationError):
        Server("shop", auth=parts)
