"""Runs of the authorization debugger at a server whose logins are those of oidc-provider."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from accord import CredentialStore

from tests.auth.peers.browser import Browser
from tests.auth.peers.oidc import Place, serving_protected
from tests.inspector.authorization.runs import running, states


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """oidc-provider, and a server of accord that accepts its tokens."""
    with serving_protected() as found:
        yield found


async def test_a_run_logs_in_refreshes_and_logs_out(place: Place, store: CredentialStore) -> None:
    async with running(place.url, store) as run:
        await run.run()
        run.receive_callback(await Browser().login(run.authorization_url))
        await run.wait()
        assert states(run) == ["done"] * 8, run.all_evidence()
        tokens = run.state().tokens
        assert tokens is not None
        assert (tokens.issuer, tokens.resource) == (place.provider.issuer, place.url)
        assert all(value.is_as_expected for each in run.all_evidence() for value in each.comparisons)
        if tokens.is_refreshable:
            await run.refresh()
            assert run.evidence("token refresh").state == "done"
        run.expire()
        await run.step()
        assert states(run) == ["done"] * 8
        shown = f"{run.state()} {run.all_evidence()}"
        assert place.provider.secrets
        assert not [secret for secret in place.provider.secrets if secret in shown]
        await run.save()
        await run.log_out()
        assert "has revoked the tokens" in run.evidence("token revocation").text


async def test_the_content_of_its_tokens_is_compared_and_shown(place: Place, store: CredentialStore) -> None:
    async with running(place.url, store) as run:
        await run.run()
        run.receive_callback(await Browser().login(run.authorization_url))
        await run.wait()
        names = [each.name for each in run.evidence("token request").comparisons]
        assert {"aud of the token", "iss of the token"} <= set(names)
        tokens = run.state().tokens
        assert tokens is not None
        assert tokens.jwt is not None
        assert '"kid"' in tokens.jwt.header_json
        assert place.provider.issuer in (tokens.jwt.claims_json or "")


async def test_an_unknown_client_is_refused_before_the_callback(place: Place, store: CredentialStore) -> None:
    """oidc-provider shows an error page, and never returns: the debugger waits until the user stops it."""
    async with running(place.url, store, client_id="unknown") as run:
        await run.run()
        assert run.state().is_waiting
        with pytest.raises(AssertionError, match=r"a page without a form"):
            await Browser().login(run.authorization_url)
        await run.stop()
        assert run.evidence("callback").state == "stopped"
