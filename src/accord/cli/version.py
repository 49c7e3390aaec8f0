"""`accord version`."""

from __future__ import annotations

import json
import platform

import click

from accord import __version__
from accord.cli.settings import json_option
from accord.messages.revision import REVISIONS


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Print the version of accord, and the protocol revisions that it supports."""
    if as_json:
        info = {"accord": __version__, "python": platform.python_version(), "revisions": REVISIONS}
        click.echo(json.dumps(info, indent=2))
        return
    click.echo(f"accord {__version__} (Python {platform.python_version()})")
    click.echo(f"revisions {', '.join(REVISIONS)}")
