"""`accord read`: read a resource."""

from __future__ import annotations

import click

from accord.cli import completion, content
from accord.cli.answer_options import AnswerOptions, asking_options, client_options
from accord.cli.columns import heading
from accord.cli.failures import EXIT_CODES
from accord.cli.run_client import run_with_client
from accord.cli.settings import ConnectionSettings, settings_options
from accord.cli.trace import log_level_option, log_options
from accord.client.client import Client
from accord.messages.resources import ReadResourceResult


@click.command(epilog=EXIT_CODES)
@click.argument("target", shell_complete=completion.target)
@click.argument("uri", shell_complete=completion.names("resources"))
@click.option("-o", "--output", metavar="FILE", help="Save the contents; - writes the bytes to stdout.")
@log_level_option
@asking_options
@settings_options
def command(
    target: str,
    uri: str,
    output: str | None,
    log_level: str | None,
    answers: AnswerOptions,
    settings: ConnectionSettings,
) -> int:
    """Read a resource and print its contents."""

    async def work(client: Client) -> None:
        result = await client.read_resource(uri)
        if output is not None:
            content.save(map(content.all_of, result.contents), output)
        elif settings.as_json:
            content.echo_json(result)
        else:
            show(result)

    return run_with_client(target, settings, work, {**client_options(target, answers), **log_options(log_level)})


def show(result: ReadResourceResult) -> None:
    """Print the contents, with their URIs if there are several."""
    for contents in result.contents:
        if len(result.contents) > 1:
            click.echo(heading(contents.uri))
        click.echo(content.contents_text(contents))
