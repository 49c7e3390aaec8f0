"""The end of a login: its tokens are revoked, and it is deleted."""

from __future__ import annotations

from accord.auth.client_authentication import SecretAuthentication
from accord.auth.credential_store import CredentialStore
from accord.auth.credentials import login_name
from accord.auth.http import OAuthClient
from accord.auth.login import Login
from accord.auth.steps import run_steps
from accord.auth.tokens import revoke_token
from accord.errors import AuthorizationError, StoreError
from accord.transport.http.redaction import without_credentials_malformed


async def log_out(url: str, store: CredentialStore) -> str:
    """Revoke and delete the stored login at the MCP server at `url`; return the outcome in words.

    Raises `StoreError`.
    """
    shown = without_credentials_malformed(url)
    none = f"there is no login at {shown}; accord auth status lists your logins"
    if not store.exists:
        return none
    name = login_name(url)
    async with store, store.lease(name):  # a renewal at the same time would store the login again
        if name not in await store.logins():
            return none
        try:
            login = await store.load(name)
            revoked = "its tokens are not in the keyring any more" if login is None else await _revoked(login)
        except StoreError as exc:  # of the keyring
            revoked = f"the tokens could not be revoked: {exc}"
        await store.delete(name)
    return f"logged out of {shown}; {revoked}"


async def _revoked(login: Login) -> str:
    http = OAuthClient(login.discovery.server)
    try:
        return await revoke_login(login, http)
    finally:
        await http.close()


async def revoke_login(login: Login, http: OAuthClient) -> str:
    """Revoke the tokens of a login, as far as its authorization server allows; return the outcome in words."""
    tokens, metadata = login.tokens, login.discovery.metadata
    token, hint = (
        (tokens.refresh_token, "refresh_token") if tokens.refresh_token else (tokens.access_token, "access_token")
    )
    try:
        steps = revoke_token(metadata, SecretAuthentication(login.client), token, hint)
        if await run_steps(steps, http.send):
            return f"{metadata.issuer} has revoked the tokens"
    except AuthorizationError as exc:
        return f"the tokens could not be revoked: {exc}"
    return f"{metadata.issuer} cannot revoke tokens; they are valid until they expire"
