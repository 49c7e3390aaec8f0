"""`accord run`: serve the server in a Python file over stdio."""

from __future__ import annotations

import click

from accord.cli import program
from accord.cli.failures import EXIT_CODES
from accord.cli.settings import traceback_option


@click.command(epilog=EXIT_CODES)
@click.argument("target", metavar="FILE.py[:NAME]")
@traceback_option
def command(target: str) -> None:
    """Serve the server in a Python file over stdio, until the client closes it.

    NAME is the variable that holds the Server; without it, `server`, `mcp`, `app`, or the only one there is. What the
    file prints goes to stderr.
    """
    program.load(target).run()
