"""`accord auth`: the logins of this user, and how a server authorizes clients."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import click

from accord.auth.credential_store import CredentialStore, Login
from accord.cli.content import echo_json
from accord.cli.failures import EXIT_CODES, printable


@click.group(epilog=EXIT_CODES)
def command() -> None:
    """Show logins."""


@command.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(as_json: bool) -> int:
    """List the logins of this user: where, until when, and which rules were relaxed. No token is shown."""
    logins = asyncio.run(_logins())
    if as_json:
        echo_json([_record(name, login) for name, login in logins.items()])
    elif not logins:
        click.echo("there is no login; log in with: accord login URL")
    for name, login in {} if as_json else logins.items():
        click.echo(printable(f"{name}: {'; '.join(_facts(login))}"))
    return 0


async def _logins() -> dict[str, Login]:
    store = CredentialStore()
    if not store.exists:
        return {}
    await store.open()
    try:
        return await store.logins()
    finally:
        await store.close()


def _facts(login: Login) -> Iterator[str]:
    tokens = login.tokens
    yield f"issuer {login.discovery.issuer}"
    yield f"client {login.client.client_id} ({login.client.source})"
    if tokens.scopes:
        yield f"scopes {' '.join(tokens.scopes)}"
    yield _lifetime(login)
    if login.chosen_issuer:
        yield "the issuer was chosen with --issuer"
    if login.assume_pkce:
        yield "S256 was assumed with --assume-pkce"


def _lifetime(login: Login) -> str:
    tokens = login.tokens
    if tokens.refresh_token is not None:
        return "renewed automatically"
    if tokens.expires_at is None:
        return "no known end"
    minutes = (tokens.expires_at - time.time()) / 60
    return f"expires in {minutes:.0f} min" if minutes > 0 else "expired: log in again"


def _record(name: str, login: Login) -> dict[str, object]:
    tokens = login.tokens
    return {
        "server": name,
        "issuer": login.discovery.issuer,
        "clientId": login.client.client_id,
        "clientSource": login.client.source,
        "scopes": tokens.scopes,
        "expiresAt": tokens.expires_at,
        "renewable": tokens.refresh_token is not None,
        "issuerChosen": login.chosen_issuer,
        "pkceAssumed": login.assume_pkce,
    }
