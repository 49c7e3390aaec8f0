"""`accord login`: log in to a server, so that other commands and programs of this user can call it."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from contextlib import suppress
from ssl import SSLContext
from urllib.parse import parse_qsl, urlsplit

import click

from accord.auth.credentials import GrantCredentials
from accord.auth.oauth import OAuth
from accord.cli import completion
from accord.cli.failures import EXIT_CODES, printable
from accord.cli.login_options import LoginOptions, login_options, login_target
from accord.cli.run_client import warn_on_stderr
from accord.client.client import Client
from accord.client.target import Remote
from accord.errors import AuthorizationError

_MAX_LINE = 64 << 10


@click.command(epilog=EXIT_CODES)
@click.argument("url", shell_complete=completion.target)
@login_options
@click.option("--no-browser", is_flag=True, help="Print the URL, and read the URL of the callback from stdin.")
@click.option("--device", is_flag=True, help="Print a page and a code, to log in on another device.")
def command(url: str, login: LoginOptions, no_browser: bool, device: bool) -> int:
    """Log in to the server at URL with your browser.

    URL is also mcp.json#name, a server of a configuration with its settings.
    A new login replaces the one of before, for other scopes or as another user.
    It is stored for this user, and renewed when it expires.
    --issuer, --resource and --assume-pkce relax rules of the specification.
    If it fails, accord auth explain shows why.
    """
    if no_browser and device:
        raise click.UsageError("--no-browser and --device are two ways to log in; give one of them")
    warn_on_stderr()
    authorize = _authorize_by_hand if no_browser else None
    target, auth = login_target(url, login, authorize=authorize, device=device, interactive=True)
    new = NewLogin(auth)
    asyncio.run(_log_in(target, new))
    click.echo(f"{'logged in to' if new.is_done else 'no login is needed at'} {printable(str(target))}")
    return 0


class NewLogin:
    """An `auth=` that logs in, also where there is a login."""

    def __init__(self, auth: OAuth) -> None:
        self._auth = auth
        self._credentials: GrantCredentials | None = None

    def credentials(self, server: str, *, ssl: SSLContext | None, proxy: str | None) -> GrantCredentials:
        """See `ClientAuth.credentials`."""
        self._credentials = self._auth.credentials(server, ssl=ssl, proxy=proxy)
        self._credentials.ignore_stored_login()
        return self._credentials

    @property
    def is_done(self) -> bool:
        """Whether the user has logged in."""
        return self._credentials is not None and self._credentials.has_new_login


async def _log_in(target: Remote, auth: NewLogin) -> None:
    async with Client(target, auth=auth) as client:
        await client.ping()


async def _authorize_by_hand(url: str) -> str:
    click.echo(
        f"Visit this URL, and log in:\n\n    {url}\n\n"
        "Your browser then shows a page that cannot be loaded. Paste its URL, which begins with\n"
        f"{_redirect_uri(url)}?",
        err=True,
    )
    line = (await _read_line()).strip()
    if not line:
        reason = "found the end of stdin, expected the URL that the browser shows after the login"
        raise AuthorizationError("callback", reason, "run accord login in a terminal, or with --device")
    return line


def _redirect_uri(url: str) -> str:
    """Return where an authorization request sends the browser."""
    return printable(dict(parse_qsl(urlsplit(url).query)).get("redirect_uri", ""))


async def _read_line() -> str:
    """Return a line of stdin, empty at its end. The thread that waits for it does not keep the process alive."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        found = _read_until_newline()
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(lambda: None if line.done() else line.set_result(found))

    threading.Thread(target=read, daemon=True).start()
    return (await line).decode(errors="backslashreplace")


def _read_until_newline() -> bytes:
    found = b""
    with suppress(OSError, ValueError):  # stdin is closed
        descriptor = sys.stdin.fileno() if sys.stdin is not None else -1
        while len(found) < _MAX_LINE and b"\n" not in found:  # unbuffered: a lock on stdin would stop the exit
            if not (part := os.read(descriptor, _MAX_LINE)):
                break
            found += part
    return found.partition(b"\n")[0]
