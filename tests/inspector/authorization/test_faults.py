"""Each fault of `AuthServer` that a login can meet: the debugger names the step that fails, and its cure."""

from __future__ import annotations

import pytest

from accord import CredentialStore, OAuth
from accord.auth import http as oauth_http
from accord.client.target import Remote
from accord.host.login_explanation import explain
from accord.inspector.authorization.run import AuthorizationRun
from accord.testing import AuthServer
from accord.testing.auth_server.faults import FAULTS

from tests.auth.place import place
from tests.inspector.authorization.runs import log_in, return_to, running, states

OTHER_FLOWS = ("device", "jwks", "introspection", "program", "credentials", "assertion", "exchange", "revocation")
"""Faults of other grants, and of servers."""

STEP_OF = {
    "challenge": "resource metadata",
    "resource": "resource metadata",
    "metadata": "authorization server metadata",
    "registration": "client registration",
    "callback": "callback",
    "token": "token request",
}
"""The step that fails, by the endpoint of the fault."""

LATER = {
    "servers_javascript": "authorization server metadata",
    "servers_private": "authorization server metadata",
    "registration_missing": "client registration",
    "token_endpoint_link_local": "token request",
    **dict.fromkeys(("s256_missing", "s256_null", "s256_plain"), "authorization request"),
    "authorization_endpoint_missing": "authorization request",
}
"""Faults of a document that is used only in a later step."""

PROOFS = [name for name in FAULTS if "nonce" in name or name.startswith("proof")]
REACHED = [name for name in FAULTS if not name.startswith(OTHER_FLOWS) and name not in PROOFS]
REFRESH = [name for name in REACHED if name.startswith("refresh_") and name != "refresh_token_number"]
REFUSED = [name for name in REACHED if FAULTS[name].refused and name not in REFRESH]
ACCEPTED = [name for name in REACHED if not FAULTS[name].refused and name not in REFRESH]


def failing_step(name: str) -> str:
    return LATER.get(name) or STEP_OF[FAULTS[name].effects[0].endpoint.partition("/")[0]]


async def run_all(run: AuthorizationRun, issuer: AuthServer) -> None:
    await run.run()
    if run.state().is_waiting:
        await return_to(run, issuer)


def test_most_faults_are_met() -> None:
    assert len(REACHED) + len(PROOFS) >= 70


@pytest.mark.parametrize("name", REFUSED)
async def test_the_failing_step_is_named_with_its_cure(
    name: str, store: CredentialStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name.endswith("_slow"):
        monkeypatch.setattr(oauth_http, "SECONDS", 0.2)
    async with AuthServer(faults=[name], path="/tenant") as issuer, running(issuer.resource, store) as run:
        await run_all(run, issuer)
        (failed,) = [each for each in run.state().steps if each.state == "failed"]
        assert failed.step == failing_step(name)
        evidence = run.evidence(failed.step)
        assert evidence.text
        assert evidence.cure
        assert evidence.text.isprintable()
        if failed.step in ("resource metadata", "authorization server metadata", "authorization request"):
            explained = await explain(Remote(issuer.resource), OAuth(store=store))
            expected = next(step for step in explained.steps if step.outcome == "failed")
            assert evidence.failed_at == expected.step
            assert (evidence.text, evidence.cure) == (expected.text, expected.cure or explained.next)


@pytest.mark.parametrize("name", ACCEPTED)
async def test_a_fault_that_a_client_accepts_ends_no_run(name: str, store: CredentialStore) -> None:
    path = "/tenant" if name == "oidc_appended_only" else ""
    async with place(faults=[name], path=path) as at, running(at.url, store) as run:
        await run_all(run, at.issuer)
        assert states(run) == ["done"] * 8


@pytest.mark.parametrize("name", REFRESH)
async def test_a_fault_of_a_refresh_is_named_with_its_cure(name: str, store: CredentialStore) -> None:
    async with place() as at, running(at.url, store) as run:
        await log_in(run, at.issuer)
        at.issuer.set_faults(name)
        await run.refresh()
        evidence = run.evidence("token refresh")
        assert (evidence.state == "failed") == FAULTS[name].refused
        assert bool(evidence.cure) == FAULTS[name].refused


@pytest.mark.parametrize("name", PROOFS)
async def test_a_fault_of_proofs_is_named_with_its_cure(name: str, store: CredentialStore) -> None:
    async with place(dpop="required", faults=[name]) as at, running(at.url, store) as run:
        await run_all(run, at.issuer)
        failed = [each for each in run.state().steps if each.state == "failed"]
        assert [each.step for each in failed] in (["token request"], ["authorized MCP request"], ["challenge"])
        assert failed[0].cure


async def test_a_wrong_issuer_is_compared(store: CredentialStore) -> None:
    async with AuthServer(faults=["issuer_mismatch"]) as issuer, running(issuer.resource, store) as run:
        await run.run()
        (wrong,) = [
            each for each in run.evidence("authorization server metadata").comparisons if not each.is_as_expected
        ]
        assert (wrong.name, wrong.expected, wrong.found) == ("issuer", issuer.issuer, "https://other.example")


async def test_an_error_of_another_issuer_is_not_shown(store: CredentialStore) -> None:
    """ "on mismatch the client MUST NOT act on or display `error`" (Authorization Response Validation)."""
    async with (
        AuthServer(faults=["login_denied_by_another"]) as issuer,
        running(issuer.resource, store) as run,
    ):
        await run_all(run, issuer)
        evidence = run.evidence("callback")
        assert "access_denied" not in f"{evidence.text} {evidence.cure} {evidence.comparisons} {evidence.exchanges}"
