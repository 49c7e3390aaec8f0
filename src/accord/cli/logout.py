"""`accord logout`: revoke and delete a login."""

from __future__ import annotations

import asyncio

import click

from accord.auth.credential_store import CredentialStore
from accord.auth.logout import log_out
from accord.cli import completion
from accord.cli.failures import EXIT_CODES, printable
from accord.client.target import Remote, parse
from accord.errors import TargetError


@click.command(epilog=EXIT_CODES)
@click.argument("url", shell_complete=completion.target)
def command(url: str) -> int:
    """Revoke the login at the server at URL, and delete it.

    URL is also mcp.json#name, a server of a configuration.
    """
    text = asyncio.run(log_out(_server_url(url), CredentialStore()))
    click.echo(printable(text))
    return 0


def _server_url(text: str) -> str:
    """Return the URL of a server, or of one in a configuration. Raises `TargetError`."""
    if "://" in text:
        return text
    target = parse(text)
    if not isinstance(target, Remote):
        raise TargetError(f"{text!r} is no URL: only servers at a URL have logins")
    return target.url
