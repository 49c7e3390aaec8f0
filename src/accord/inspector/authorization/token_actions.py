"""The actions of the user on the tokens of a run: refresh, let expire, revoke, save."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from accord.auth.client_authentication import SecretAuthentication
from accord.auth.dpop import DPoPKey, with_proof
from accord.auth.login import Login
from accord.auth.logout import log_out, revoke_login
from accord.auth.steps import run_steps
from accord.auth.tokens import refresh_tokens
from accord.errors import OAuthError
from accord.inspector.authorization.evidence import StepRecord
from accord.inspector.authorization.login_steps import LoginSteps


class TokenActions:
    """The actions on the tokens of a run; there must be some, except for `revoke_stored`."""

    def __init__(self, steps: LoginSteps) -> None:
        self._steps = steps

    @property
    def _login(self) -> Login:
        assert self._steps.login is not None
        return self._steps.login

    async def refresh(self, record: StepRecord) -> str:
        """Renew the tokens; return what was found. Raises `AuthorizationError`."""
        login, steps = self._login, self._steps
        steps.observe_for(record)
        key = None if login.dpop_key is None else DPoPKey(login.dpop_key)
        authentication = with_proof(SecretAuthentication(login.client), key, time.time)
        discovery, before = login.discovery, login.tokens
        request = refresh_tokens(discovery.metadata, authentication, before, discovery.resource, time.time())
        try:
            tokens = await run_steps(request, steps.http.send)
        except OAuthError as exc:
            if exc.error == "invalid_grant":  # it is not valid any more
                steps.use(_with_tokens(login, refresh_token=None))
            raise
        found = "the same" if tokens.refresh_token == before.refresh_token else "a new one"
        record.compare("refresh token", "a new one, or the same", found, True)
        steps.use(msgspec.structs.replace(login, tokens=tokens))
        return f"{discovery.issuer} issued a new token"

    def expire(self) -> None:
        """Let the access token expire, as far as the client knows: it then renews it before the next request."""
        self._steps.use(_with_tokens(self._login, expires_at=time.time() - 1))

    async def revoke(self, record: StepRecord) -> str:
        """Revoke and forget the tokens; return the outcome in words."""
        steps = self._steps
        steps.observe_for(record)
        outcome = await revoke_login(self._login, steps.http)
        steps.login = steps.previous = None
        await steps.store.delete(steps.name)
        return outcome

    async def revoke_stored(self, record: StepRecord) -> str:
        """Revoke and delete the stored login, as `accord logout` does; return the outcome in words."""
        steps = self._steps
        outcome = await log_out(steps.server.url, steps.user_store)
        steps.stored = await steps.load_stored()
        return outcome

    async def save(self) -> None:
        """Store the login of the run, and its registration, for all programs of the user. Raises `StoreError`."""
        login, steps = self._login, self._steps
        store = steps.user_store
        async with store:
            async with store.lease(steps.name):  # a renewal at the same time would replace it
                await store.save(steps.name, login)
            if login.client.source == "registered":
                await store.save_registration(steps.registration_name, login.client)
        steps.stored = await steps.load_stored()


def _with_tokens(login: Login, **changes: Any) -> Login:
    return msgspec.structs.replace(login, tokens=msgspec.structs.replace(login.tokens, **changes))
