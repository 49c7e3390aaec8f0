"""`accord login`: log in to a server, so that other commands and programs of this user can call it."""

from __future__ import annotations

import asyncio
import sys

import click

from accord.auth.oauth import OAuth
from accord.cli import completion
from accord.cli.failures import EXIT_CODES, printable
from accord.client.client import Client
from accord.client.target import Remote, parse
from accord.errors import TargetError


@click.command(epilog=EXIT_CODES)
@click.argument("url", shell_complete=completion.target)
@click.option("--client-id", help="The client ID that you registered with the authorization server.")
@click.option(
    "--client-secret",
    envvar="ACCORD_CLIENT_SECRET",
    help="Its secret. Better: set ACCORD_CLIENT_SECRET.",
    metavar="TEXT",
)
@click.option("--client-metadata", "client_metadata_url", metavar="URL", help="A client ID metadata document you host.")
@click.option("--scope", "scopes", multiple=True, metavar="NAME", help="Request this scope; repeat it for several.")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="The port of the registered redirect URI.")
@click.option("--no-browser", is_flag=True, help="Print the URL, and read the URL of the callback from stdin.")
@click.option("--issuer", metavar="URL", help="Use this authorization server, whatever the server names.")
@click.option("--resource", metavar="URL", help="Use this resource identifier, whatever the server publishes.")
@click.option("--assume-pkce", is_flag=True, help="Accept an authorization server that does not state S256.")
def command(
    url: str,
    client_id: str | None,
    client_secret: str | None,
    client_metadata_url: str | None,
    scopes: tuple[str, ...],
    port: int,
    no_browser: bool,
    issuer: str | None,
    resource: str | None,
    assume_pkce: bool,
) -> int:
    """Log in to the server at URL with your browser.

    The login is stored for this user (in a file with mode 0600), and renewed when it expires.
    --issuer, --resource and --assume-pkce relax rules of the specification.
    """
    target = parse(url)
    if not isinstance(target, Remote):
        raise TargetError(f"{url!r} is no URL: only servers at a URL have logins")
    auth = OAuth(
        client_id=client_id,
        client_secret=client_secret,
        client_metadata_url=client_metadata_url,
        scopes=scopes or None,
        port=port,
        authorize=_authorize_by_hand if no_browser else None,
        interactive=True,
        issuer=issuer,
        resource=resource,
        assume_pkce=assume_pkce,
    )
    asyncio.run(_log_in(target, auth))
    click.echo(f"logged in to {printable(str(target))}")
    return 0


async def _log_in(target: Remote, auth: OAuth) -> None:
    async with Client(target, auth=auth) as client:
        await client.ping()


async def _authorize_by_hand(url: str) -> str:
    click.echo(f"Visit this URL, log in, and paste the URL that your browser then shows:\n\n    {url}\n", err=True)
    line: str = await asyncio.to_thread(sys.stdin.readline)
    return line.strip()
