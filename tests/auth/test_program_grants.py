"""Programs log in without a user, end to end against `AuthServer`."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from accord import (
    AuthorizationError,
    Client,
    ClientCredentials,
    CredentialStore,
    EnterpriseManaged,
    Extension,
    WorkloadIdentity,
)
from accord.cli.login import NewLogin
from accord.client.authorization import ClientAuth
from accord.errors import DeclarationError
from accord.messages.capabilities import TASKS_EXTENSION
from accord.testing import AuthServer
from accord.testing.auth_server.records import RecordedRequest, Reply
from accord.testing.auth_server.signing import SigningKey

from tests.auth.place import Clock, Place, Timed, place

KEY = SigningKey("robot")
KINDS = ["secret", "key", "workload", "enterprise"]
EXTENSIONS = {
    "secret": "io.modelcontextprotocol/oauth-client-credentials",
    "key": "io.modelcontextprotocol/oauth-client-credentials",
    "workload": "io.modelcontextprotocol/auth/wif",
    "enterprise": "io.modelcontextprotocol/enterprise-managed-authorization",
}


class Programs:
    """A server, the company whose tokens its authorization server trusts, and the logins of a program there."""

    def __init__(self, at: Place, company: AuthServer) -> None:
        self.at = at
        self.company = company
        self.url = at.url
        company.add_client("at company", "secret at company")
        at.issuer.add_client("robot", "s:cret of robot")
        at.issuer.add_client("key robot", keys=KEY.public_keys())
        at.issuer.add_client("workload")
        at.issuer.add_client("at company", "secret at server")
        at.issuer.trust(company)

    def workload_token(self) -> str:
        claims = self.company._tokens.registered_claims("pod", 300)
        return self.company._tokens.remember(self.company.sign({**claims, "aud": self.at.issuer.issuer}, "JWT") + "\n")

    def auth(self, kind: str, **settings: Any) -> ClientAuth:
        """Return the login of a kind."""
        if kind == "secret":
            return ClientCredentials("robot", secret="s:cret of robot", **settings)
        if kind == "key":
            return ClientCredentials("key robot", key=KEY.private_pem().decode(), **settings)
        if kind == "workload":
            return WorkloadIdentity("workload", self.workload_token, **settings)
        return EnterpriseManaged(
            "at company",
            secret="secret at server",
            idp_token_endpoint=f"{self.company.issuer}/token",
            idp_client_id="at company",
            idp_secret="secret at company",
            id_token=lambda: self.company.id_token("alice", "at company"),
            **settings,
        )

    def forms(self) -> list[Any]:
        """Return the forms of the requests for a token."""
        return [request.parameters for request in self.at.issuer.requests if request.endpoint == "token"]

    @property
    def secrets(self) -> set[str]:
        secrets = {"s:cret of robot", "secret at company", "secret at server", KEY.private_pem().decode()[60:100]}
        return secrets | self.at.issuer.secrets | self.company.secrets


@asynccontextmanager
async def programs(company_faults: set[str] = frozenset(), **options: Any) -> AsyncIterator[Programs]:  # type: ignore[assignment]
    async with AuthServer(jwt=False, faults=company_faults) as company, place(**options) as at:
        company.other = at.issuer.issuer
        yield Programs(at, company)


SUBJECTS = {"secret": "robot", "key": "key robot", "workload": "pod", "enterprise": "alice"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_program_logs_in_by_itself_for_this_resource_and_its_scopes(kind: str, revision: str) -> None:
    async with programs() as at, Client(at.url, auth=at.auth(kind), revisions=[revision]) as client:
        assert (await client.call_tool("who")).text == SUBJECTS[kind]
        [form] = at.forms()
        assert form.get("resource", at.url) == at.url
        assert form.get("scope", "read") == "read", "the scope of the challenge, and no offline_access"
        assert at.at.issuer.counts["registration"] == at.at.issuer.counts["authorization"] == 0


@pytest.mark.parametrize("kind", KINDS)
async def test_the_extension_of_the_login_is_declared(kind: str) -> None:
    async with programs() as at:
        async with Client(at.url, auth=at.auth(kind), revisions=["2026-07-28"]) as client:
            assert json.loads((await client.call_tool("extensions")).text) == sorted(
                [EXTENSIONS[kind], TASKS_EXTENSION]
            )
        own = Extension(name="com.example/own")
        async with Client(at.url, auth=at.auth(kind), extensions=[own], revisions=["2026-07-28"]) as client:
            names = sorted([own.name, EXTENSIONS[kind], TASKS_EXTENSION])
            assert json.loads((await client.call_tool("extensions")).text) == names
        token = at.at.issuer.access_token()
        async with Client(at.url, auth=token, revisions=["2026-07-28"]) as client:
            assert json.loads((await client.call_tool("extensions")).text) == [TASKS_EXTENSION]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_new_token_is_requested_before_the_old_one_expires_and_when_it_is_refused(kind: str) -> None:
    async with programs() as at, Client(at.url, auth=at.auth(kind)) as client:
        before = len(at.forms())
        at.at.issuer.expire_access_tokens()
        assert (await client.call_tool("who")).text == SUBJECTS[kind]
        assert len(at.forms()) == before + 1
    clock = Clock()
    async with programs(lifetime=20, clock=clock) as at, Client(at.url, auth=Timed(at.auth(kind), clock)) as client:
        before = len(at.forms())
        await client.call_tool("who")
        assert len(at.forms()) == before, "a token with a short lifetime is used, too"
        clock.now += 16
        assert (await client.call_tool("who")).text == SUBJECTS[kind]
        assert (len(at.forms()), at.at.refusals) == (before + 1, 0)


@pytest.mark.parametrize("kind", KINDS)
async def test_chosen_scopes_replace_those_of_the_challenge(kind: str) -> None:
    async with programs() as at, Client(at.url, auth=at.auth(kind, scopes=["write"])) as client:
        await client.call_tool("who")
        issuer = at.company if kind == "enterprise" else at.at.issuer
        [form] = [request.parameters for request in issuer.requests if request.endpoint == "token"]
        assert form["scope"] == "write"


async def test_the_assertion_of_a_key_names_the_issuer_and_is_used_once() -> None:
    async with programs() as at:
        for _ in range(2):
            async with Client(at.url, auth=at.auth("key")) as client:
                await client.call_tool("who")
        first, second = at.forms()
        assert first["client_assertion"] != second["client_assertion"]
        assert "client_id" not in first, "the assertion names the client"


SERVER_FAULTS = {
    "program_scope_refused": r"{step} at .* answered invalid_scope: this program may only read; see .* the client",
    "program_redirect": r"{step}: .* answered with a redirect \(HTTP 307\).*does not follow it",
    "program_html": r"{step} at .*: the response cannot be used: .*; see .* the client",
}


@pytest.mark.parametrize("fault", SERVER_FAULTS)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_failure_names_step_reason_and_cure(kind: str, fault: str) -> None:
    steps = {"workload": "workload identity", "enterprise": "enterprise-managed authorization"}
    step = steps.get(kind, "client credentials")
    error = await fails(kind, fault, step)
    assert re.search(SERVER_FAULTS[fault].format(step=step), str(error)), error


async def fails(kind: str, fault: str, step: str, **options: Any) -> AuthorizationError:
    async with programs(faults={fault} if fault else (), **options) as at:
        with pytest.raises(AuthorizationError) as caught:
            await Client(at.url, auth=at.auth(kind)).connect()
        error = caught.value
        assert error.step.startswith(step), error
        assert error.cure, error
        shown = f"{error} {error!r} {error.__cause__!r}"
        assert not [secret for secret in at.secrets if secret in shown], shown
        assert at.at.issuer.counts["authorization"] == at.at.issuer.counts["registration"] == 0
        return error


REFUSALS = [
    ("secret", "credentials_unauthorized", "client credentials at .* answered unauthorized_client; see how"),
    ("secret", "credentials_echo", "client credentials at .* answered invalid_client"),
    ("key", "credentials_echo", "client credentials at .* answered invalid_client"),
    ("workload", "assertion_refused", "workload identity at .* answered invalid_grant.*how the client workload"),
    ("enterprise", "assertion_refused", "enterprise-managed authorization at .*invalid_grant.*trusts the identity"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "fault", "text"), REFUSALS)
async def test_a_refusal_of_the_authorization_server_has_a_cure(kind: str, fault: str, text: str) -> None:
    error = await fails(kind, fault, text.partition(" at ")[0])
    assert re.search(text, str(error)), error


PROVIDER_REFUSALS = {
    "exchange_refused": "access_denied.*see that the identity provider lets at company use http",
    "exchange_of_another_type": "found issued_token_type '.*:access_token', expected '.*:id-jag'.*identity provider",
    "exchange_without_type": "found issued_token_type 'None', expected '.*:id-jag'.*identity provider",
    "exchange_html": "the response cannot be used.*identity provider",
}


@pytest.mark.parametrize("fault", PROVIDER_REFUSALS)
async def test_a_refusal_of_the_identity_provider_ends_the_login_there(fault: str) -> None:
    async with programs({fault}) as at:
        with pytest.raises(AuthorizationError, match=PROVIDER_REFUSALS[fault]) as caught:
            await Client(at.url, auth=at.auth("enterprise")).connect()
        assert caught.value.step.startswith("token exchange at the identity provider")
        assert not at.forms(), "no token of the identity provider goes to the other server"
        assert not [secret for secret in at.secrets if secret in str(caught.value)]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_program_requests_the_scopes_that_an_operation_needs_with_those_of_before(kind: str) -> None:
    async with programs() as at, Client(at.url, auth=at.auth(kind), revisions=["2026-07-28"]) as client:
        at.at.auth.needed["who"] = "write"
        assert (await client.call_tool("who")).text == SUBJECTS[kind]
        issuer = at.company if kind == "enterprise" else at.at.issuer
        scopes = [request.parameters["scope"] for request in issuer.requests if request.endpoint == "token"]
        assert scopes == ["read", "read write"]


def failing() -> str:
    raise OSError("/var/run/token holds eyJh.secret")


@pytest.mark.parametrize(
    ("token", "found"),
    [(failing, "failed: OSError"), (lambda: None, "returned NoneType"), (lambda: " \n", "returned str")],
)
async def test_a_function_without_a_token_is_an_error(token: Any, found: str) -> None:
    async with programs() as at:
        with pytest.raises(
            AuthorizationError, match=f"workload identity: the function for the token {found}"
        ) as caught:
            await Client(at.url, auth=WorkloadIdentity("workload", token)).connect()
        assert "secret" not in str(caught.value)


PUBLIC_PEM = "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "needs a key or a secret"),
        ({"key": "k", "secret": "s"}, "needs a key or a secret"),
        ({"key": "not-a-pem"}, "is not a private EC key as PEM, which ES256 needs"),
        ({"key": PUBLIC_PEM}, "is not a private EC key"),
        ({"key": KEY.private_pem().decode(), "algorithm": "RS256"}, "is not a private RSA key as PEM, which RS256"),
        ({"key": KEY.private_pem().decode(), "algorithm": "HS256"}, "unknown algorithm 'HS256'; there are ES256"),
        ({"key": KEY.private_pem().decode(), "algorithm": "none"}, "unknown algorithm 'none'"),
    ],
)
def test_a_key_that_cannot_sign_is_refused_when_it_is_given(settings: Any, text: str) -> None:
    with pytest.raises(DeclarationError, match=text) as caught:
        ClientCredentials("robot", **settings)
    assert "not-a-pem" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://idp.example/token", "https://user@idp.example/token", "file:///etc/passwd"])
def test_the_token_endpoint_of_the_identity_provider_is_checked(url: str) -> None:
    with pytest.raises(AuthorizationError, match="idp_token_endpoint"):
        EnterpriseManaged("robot", idp_token_endpoint=url, idp_client_id="a", id_token="t")


async def test_no_representation_shows_a_secret() -> None:
    async with programs() as at:
        shown = "".join(repr(at.auth(kind)) for kind in KINDS)
        assert not [secret for secret in at.secrets if secret in shown]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_program_gets_a_new_token_where_the_server_issues_refresh_tokens(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RFC 6749, 4.4.3: "A refresh token SHOULD NOT be included". Some servers include one."""
    clock = Clock()
    async with programs(clock=clock, lifetime=60) as at:
        issue = at.at.issuer._tokens.issue

        def issue_with_refresh_token(*args: Any, **options: Any) -> Any:
            return issue(*args, **{**options, "refresh": True})

        monkeypatch.setattr(at.at.issuer._tokens, "issue", issue_with_refresh_token)
        async with Client(at.url, auth=Timed(at.auth(kind), clock)) as client:
            assert (await client.call_tool("who")).text == SUBJECTS[kind]
            clock.now += 50
            assert (await client.call_tool("who")).text == SUBJECTS[kind]
        grants = {str(each.parameters["grant_type"]) for each in at.at.issuer.requests if each.endpoint == "token"}
        assert "refresh_token" not in grants


