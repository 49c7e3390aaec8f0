"""`accord run`: serve the server in a Python file, over stdio or HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from accord.cli import server_file
from accord.cli.failures import EXIT_CODES
from accord.cli.settings import Decorator, traceback_option
from accord.server.server import Server


def _http_only(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Reject an option without `--http`, which click reads first."""
    if value and not ctx.params.get("http"):
        raise click.UsageError(f"{param.opts[-1]} needs --http ADDRESS")
    return value


def _option(*names: str, **options: Any) -> Decorator:
    return click.option(*names, callback=_http_only, **options)


@click.command(epilog=EXIT_CODES)
@click.argument("target", metavar="FILE.py[:NAME]")
@click.option(
    "--http",
    metavar="ADDRESS",
    is_eager=True,
    help="Serve over HTTP there: :8000 for this machine, 0.0.0.0:8000 for others; port 0 is a free one.",
)
@_option("--public-url", metavar="URL", help="The URL that clients use, if the server is behind a proxy.")
@_option("--allow-host", "hosts", metavar="HOST", multiple=True, help="Accept this Host header; may be repeated.")
@_option(
    "--allow-origin",
    "origins",
    metavar="ORIGIN",
    multiple=True,
    help="Accept requests of web pages of this origin; may be repeated.",
)
@_option(
    "--api-keys",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help='Require API keys: a JSON file, {"KEY": "principal"}.',
)
@_option(
    "--events", metavar="sqlite:FILE", help="Store sessions and events in this file, so that they survive a restart."
)
@_option("--access-log", is_flag=True, help="Log each request to stderr as a line of JSON.")
@traceback_option
def command(target: str, http: str | None, api_keys: str | None, **options: Any) -> None:
    """Serve the server in a Python file over stdio, until the client closes it, or over HTTP.

    NAME is the variable that holds the Server; without it, `server`, `mcp`, `app`, or the only one there is. What the
    file prints goes to stderr.
    """
    server = server_file.load(target)
    if http is None:
        server_file.print_waiting(target)
        server.run()
    else:
        _run_http(server, http, api_keys, **options)


def _run_http(server: Server, http: str, api_keys: str | None, *, events: str | None, **options: Any) -> None:
    from accord.server.auth.api_keys import APIKeys
    from accord.server.http.options import HTTPOptions

    if api_keys is not None:
        server.auth = APIKeys(_keys(Path(api_keys)))
    server.run(http=http, options=HTTPOptions(events=_events(events, server), **options))


def _keys(file: Path) -> dict[str, str]:
    """Return the table of API keys in a file. An error message never shows its content."""
    try:
        keys = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        keys = None
    if not isinstance(keys, dict) or not all(isinstance(principal, str) for principal in keys.values()):
        raise click.UsageError(f'{file} is not a table of keys: it is JSON like {{"KEY": "whose it is"}}')
    return keys


def _events(location: str | None, server: Server) -> Any:
    if location is None:
        return None
    kind, _, path = location.partition(":")
    if kind != "sqlite" or not path:
        raise click.UsageError(f"{location!r} is no store of events: write it as sqlite:FILE")
    from accord.store.sqlite import SQLiteEvents

    return SQLiteEvents(path, server.limits)
