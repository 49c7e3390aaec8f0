"""`accord logout`: revoke and delete a login."""

from __future__ import annotations

import asyncio

import click

from accord.auth.credential_store import CredentialStore, Login
from accord.auth.credentials import login_name
from accord.auth.http import OAuthClient
from accord.auth.steps import run_steps
from accord.auth.tokens import SecretAuthentication, revoke_token
from accord.cli.failures import EXIT_CODES, printable
from accord.errors import AuthorizationError


@click.command(epilog=EXIT_CODES)
@click.argument("url")
def command(url: str) -> int:
    """Revoke the login at the server at URL, and delete it."""
    text = asyncio.run(_log_out(url))
    click.echo(printable(text))
    return 0


async def _log_out(url: str) -> str:
    store = CredentialStore()
    if not store.exists:
        return f"there is no login at {url}"
    await store.open()
    try:
        login = await store.load(login_name(url))
        if login is None:
            return f"there is no login at {url}"
        revoked = await _revoke(login)
        await store.delete(login_name(url))
    finally:
        await store.close()
    return f"logged out of {url}; {revoked}"


async def _revoke(login: Login) -> str:
    """Revoke the tokens of a login, as far as its authorization server allows; return the outcome in words."""
    tokens, metadata = login.tokens, login.discovery.metadata
    token, hint = (
        (tokens.refresh_token, "refresh_token") if tokens.refresh_token else (tokens.access_token, "access_token")
    )
    http = OAuthClient(login.discovery.server)
    try:
        steps = revoke_token(metadata, SecretAuthentication(login.client), token, hint)
        if await run_steps(steps, http.send):
            return f"{metadata.issuer} has revoked the tokens"
    except AuthorizationError as exc:
        return f"the tokens could not be revoked: {exc}"
    finally:
        await http.close()
    return f"{metadata.issuer} cannot revoke tokens; they are valid until they expire"