def name_issuer(at: Place, *issuers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the MCP server name other authorization servers in its metadata."""
    answer = at.issuer._endpoints.answer

    def answer_with_issuer(request: RecordedRequest) -> Reply:
        reply = answer(request)
        if isinstance(reply.document, dict) and "authorization_servers" in reply.document:
            reply.document["authorization_servers"] = list(issuers)
        return reply

    monkeypatch.setattr(at.issuer._endpoints, "answer", answer_with_issuer)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_that_names_another_issuer_later_gets_no_secret_sent_there(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AuthServer(jwt=False) as other, programs() as at, Client(at.url, auth=at.auth(kind)) as client:
        assert (await client.call_tool("who")).text == SUBJECTS[kind]
        name_issuer(at.at, other.issuer, monkeypatch=monkeypatch)
        at.at.issuer.revoke_all()
        with pytest.raises(
            AuthorizationError, match=f"found issuer '{other.issuer}', expected '{at.at.issuer.issuer}'"
        ):
            await client.call_tool("who")
        assert other.counts["token"] == 0


async def test_a_server_may_name_another_issuer_before_the_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AuthServer(jwt=False) as other, programs() as at, Client(at.url, auth=at.auth("secret")) as client:
        await client.call_tool("who")
        name_issuer(at.at, other.issuer, at.at.issuer.issuer, monkeypatch=monkeypatch)
        at.at.issuer.revoke_all()
        assert (await client.call_tool("who")).text == SUBJECTS["secret"]
        assert not other.requests


@pytest.mark.parametrize("kind", KINDS)
async def test_a_chosen_issuer_alone_receives_the_secret(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with AuthServer(jwt=False) as other, programs() as at:
        name_issuer(at.at, other.issuer, monkeypatch=monkeypatch)
        async with Client(at.url, auth=at.auth(kind, issuer=at.at.issuer.issuer)) as client:
            assert (await client.call_tool("who")).text == SUBJECTS[kind]
        assert not other.requests


@pytest.mark.parametrize("command", [False, True], ids=["a call", "a new login"])
async def test_the_client_of_a_user_is_not_used_at_another_issuer(
    command: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "Clients MUST NOT reuse client credentials from a different authorization server"."""
    async with AuthServer(jwt=False) as other, place() as at:
        at.issuer.add_client("me", "secret of me", redirect_uris=["http://127.0.0.1:33418/callback"])
        store = CredentialStore(tmp_path / "credentials.db", keyring=False)
        auth = at.login(store, client_id="me", client_secret="secret of me")
        async with Client(at.url, auth=auth) as client:
            assert (await client.call_tool("who")).text == "alice"
            name_issuer(at, other.issuer, monkeypatch=monkeypatch)
            at.issuer.revoke_all()
            if not command:
                with pytest.raises(AuthorizationError, match="found issuer"):
                    await client.call_tool("who")
        if command:
            with pytest.raises(AuthorizationError, match="found issuer"):
                await Client(at.url, auth=NewLogin(auth)).connect()
        assert {request.endpoint for request in other.requests} <= {"metadata/oauth"}
