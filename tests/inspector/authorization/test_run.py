"""Runs of the authorization debugger against `AuthServer`, with and without faults."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import msgspec
import pytest

from accord import AuthorizationError, CredentialStore, OAuth, Server
from accord.auth.credentials import login_name
from accord.client.target import Remote
from accord.http import Forbidden
from accord.inspector.authorization.run import AuthorizationRun
from accord.inspector.authorization.sentences import STEPS
from accord.testing import AuthServer, served_over_http

from tests.auth.place import place, stored
from tests.inspector.authorization.runs import log_in, return_to, running, states


async def test_all_steps_of_a_login_are_done_in_order(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        for number in range(5):
            assert run.next_step == STEPS[number]
            await run.step()
            assert states(run) == ["done"] * (number + 1) + ["pending"] * (7 - number)
        await run.step()
        assert run.state().is_waiting
        await return_to(run, at.issuer)
        assert states(run)[5] == "done"
        await run.run()
        assert states(run) == ["done"] * 8
        assert run.next_step is None
        assert at.issuer.counts["token"] == 1


async def test_each_step_has_its_evidence(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        await log_in(run, at.issuer)
        found = {step: run.evidence(step) for step in STEPS}
        assert all(each.sentences and each.comparisons and each.exchanges for each in found.values())
        assert all(value.is_as_expected for each in found.values() for value in each.comparisons)
        assert [each.exchanges[0].method for each in found.values()] == [
            *("POST", "GET", "GET", "POST", "GET", "GET", "POST", "POST")
        ]
        assert found["challenge"].exchanges[0].status == 401
        assert '"resource":' in found["resource metadata"].exchanges[0].response_body
        assert "code_challenge_method=S256" in found["authorization request"].exchanges[0].url
        assert "grant_type=authorization_code" in found["token request"].exchanges[0].request_body
        assert '"access_token":"[redacted]"' in found["token request"].exchanges[0].response_body
        assert found["authorized MCP request"].exchanges[0].request_headers["authorization"] == "Bearer [redacted]"


async def test_the_browser_returns_to_the_callback_of_this_machine(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        await run.run()
        url = at.issuer.callback(run.authorization_url)
        async with aiohttp.ClientSession() as browser, browser.get(url) as page:
            assert "Login received" in await page.text()
        await run.wait()
        assert states(run) == ["done"] * 8


async def test_a_run_changes_no_stored_login_until_it_is_saved(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        await log_in(run, at.issuer)
        assert not store.exists
        assert run.state().stored_tokens is None
        await run.save()
        login = await stored(store)
        assert login.discovery.issuer == at.issuer.issuer
        state = run.state()
        assert state.is_saved
        assert state.stored_tokens is not None
        assert state.stored_tokens.issuer == at.issuer.issuer
        await run.refresh()
        assert not run.state().is_saved
        assert (await stored(store)).tokens == login.tokens
        async with store:
            assert await store.issuers() == [at.issuer.issuer]


async def test_a_step_is_repeated_with_the_values_before_it(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        await log_in(run, at.issuer)
        before = dict(at.issuer.counts)
        await run.repeat("authorization server metadata")
        assert states(run) == ["done"] * 3 + ["pending"] * 5
        assert at.issuer.counts["resource"] == before["resource"]
        assert at.issuer.counts["metadata/oauth"] == before["metadata/oauth"] + 1
        await run.run()
        await return_to(run, at.issuer)
        assert states(run) == ["done"] * 8


async def test_a_code_is_refused_the_second_time(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        await log_in(run, at.issuer)
        await run.repeat("token request")
        failed = run.evidence("token request")
        assert (failed.state, failed.cure) == ("failed", "log in again")
        assert "invalid_grant" in failed.text


async def test_a_step_needs_those_before_it(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        with pytest.raises(AuthorizationError, match=r"it needs the step before it: challenge"):
            await run.repeat("token request")
        with pytest.raises(AuthorizationError, match=r"there is no such step"):
            await run.repeat("teapot")
        with pytest.raises(AuthorizationError, match=r"there is no URL yet"):
            run.authorization_url  # noqa: B018
        with pytest.raises(AuthorizationError, match=r"no login waits for a callback"):
            run.receive_callback("http://127.0.0.1/callback?code=1")
        for action in (run.refresh, run.save, run.log_out):
            with pytest.raises(AuthorizationError, match=r"the run has no tokens"):
                await action()


async def test_one_step_runs_at_a_time_and_can_be_stopped(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        await run.run()
        for action in (run.step, run.run, lambda: run.repeat("challenge")):
            with pytest.raises(AuthorizationError, match=r"callback: a step is running"):
                await action()
        await run.stop()
        assert states(run)[5] == "stopped"
        await run.run()
        await return_to(run, at.issuer)
        assert states(run) == ["done"] * 8


async def test_a_server_without_a_login_ends_the_run_after_the_challenge(store: CredentialStore) -> None:
    with served_over_http(Server("open")) as url:
        async with running(url, store) as run:
            await run.run()
            assert states(run) == ["done"] + ["pending"] * 7
            assert not run.state().is_login_needed


async def test_a_server_that_is_not_there_has_a_cure(store: CredentialStore) -> None:
    async with running("http://127.0.0.1:9/mcp", store) as run:
        await run.run()
        failed = run.evidence("challenge")
    assert (failed.state, failed.cure) == ("failed", "start the server, or correct its URL")


# --- settings ---------------------------------------------------------------------------------------------------------


async def change(run: AuthorizationRun, **settings: Any) -> None:
    run.change_settings(msgspec.structs.replace(run.state().settings, **settings))


async def test_a_setting_leaves_the_steps_before_it(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        at.issuer.set_faults("s256_missing")
        await run.run()
        failed = run.evidence("authorization request")
        assert (failed.state, "--assume-pkce" in failed.cure) == ("failed", True)
        assert [each.name for each in failed.comparisons if not each.is_as_expected] == [
            "code_challenge_methods_supported"
        ]
        await change(run, assume_pkce=True)
        assert states(run) == ["done"] * 4 + ["pending"] * 4
        await run.run()
        await return_to(run, at.issuer)
        assert states(run) == ["done"] * 8
        tokens = run.state().tokens
        assert tokens is not None
        assert tokens.relaxed == ["--assume-pkce"]


@pytest.mark.parametrize(
    ("settings", "pending"),
    [({"scopes": ["write"]}, 4), ({"client_id": "me"}, 3), ({"issuer": "{issuer}"}, 1), ({"resource": "{url}"}, 1)],
    ids=str,
)
async def test_each_setting_is_used(settings: dict[str, Any], pending: int, store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        at.issuer.add_client("me")
        await log_in(run, at.issuer)
        filled = {"{issuer}": at.issuer.issuer, "{url}": at.url}
        await change(run, **{name: filled.get(str(value), value) for name, value in settings.items()})
        assert states(run) == ["done"] * pending + ["pending"] * (8 - pending)
        await log_in(run, at.issuer)
        assert states(run) == ["done"] * 8
        tokens = run.state().tokens
        assert tokens is not None
        if "scopes" in settings:
            assert "write" in tokens.requested
        if "client_id" in settings:
            assert (tokens.client_id, tokens.client_source) == ("me", "given")


async def test_a_client_registers_anew_on_request_and_at_each_repetition(store: CredentialStore) -> None:
    async with place() as at:
        async with running(at.url, store) as first:
            await log_in(first, at.issuer)
            await first.save()
        async with running(at.url, store) as second:
            await log_in(second, at.issuer)
            assert at.issuer.counts["registration"] == 1
            assert "registered before" in second.evidence("client registration").text
            await change(second, new_client=True)
            await log_in(second, at.issuer)
            assert at.issuer.counts["registration"] == 2
            await second.repeat("client registration")
            assert at.issuer.counts["registration"] == 3
            assert "registered now" in second.evidence("client registration").text


async def test_the_choices_of_the_stored_login_are_the_first_settings(store: CredentialStore) -> None:
    async with place() as at:
        async with running(at.url, store, issuer=at.issuer.issuer, assume_pkce=True) as first:
            await log_in(first, at.issuer)
            await first.save()
        async with running(at.url, store) as second:
            settings = second.state().settings
        assert (settings.issuer, settings.assume_pkce, settings.resource) == (at.issuer.issuer, True, None)


# --- tokens -----------------------------------------------------------------------------------------------------------


async def test_tokens_are_states(store: CredentialStore) -> None:
    async with place(lifetime=600) as at, running(at.url, store) as run:
        await log_in(run, at.issuer)
        tokens = run.state().tokens
        assert tokens is not None
        assert (tokens.issuer, tokens.resource, tokens.token_type) == (at.issuer.issuer, at.url, "Bearer")
        assert tokens.is_refreshable
        assert not tokens.is_expired
        assert "read" in tokens.scopes
        assert tokens.jwt is None


async def test_an_expired_token_is_renewed_before_the_next_request(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        await log_in(run, at.issuer)
        run.expire()
        state = run.state()
        assert state.tokens is not None
        assert state.tokens.is_expired
        assert state.next_step == "authorized MCP request"
        await run.step()
        assert states(run) == ["done"] * 8
        renewed = run.evidence("authorized MCP request").exchanges
        assert any("grant_type=refresh_token" in each.request_body for each in renewed)
        state = run.state()
        assert state.tokens is not None
        assert not state.tokens.is_expired


async def test_a_refresh_has_evidence_and_a_refused_one_ends_the_refresh_token(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        await log_in(run, at.issuer)
        await run.refresh()
        assert run.evidence("token refresh").state == "done"
        assert run.evidence("token refresh").comparisons[0].found == "a new one"
        at.issuer.set_faults("refresh_refused")
        await run.refresh()
        assert run.evidence("token refresh").state == "failed"
        tokens = run.state().tokens
        assert tokens is not None
        assert not tokens.is_refreshable


async def test_a_step_up_keeps_the_scopes_of_before(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store, scopes=["read"]) as run:
        await log_in(run, at.issuer)
        await run.step_up(["write"])
        assert run.state().is_waiting
        await return_to(run, at.issuer)
        assert states(run) == ["done"] * 8
        tokens = run.state().tokens
        assert tokens is not None
        assert {"read", "write"} <= set(tokens.scopes)


async def test_a_refusal_names_the_scopes_of_a_step_up(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store, scopes=["openid"]) as run:
        await log_in(run, at.issuer)
        at.auth.needed = {"": "write"}
        await run.repeat("authorized MCP request")
        failed = run.evidence("authorized MCP request")
        assert (failed.state, failed.cure) == ("failed", "request more scopes: step up")
        assert ("scope", "write") in [(each.name, each.expected) for each in failed.comparisons]
        assert run.state().needed_scopes == ["write"]
        await run.step_up(["write"])
        await return_to(run, at.issuer)
        assert states(run) == ["done"] * 8


async def test_a_user_who_may_not_use_the_server_has_a_cure(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        await run.run()
        accepted = at.auth.authenticate

        async def refuse(request: Any) -> Any:
            await accepted(request)
            raise Forbidden("the user may not")

        at.auth.authenticate = refuse  # type: ignore[method-assign]
        await return_to(run, at.issuer)
        failed = run.evidence("authorized MCP request")
        assert "HTTP 403" in failed.text
        assert failed.cure == "the token is valid, and its user may not do this: ask who runs the server"


async def test_a_setting_ends_a_step_up(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store, scopes=["read"]) as run:
        await log_in(run, at.issuer)
        await run.step_up(["write"])
        await return_to(run, at.issuer)
        await change(run, scopes=["openid"])
        await log_in(run, at.issuer)
        tokens = run.state().tokens
        assert tokens is not None
        assert set(tokens.requested) == {"openid", "offline_access"}


async def test_logging_out_revokes_and_forgets_the_tokens(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        await log_in(run, at.issuer)
        await run.log_out()
        assert run.evidence("token revocation").state == "done"
        assert "has revoked the tokens" in run.evidence("token revocation").text
        assert run.state().tokens is None
        assert states(run) == ["done"] * 6 + ["pending"] * 2
        assert at.issuer.counts["revocation"] == 1


async def test_the_stored_login_is_revoked_and_deleted_on_request(store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        await log_in(run, at.issuer)
        await run.save()
        await run.log_out_stored()
        assert run.state().stored_tokens is None
        async with store:
            assert login_name(at.url) not in await store.logins()
        assert at.issuer.counts["revocation"] == 1


async def test_a_new_token_that_the_server_refuses_names_both_servers(store: CredentialStore) -> None:
    async with place(faults=["no_refresh_token"]) as at, running(at.url, store) as run:
        while run.next_step != "callback":
            await run.step()
        await run.step()
        await return_to(run, at.issuer)
        await run.step()
        assert states(run) == ["done"] * 7 + ["pending"]
        at.issuer.revoke_all()
        await run.step()
        failed = run.evidence("authorized MCP request")
        assert "refused the token that" in failed.text
        assert at.issuer.issuer in failed.text
        assert failed.cure.startswith("logging in again would not help")
        assert failed.exchanges[-1].status == 401
        await run.repeat("authorized MCP request")
        failed = run.evidence("authorized MCP request")
        assert (failed.state, failed.comparisons[0].found) == ("failed", "401")
        assert failed.cure == "log in again: repeat from the challenge"


async def test_a_client_of_another_issuer_is_not_used(store: CredentialStore) -> None:
    async with place() as at, AuthServer() as other:
        at.issuer.add_client("me")
        async with running(at.url, store, client_id="me") as run:
            await log_in(run, at.issuer)
            await run.save()
            other.add_client("me")
            async with running(other.resource, store, client_id="me") as second:
                second._steps.stored = run._steps.stored  # as if the server had moved
                await second.run()
                failed = second.evidence("authorization server metadata")
        assert (failed.state, failed.failed_at) == ("failed", "authorization server")
        assert "choose it: --issuer" in failed.cure


async def test_proofs_of_possession_are_sent(store: CredentialStore) -> None:
    async with place(dpop="required") as at, running(at.url, store) as run:
        await log_in(run, at.issuer)
        assert states(run) == ["done"] * 8, run.all_evidence()
        tokens = run.state().tokens
        assert tokens is not None
        assert tokens.is_bound_to_key
        sent = run.evidence("authorized MCP request").exchanges[-1]
        assert sent.request_headers["dpop"] == "[redacted]"
        assert [each.name for each in sent.jwts] == ["dpop"]


async def test_a_run_can_be_closed_while_it_waits(store: CredentialStore) -> None:
    async with place() as at:
        run = AuthorizationRun(Remote(at.url), OAuth(store=store))
        await run.open()
        await run.run()
        await asyncio.wait_for(run.close(), 10)
