"""`Introspection`: tokens that the issuer describes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from accord.errors import AuthorizationError, DeclarationError
from accord.server.auth.introspection import Introspection, decode_response
from accord.server.auth.refusals import InvalidToken, IssuerUnavailable
from accord.testing import AuthServer

from tests.server.auth.issuer import Sent, issuing
from tests.waiting import until

SECRET = "secret-of-the-shop/+ %"


@asynccontextmanager
async def opaque() -> AsyncIterator[tuple[AuthServer, Introspection]]:
    async with AuthServer(jwt=False) as server:
        server.add_client("shop", SECRET)
        yield server, declared(server)


def declared(server: AuthServer, **options: Any) -> Introspection:
    whole = {"client_id": "shop", "client_secret": SECRET, "audience": server.resource, **options}
    return Introspection(server.issuer, **whole)


async def test_an_active_token_has_a_principal() -> None:
    async with opaque() as (server, auth):
        found = await auth.authenticate(Sent(server.access_token("alice", ["read", "write"])))
        assert (found.id, found.client) == (f"{server.issuer} alice", "test")
        assert found.scopes == {"read", "write"}
        assert found.expires_at is not None


async def test_a_thousand_first_uses_of_one_token_are_one_introspection() -> None:
    async with opaque() as (server, auth):
        token = server.access_token()
        found = await asyncio.gather(*(auth.authenticate(Sent(token)) for _ in range(1_000)))
        assert len({each.id for each in found}) == 1
        assert server.counts["introspection"] == 1
        assert server.counts["metadata/oauth"] == 1


async def test_a_response_is_used_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opaque() as (server, auth):
        token = server.access_token()
        await auth.authenticate(Sent(token))
        server.revoke_all()
        assert await auth.authenticate(Sent(token))
        later = time.time() + 61
        monkeypatch.setattr("accord.server.auth.token_cache.time.time", lambda: later)
        with pytest.raises(InvalidToken):
            await auth.authenticate(Sent(token))
        assert server.counts["introspection"] == 2


async def test_a_response_is_never_used_past_the_expiry(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AuthServer(jwt=False, lifetime=30) as server:
        server.add_client("shop", SECRET)
        auth, token = declared(server), server.access_token()
        await auth.authenticate(Sent(token))
        server.expire_access_tokens()
        later = time.time() + 31
        monkeypatch.setattr("accord.server.auth.token_cache.time.time", lambda: later)
        with pytest.raises(InvalidToken):
            await auth.authenticate(Sent(token))


async def test_an_inactive_token_is_refused_and_not_introspected_again() -> None:
    async with opaque() as (server, auth):
        for _ in range(100):
            with pytest.raises(InvalidToken):
                await auth.authenticate(Sent("unknown"))
        assert server.counts["introspection"] == 1


async def test_an_introspection_that_no_request_waits_for_is_cancelled() -> None:
    """Anybody may send tokens, and disconnect: what waits for the issuer would grow without end."""
    async with issuing() as issuer:
        issuer.documents["/introspect"] = DESCRIBED
        issuer.open.clear()
        auth = described_by(issuer.url)
        waiting = [asyncio.create_task(auth.authenticate(Sent(f"token-{number}"))) for number in range(200)]
        shared = asyncio.create_task(auth.authenticate(Sent("token-199")))
        await until(lambda: issuer.counts["/introspect"] == 64)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        issuer.open.set()
        assert (await shared).client == "desk"
        assert issuer.counts["/introspect"] == 65


async def test_tokens_of_one_address_do_not_delay_those_of_others() -> None:
    async with issuing() as issuer:
        issuer.documents["/introspect"] = DESCRIBED
        issuer.open.clear()
        auth, done = described_by(issuer.url), list[str]()

        async def authenticate(address: str, token: str) -> None:
            sent = Sent(token)
            sent.account = address
            await auth.authenticate(sent)
            done.append(address)

        tasks = [asyncio.create_task(authenticate("attacker", f"token-{number}")) for number in range(400)]
        await until(lambda: issuer.counts["/introspect"] == 64)
        tasks.append(asyncio.create_task(authenticate("honest", "token")))
        await asyncio.sleep(0)
        issuer.open.set()
        await asyncio.gather(*tasks)
        assert done.index("honest") < 200


DESCRIBED = {"active": True, "sub": "ann", "client_id": "desk"}


@pytest.mark.parametrize(
    "changes",
    [
        {"active": False},
        {"active": "true"},
        {"active": None},
        {"sub": None},
        {"sub": ""},
        {"iss": "https://other.example"},
        {"aud": "https://other.example"},
        {"aud": []},
        {"exp": 1},
        {"exp": -1},
        {"exp": 9_999_999_999_000},
        {"exp": 10**300},
        {"exp": 10**400},
        {"exp": -(10**400)},
        {"nbf": 10**400},
        {"nbf": 9_999_999_999},
        {"cnf": {"jkt": "x"}},
    ],
)
async def test_a_token_that_is_not_for_this_server_is_refused(changes: dict[str, Any]) -> None:
    async with issuing() as issuer:
        issuer.documents["/introspect"] = DESCRIBED | changes
        auth = described_by(issuer.url)
        with pytest.raises((InvalidToken, IssuerUnavailable)):
            await auth.authenticate(Sent("token"))


def test_a_response_with_a_member_twice_is_refused() -> None:
    """Of two members of one name, another parser would take the other one."""
    with pytest.raises(AuthorizationError, match="a member twice"):
        decode_response(b'{"active": false, "active": true, "sub": "ann"}')


@pytest.mark.parametrize("changes", [{}, {"aud": "shop"}, {"aud": ["x", "shop"]}, {"exp": 9_999_999_999}])
async def test_a_token_that_is_for_this_server_is_accepted(changes: dict[str, Any]) -> None:
    async with issuing() as issuer:
        issuer.documents["/introspect"] = DESCRIBED | changes
        assert (await described_by(issuer.url).authenticate(Sent("token"))).client == "desk"


async def test_a_declared_audience_is_in_the_response() -> None:
    async with issuing() as issuer:
        issuer.documents["/introspect"] = DESCRIBED
        with pytest.raises(InvalidToken, match="another server"):
            await described_by(issuer.url, audience="shop").authenticate(Sent("token"))


def described_by(url: str, **options: Any) -> Introspection:
    return Introspection(url, client_id="shop", client_secret=SECRET, endpoint=f"{url}/introspect", **options)


async def test_a_client_without_a_user_is_accepted_only_if_allowed() -> None:
    async with issuing() as issuer:
        issuer.documents["/introspect"] = {"active": True, "client_id": "robot"}
        found = await described_by(issuer.url, allow_clients=True).authenticate(Sent("token"))
        assert found.id == f"{issuer.url}#robot"


async def test_a_wrong_secret_is_the_fault_of_the_server_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async with opaque() as (server, _):
        auth = declared(server, client_secret="wrong-secret-of-the-shop")
        token = server.access_token()
        with caplog.at_level(logging.DEBUG), pytest.raises(IssuerUnavailable):
            await auth.authenticate(Sent(token))
    assert "is this the client ID of this server there, with its secret?" in caplog.text
    assert "wrong-secret" not in caplog.text + repr(auth)
    assert token not in caplog.text


@pytest.mark.parametrize("options", [{"client_secret": ""}, {"client_id": ""}, {"client_secret": None}])
def test_credentials_are_not_empty(options: Any) -> None:
    with pytest.raises(DeclarationError, match="client_secret"):
        Introspection("https://login.example", **{"client_id": "a", "client_secret": "b", **options})
