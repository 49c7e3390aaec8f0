"""Runs of logins on another device, and of programs."""

from __future__ import annotations

import pytest

from accord import AuthorizationError, ClientCredentials, CredentialStore
from accord.client.target import Remote
from accord.inspector.authorization.run import AuthorizationRun
from accord.inspector.authorization.sentences import GRANT_STEPS
from accord.inspector.authorization.settings import RunSettings

from tests.auth.place import place, stored
from tests.inspector.authorization.runs import running, states

SECRET = "the-secret-of-the-robot"


def evidence(run: AuthorizationRun) -> str:
    return repr(run.all_evidence()) + repr(run.state())


async def test_a_login_on_another_device_shows_its_page_and_waits(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store, device=True) as run:
        assert [each.step for each in run.state().steps] == [*GRANT_STEPS["device"]]
        await run.run()
        assert run.state().is_waiting
        assert run.user_page.user_code == "CODE-0001"
        assert run.user_page.url == f"{at.issuer.issuer}/activate?user_code=CODE-0001"
        at.issuer.approve_device("CODE-0001")
        await run.wait()
        assert states(run) == ["done"] * 7, evidence(run)
        assert run.state().tokens is not None
        await run.save()
        login = await stored(store)
        assert login.tokens.access_token not in evidence(run)
        assert "CODE-0001" not in evidence(run)
        assert all(code not in evidence(run) for code in at.issuer._tokens.devices)


async def test_a_device_that_refuses_fails_its_step(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store, device=True) as run:
        await run.run()
        at.issuer.approve_device("CODE-0001", None)
        await run.wait()
        assert states(run)[-2:] == ["failed", "pending"]
        assert run.evidence("login on another device").cure == "the user has refused; log in again"


async def test_a_server_without_logins_on_another_device_fails_at_that_step(store: CredentialStore) -> None:
    async with place(faults={"device_endpoint_missing"}) as at, running(at.url, store, device=True) as run:
        await run.run()
        found = run.evidence("device authorization")
        assert (found.state, found.comparisons[0].is_as_expected) == ("failed", False)
        assert "log in with a browser" in found.cure


async def test_a_program_gets_its_tokens_without_a_user(store: CredentialStore) -> None:
    async with place() as at:
        at.issuer.add_client("robot", SECRET)
        run = AuthorizationRun(Remote(at.url), ClientCredentials("robot", secret=SECRET))
        await run.open()
        try:
            await run.run()
            assert [each.step for each in run.state().steps] == [*GRANT_STEPS["program"]]
            assert states(run) == ["done"] * 5, evidence(run)
            assert "grant_type=client_credentials" in run.evidence("token request").exchanges[0].request_body
            assert SECRET not in evidence(run)
            with pytest.raises(AuthorizationError, match="stores none"):
                await run.save()
            await run.repeat("token request")
            assert states(run) == ["done"] * 4 + ["pending"]
        finally:
            await run.close()


async def test_a_wrong_secret_fails_at_the_token_request(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        at.issuer.add_client("robot", SECRET)
        run.change_settings(RunSettings(client_id="robot", client_secret="the-wrong-secret", grant="program"))
        await run.run()
        assert states(run) == ["done"] * 3 + ["failed", "pending"]
        assert "invalid_client" in run.evidence("token request").text
        assert "robot is registered" in run.evidence("token request").cure
        run.change_settings(RunSettings(client_id="robot", client_secret=SECRET, grant="program"))
        assert states(run) == ["done"] * 3 + ["pending"] * 2
        await run.run()
        assert states(run) == ["done"] * 5


async def test_the_error_of_a_program_without_a_secret_says_to_set_one(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        run.change_settings(RunSettings(client_id="robot", grant="program"))
        await run.run()
        assert "set both" in run.evidence("token request").cure


async def test_another_grant_keeps_nothing_but_the_challenge(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        for _ in range(5):
            await run.step()
        run.change_settings(RunSettings(grant="device"))
        assert states(run) == ["done"] + ["pending"] * 6
        run.change_settings(RunSettings())
        assert states(run) == ["done"] + ["pending"] * 7
