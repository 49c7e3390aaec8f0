"""Logins are renewed before they expire and when they are refused, once, and without the user."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from accord import AuthorizationError, Client, CredentialStore, LoginNeeded, OAuth, RequestTimeout, StoreError
from accord.auth import credentials
from accord.auth.credentials import login_name

from tests.auth.place import Clock, Place, Timed, place, stored
from tests.clock import Clock as LoopClock


@contextmanager
def full_disk() -> Iterator[None]:
    """No login can be stored meanwhile."""

    async def save(*arguments: Any) -> None:
        raise StoreError("the disk is full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CredentialStore, "save", save)
        yield


@pytest.mark.parametrize("lifetime", [20, 1, 0])
async def test_tokens_with_a_short_lifetime_are_used(lifetime: float, store: CredentialStore) -> None:
    clock = Clock()
    async with place(lifetime=lifetime or 1e-9, clock=clock) as at:
        at.auth.accepts_expired = lifetime == 0
        if not lifetime:
            at.issuer.set_faults("expires_in_zero")
        async with Client(at.url, auth=Timed(at.login(store), clock)) as client:
            for _ in range(5):
                assert (await client.call_tool("who")).text == "alice"
        assert at.issuer.counts["authorization"] == 1
        assert at.issuer.counts["token"] <= (2 if lifetime else 10)


async def test_a_failed_renewal_does_not_stop_a_token_that_is_valid(store: CredentialStore) -> None:
    clock = Clock()
    async with place(clock=clock) as at, Client(at.url, auth=Timed(at.login(store), clock)) as client:
        await client.call_tool("who")
        at.issuer.set_faults("refresh_500")
        clock.now += 3_580  # its last 20 s
        before = at.issuer.counts["token"]
        for _ in range(5):
            assert (await client.call_tool("who")).text == "alice"
        assert at.issuer.counts["token"] == before + 1, "not one attempt for each request"
        clock.now += 21
        at.issuer.set_faults()
        await client.call_tool("who")
        assert at.issuer.counts["token"] == before + 2
        assert at.issuer.counts["authorization"] == 1, "the user is not asked"


async def test_a_renewed_login_is_used_and_stored_later_if_the_disk_is_full(
    store: CredentialStore, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    async with place(clock=clock) as at:
        async with Client(at.url, auth=Timed(at.login(store), clock)) as client:
            await client.call_tool("who")
            with full_disk():
                clock.now += 3_601
                for _ in range(3):
                    assert (await client.call_tool("who")).text == "alice"
            assert "is not stored yet: the disk is full" in caplog.text
            before = (await stored(store)).tokens.refresh_token
            clock.now += 3_601
            assert (await client.call_tool("who")).text == "alice"
            assert before != (await stored(store)).tokens.refresh_token
            with full_disk():
                at.issuer.expire_access_tokens()  # refused, before the client knows that it expired
                assert (await client.call_tool("who")).text == "alice"
                at.issuer.expire_access_tokens()
                with pytest.raises(AuthorizationError, match="stored login: the disk is full"):
                    await client.call_tool("who")
        async with Client(at.url, auth=Timed(at.login(store), clock)) as client:  # `close` has stored it
            assert (await client.call_tool("who")).text == "alice"
        assert at.issuer.counts["authorization"] == 1, "no refresh token was used twice"
        assert not any(token.authorization.revoked for token in at.issuer._tokens.tokens.values())


async def test_a_renewed_login_is_stored_as_soon_as_the_disk_has_room(
    store: CredentialStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "_STORE_AGAIN_SECONDS", 0.01)
    clock = Clock()
    async with place(clock=clock) as at, Client(at.url, auth=Timed(at.login(store), clock)) as client:
        await client.call_tool("who")
        before = await stored(store)
        with full_disk():
            clock.now += 3_601
            await client.call_tool("who")
            await asyncio.sleep(0.1)  # several attempts fail
        async with asyncio.timeout(30):
            while await stored(store) == before:
                await asyncio.sleep(0.01)
        clock.now += 3_601
        async with Client(at.url, auth=Timed(at.login(store), clock)) as other:
            assert (await other.call_tool("who")).text == "alice"
        assert at.issuer.counts["authorization"] == 1, "no process used a refresh token twice"


async def test_a_client_that_is_opened_again_stores_what_it_could_not_store_before(store: CredentialStore) -> None:
    async with place() as at:
        client = Client(at.url, auth=at.login(store))
        async with client:
            await client.call_tool("who")
        with full_disk():
            async with client:
                at.issuer.expire_access_tokens()
                await client.call_tool("who")
            with pytest.raises(AuthorizationError, match="stored login: the disk is full"):
                await client.connect()
        async with client:
            assert (await client.call_tool("who")).text == "alice"
        async with Client(at.url, auth=at.login(store)) as other:
            assert (await other.call_tool("who")).text == "alice"
        assert at.issuer.counts["authorization"] == 1


async def test_a_login_elsewhere_helps_a_client_that_runs(store: CredentialStore) -> None:
    clock = Clock()
    async with place(clock=clock) as at, Client(at.url, auth=at.login(store)) as user:
        await user.call_tool("who")
        async with Client(at.url, auth=Timed(at.login(store, interactive=False), clock)) as program:
            for token in at.issuer._tokens.tokens.values():
                token.authorization.revoked = True
            with pytest.raises(LoginNeeded):
                await program.call_tool("who")
            await user.call_tool("who")  # the user logs in again
            assert (await program.call_tool("who")).text == "alice"
            at.auth.needed["who"] = "write"
            with pytest.raises(LoginNeeded):
                await program.call_tool("who")
            await user.call_tool("who")
            assert (await program.call_tool("who")).text == "alice"


async def test_a_user_who_logs_in_meanwhile_keeps_the_new_login(store: CredentialStore) -> None:
    clock = Clock()
    async with place(clock=clock) as at:
        async with Client(at.url, auth=Timed(at.login(store), clock)) as client:
            await client.call_tool("who")
            with full_disk():
                clock.now += 3_601
                await client.call_tool("who")
            found = await stored(store)
            new = replace(found, tokens=replace(found.tokens, access_token="new"))
            async with store:
                await store.save(login_name(at.url), new)
        assert await stored(store) == new


async def test_a_store_that_fails_does_not_stop_a_token_that_is_valid(
    store: CredentialStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    async with place(clock=clock) as at, Client(at.url, auth=Timed(at.login(store), clock)) as client:
        await client.call_tool("who")
        for method in ("load", "_take_lease"):
            with monkeypatch.context() as failing:
                failing.setattr(CredentialStore, method, _failing)
                clock.now += 3_580  # its last 20 s
                for _ in range(2):
                    assert (await client.call_tool("who")).text == "alice"
                clock.now += 21
                with pytest.raises(AuthorizationError, match="stored login: the disk failed"):
                    await client.call_tool("who")
            assert (await client.call_tool("who")).text == "alice"


def _failing(*arguments: Any) -> None:
    raise StoreError("the disk failed")


@pytest.mark.parametrize("fault", ["refresh_500", "refresh_html", "refresh_redirect", "client_unknown"])
async def test_only_invalid_grant_deletes_a_refresh_token(fault: str, store: CredentialStore) -> None:
    clock = Clock()
    async with place(clock=clock) as at, Client(at.url, auth=Timed(at.login(store), clock)) as client:
        await client.call_tool("who")
        before = (await stored(store)).tokens.refresh_token
        at.issuer.set_faults(fault)
        clock.now += 3_601
        with pytest.raises(AuthorizationError, match=r"token refresh"):
            await client.call_tool("who")
        assert (await stored(store)).tokens.refresh_token == before is not None
        at.issuer.set_faults()
        assert (await client.call_tool("who")).text == "alice"
        assert at.issuer.counts["authorization"] == 1


async def test_an_expired_login_is_renewed_after_a_restart_without_the_user(store: CredentialStore) -> None:
    clock = Clock()
    async with place(clock=clock) as at:
        async with Client(at.url, auth=Timed(at.login(store), clock)) as client:
            await client.call_tool("who")
        clock.now += 7_200
        refused = at.auth.refused
        again = OAuth(store=CredentialStore(store._path), interactive=False)  # no user is present
        async with Client(at.url, auth=Timed(again, clock)) as client:
            assert (await client.call_tool("who")).text == "alice"
        assert at.auth.refused == refused, "the expired token is not sent: its expiry is stored"
        assert at.issuer.counts["authorization"] == 1


async def test_a_renewal_does_not_restore_a_login_that_was_deleted(store: CredentialStore) -> None:
    """`accord logout` cannot revoke the tokens everywhere, and other programs may run meanwhile."""
    clock = Clock()
    async with place(clock=clock) as at:
        async with Client(at.url, auth=Timed(at.login(store), clock)) as client:
            await client.call_tool("who")
        again = OAuth(store=CredentialStore(store._path), interactive=False)
        async with store, Client(at.url, auth=Timed(again, clock)) as client:
            assert (await client.call_tool("who")).text == "alice"
            await store.delete(login_name(at.url))
            at.issuer.expire_access_tokens()
            with pytest.raises(LoginNeeded):
                await client.call_tool("who")
            assert not await store.logins()


async def test_a_token_that_is_refused_before_it_expires_is_renewed_without_the_user(store: CredentialStore) -> None:
    async with place() as at:
        async with Client(at.url, auth=at.login(store)) as client:
            await client.call_tool("who")
        at.issuer.expire_access_tokens()
        async with Client(at.url, auth=OAuth(store=store, interactive=False)) as client:
            assert (await client.call_tool("who")).text == "alice"
        assert at.issuer.counts["authorization"] == 1


async def test_a_request_that_is_cancelled_does_not_lose_the_tokens_of_a_renewal(store: CredentialStore) -> None:
    async with place() as at:
        async with Client(at.url, auth=at.login(store)) as client:
            await client.call_tool("who")
            at.issuer.expire_access_tokens()
            at.issuer.set_faults("refresh_late")
            before = at.issuer.counts["token"]
            call = asyncio.create_task(client.call_tool("who"))
            while at.issuer.counts["token"] == before:
                await asyncio.sleep(0.001)
            call.cancel()
            await asyncio.wait([call])
            assert (await client.call_tool("who")).text == "alice"
            at.issuer.expire_access_tokens()
            assert (await client.call_tool("who")).text == "alice", "the new refresh token is stored"
            assert at.issuer.counts["authorization"] == 1
            at.issuer.expire_access_tokens()
            before = at.issuer.counts["token"]
            call = asyncio.create_task(client.call_tool("who"))
            while at.issuer.counts["token"] == before:
                await asyncio.sleep(0.001)
            call.cancel()
            await asyncio.wait([call])
        async with Client(at.url, auth=at.login(store)) as client:  # nor does the client that is closed
            assert (await client.call_tool("who")).text == "alice"
        assert at.issuer.counts["authorization"] == 1


class SlowUser:
    """A user who logs in at once the first time, and later when `decides` is set; who may refuse."""

    def __init__(self, at: Place) -> None:
        self.at = at
        self.visits = 0
        self.decides = asyncio.Event()
        self.refuses = False

    async def authorize(self, url: str) -> str:
        self.visits += 1
        if self.visits > 1:
            await self.decides.wait()
            if self.refuses:
                raise AuthorizationError("authorization", "the user refuses")
        return self.at.issuer.callback(url)


async def test_requests_do_not_wait_while_the_user_logs_in(store: CredentialStore) -> None:
    clock = Clock()
    async with place(clock=clock) as at:
        user = SlowUser(at)
        auth = Timed(OAuth(authorize=user.authorize, store=store), clock)
        async with Client(at.url, auth=auth, revisions=["2026-07-28"], timeout=20) as client:
            at.auth.needed["extensions"] = "write"
            waiting = asyncio.create_task(client.call_tool("extensions"))
            while user.visits < 2:
                await asyncio.sleep(0.001)
            for _ in range(3):
                assert (await client.call_tool("who")).text == "alice"
            clock.now += 3_601  # nor does the login stop a renewal
            assert (await client.call_tool("who")).text == "alice"
            assert not waiting.done()
            user.decides.set()
            await waiting
            assert {"read", "write"} <= set((await stored(store)).tokens.requested)
            assert (await client.call_tool("who")).text == "alice"
        assert user.visits == 2


async def test_a_login_that_the_user_refuses_is_not_repeated_for_each_request(store: CredentialStore) -> None:
    async with place() as at:
        user = SlowUser(at)
        auth = Timed(OAuth(authorize=user.authorize, store=store), Clock())
        async with Client(at.url, auth=auth) as client:
            at.issuer.revoke_all()
            calls = [asyncio.create_task(client.call_tool("who")) for _ in range(10)]
            assert auth.made is not None
            while len(auth.made._login_lock._waiters or ()) < 9:  # type: ignore[attr-defined]
                await asyncio.sleep(0.001)
            user.refuses = True
            user.decides.set()
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(outcome, AuthorizationError) for outcome in outcomes), outcomes
            assert user.visits == 2
            user.refuses = False
            assert (await client.call_tool("who")).text == "alice", "a later request asks again"


async def test_a_server_that_demands_ever_new_logins_does_not_open_the_browser_without_end(
    store: CredentialStore,
) -> None:
    """It may end the session and demand a login again and again, also while the program does nothing."""
    clock = Clock()
    async with place(clock=clock) as at, Client(at.url, auth=Timed(at.login(store), clock)) as client:
        for _ in range(9):
            at.issuer.revoke_all()
            assert (await client.call_tool("who")).text == "alice"
        for _ in range(9):
            at.issuer.revoke_all()
            with pytest.raises(AuthorizationError, match="demanded more than 10 logins in 600 s"):
                await client.call_tool("who")
        assert at.issuer.counts["authorization"] == 10
        clock.now += 600
        assert (await client.call_tool("who")).text == "alice"


async def test_what_is_left_of_the_total_timeout_holds_after_a_login(store: CredentialStore) -> None:
    clock = LoopClock()
    async with place() as at:
        user = SlowUser(at)
        async with Client(
            at.url, auth=OAuth(authorize=user.authorize, store=store), revisions=["2026-07-28"]
        ) as client:
            at.auth.needed |= {"wait": "write", "who": "write"}
            for tool in ("wait", "who"):
                user.decides.clear()
                at.issuer.revoke_all()
                visits = user.visits
                call = asyncio.create_task(client.call_tool(tool, total_timeout=50))
                while user.visits == visits:
                    await asyncio.sleep(0.001)
                await clock.jump(51)
                user.decides.set()
                if tool == "wait":
                    await at.waits.wait()
                    await clock.jump(51)
                    with pytest.raises(RequestTimeout):
                        await asyncio.wait_for(call, 100)
                else:
                    assert (await call).text == "alice", "the time of the user does not count"


async def test_another_user_who_logs_in_gets_a_session_of_their_own(store: CredentialStore) -> None:
    users = ["alice"]
    async with (
        place(user=lambda attempt: users[0]) as at,
        Client(at.url, auth=at.login(store), revisions=["2025-11-25"]) as client,
    ):
        assert (await client.call_tool("who")).text == "alice"
        at.issuer.revoke_all()
        users[0] = "bob"
        results = await asyncio.gather(*(client.call_tool("who") for _ in range(5)))
        assert {result.text for result in results} == {"bob"}
        assert at.issuer.counts["authorization"] == 2


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_subscription_logs_the_user_in_as_a_call_does(revision: str, store: CredentialStore) -> None:
    async with place() as at, Client(at.url, auth=at.login(store), revisions=[revision]) as client:
        await client.call_tool("who")
        at.issuer.revoke_all()
        async with client.subscribe("desk://note") as subscription:
            assert subscription.granted.resource_subscriptions == ["desk://note"]
        assert at.issuer.counts["authorization"] == 2
        at.issuer.revoke_all()
        at.issuer.set_faults("login_denied")
        with pytest.raises(AuthorizationError, match="access_denied"):
            async with client.subscribe("desk://note"):
                pass


@pytest.mark.parametrize("previous", [None, "stored"])
async def test_without_a_user_each_request_fails_at_once(previous: Any, store: CredentialStore) -> None:
    async with place() as at:
        if previous:
            async with Client(at.url, auth=at.login(store)) as client:
                await client.call_tool("who")
            at.issuer.revoke_all()
        with pytest.raises(LoginNeeded, match=f"run: accord login {at.url}"):
            await Client(at.url, auth=OAuth(store=store, interactive=False)).connect()


async def test_a_login_that_cannot_be_read_is_an_error_with_its_cure(store: CredentialStore) -> None:
    async with place() as at:
        async with Client(at.url, auth=at.login(store)) as client:
            await client.call_tool("who")
        store._path.chmod(0o644)
        with pytest.raises(AuthorizationError, match=r"stored login: .* can be read by others .*: run chmod 600"):
            await Client(at.url, auth=at.login(CredentialStore(store._path))).connect()
        assert at.issuer.counts["authorization"] == 1
