"""`accord auth`: the logins of this user, and how a server authorizes clients."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Iterator

import click

from accord.auth.callback import PATH
from accord.auth.credential_store import CredentialStore
from accord.auth.login import Login
from accord.auth.registration import client_metadata_document
from accord.cli import completion
from accord.cli.content import echo_json
from accord.cli.failures import EXIT_CODES, printable
from accord.cli.login_options import LoginOptions, login_options, login_target
from accord.cli.run_client import warn_on_stderr
from accord.cli.settings import json_option
from accord.errors import AuthorizationError, TargetError
from accord.host.login_explanation import ExplainedStep, Explanation, explain


@click.group(epilog=EXIT_CODES)
def command() -> None:
    """Show logins, explain how a server authorizes clients, and write the metadata document of a client."""


@command.command(short_help="List your logins.")
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
    async with store:
        return await store.logins()


def _facts(login: Login) -> Iterator[str]:
    tokens = login.tokens
    yield f"issuer {login.discovery.issuer}"
    yield f"client {login.client.client_id} ({login.client.source})"
    if tokens.scopes:
        yield f"scopes {' '.join(tokens.scopes)}"
    yield _lifetime(login)
    if login.is_in_keyring:
        yield "its secrets are in the keyring"
    if login.chosen_issuer:
        yield "the issuer was chosen with --issuer"
    if login.chosen_resource:
        yield f"the resource {login.discovery.resource} was chosen with --resource"
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
        "resource": login.discovery.resource,
        "issuerChosen": login.chosen_issuer,
        "resourceChosen": login.chosen_resource,
        "pkceAssumed": login.assume_pkce,
    }


@command.command("explain", short_help="Show each step of a login, without logging in.")
@click.argument("url", shell_complete=completion.target)
@login_options
@json_option
def explain_command(url: str, login: LoginOptions, as_json: bool) -> int:
    """Show each step of a login at the server at URL, without logging in: what was found, and what to do about it.

    The exit code is 0 if a login is possible or not needed, else 1. Options are those of `accord login`.
    """
    warn_on_stderr()
    found = asyncio.run(explain(*login_target(url, login)))
    if found.login == "possible":
        found.next = shlex.join(["accord", "login", found.server if "://" in url else url, *login.arguments()])
    if as_json:
        echo_json(found)
    else:
        for line in _explanation_lines(found):
            click.echo(printable(line))
    return 1 if found.login == "impossible" else 0


def _explanation_lines(found: Explanation) -> Iterator[str]:
    yield found.server
    for step in found.steps:
        yield from _step_lines(step)
    yield f"login: {found.login}"
    yield f"next: {found.next}"


def _step_lines(step: ExplainedStep) -> Iterator[str]:
    place = f" at {step.url}" if step.url is not None else ""
    yield f"  {step.outcome:10} {step.step}: {step.text}{place}"
    if step.cure:
        yield f"  {'':10} cure: {step.cure}"


@command.command(short_help="Write a client ID metadata document.")
@click.argument("url")
@click.option("--redirect-uri", "redirect_uris", multiple=True, metavar="URI", help="A redirect URI; may be repeated.")
@click.option("--name", default="accord", help="The name that the authorization server shows to the user.")
@click.option("--client-uri", metavar="URL", help="A page about the client.")
def metadata(url: str, redirect_uris: tuple[str, ...], name: str, client_uri: str | None) -> int:
    """Write the client ID metadata document for URL, where you then publish it.

    URL is the client ID: accord login --client-metadata URL. Without --redirect-uri, the document has the callback of
    accord on this machine, whose port may be any.
    """
    uris = redirect_uris or (f"http://127.0.0.1{PATH}",)
    try:
        document = client_metadata_document(url, name, uris, client_uri)
    except AuthorizationError as exc:
        raise TargetError(str(exc)) from exc
    echo_json(document)
    return 0
