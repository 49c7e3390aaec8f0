"""Logins, refreshes and logouts in any order against `AuthServer` with any faults, over real sockets.

The outcome is always success, or an `AuthorizationError` that names its step and shows no secret; the second issuer
never receives a secret.
"""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from accord.auth import http as oauth_http
from accord.auth.http import OAuthClient
from accord.errors import AuthorizationError
from accord.testing import AuthServer
from accord.testing.auth_server.faults import FAULTS

from tests.auth.flow import Login, log_in

ELSEWHERE = ("device", "jwks", "introspection", "challenge", "program", "credentials", "assertion", "exchange", "proof")
REACHED = [name for name in FAULTS if not name.startswith(ELSEWHERE)]
SLOW = [name for name in REACHED if name.endswith("slow")]


class Logins(RuleBasedStateMachine):
    """A client, its issuer with faults, and another issuer."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.login: Login | None = None
        self.server, self.other = AuthServer(jwt=False), AuthServer(jwt=False)
        for each in (self.server, self.other):
            self.runner.run(each.__aenter__())
        self.server.other = self.other.issuer
        self.http = OAuthClient(self.server.resource)

    @rule(names=st.sets(st.sampled_from([name for name in REACHED if name not in SLOW]), min_size=1, max_size=3))
    def change_faults(self, names: set[str]) -> None:
        self.server.set_faults(*names)

    @rule()
    def mend(self) -> None:
        self.server.set_faults()

    @rule()
    def log_in(self) -> None:
        previous = self.login.tokens.requested if self.login else []
        steps = log_in(self.server.resource, self.http, self.server.callback, previous=previous)
        self.login = self.attempt(steps) or self.login

    @precondition(lambda self: self.login is not None)
    @rule()
    def refresh(self) -> None:
        assert self.login is not None
        self.login = self.attempt(self.login.refresh(self.http)) or self.login

    @precondition(lambda self: self.login is not None)
    @rule()
    def log_out(self) -> None:
        assert self.login is not None
        self.attempt(self.login.revoke(self.http))

    def attempt(self, steps):  # type: ignore[no-untyped-def]
        """Return the outcome, or None after an `AuthorizationError`; any other exception fails the test."""
        try:
            outcome = self.runner.run(asyncio.wait_for(steps, 60))
        except AuthorizationError as exc:
            self.check(exc)
            return None
        issuer = outcome.discovery.issuer if isinstance(outcome, Login) else self.server.issuer
        assert issuer.rstrip("/") == self.server.issuer, self.server
        return outcome

    def check(self, error: AuthorizationError) -> None:
        assert error.step, self.server
        assert str(error).isprintable(), self.server
        text = f"{error} {error!r} {error.__cause__}"
        assert not [secret for secret in self.server.secrets if secret in text], self.server

    def teardown(self) -> None:
        received = {secret for request in self.other.requests for secret in request.secrets}
        self.runner.run(self.http.close())
        for each in (self.server, self.other):
            self.runner.run(each.__aexit__(None, None, None))
        self.runner.close()
        assert not received, self.other.requests


Logins.TestCase.settings = settings(max_examples=50, stateful_step_count=10)
TestLogins = Logins.TestCase


@pytest.mark.parametrize("name", SLOW)
async def test_a_slow_answer_ends_at_the_time_limit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oauth_http, "SECONDS", 0.2)
    async with AuthServer(jwt=False, faults={name}) as server:
        http = OAuthClient(server.resource)
        try:
            with pytest.raises(AuthorizationError, match=r"did not answer within 0\.2 s"):
                await log_in(server.resource, http, server.callback)
        finally:
            await http.close()
