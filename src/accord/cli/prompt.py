"""`accord prompt`: get a prompt."""

from __future__ import annotations

import click

from accord.cli import completion, content, values
from accord.cli.answer_options import AnswerOptions, asking_options, client_options
from accord.cli.columns import heading
from accord.cli.failures import EXIT_CODES
from accord.cli.run_client import run_with_client
from accord.cli.settings import ConnectionSettings, settings_options
from accord.cli.trace import log_level_option, log_options
from accord.client.client import Client
from accord.messages.prompts import GetPromptResult


@click.command(epilog=EXIT_CODES)
@click.argument("target", shell_complete=completion.target)
@click.argument("name", shell_complete=completion.names("prompts"))
@click.argument("words", metavar="[KEY=VALUE]...", nargs=-1)
@log_level_option
@asking_options
@settings_options
def command(
    target: str,
    name: str,
    words: tuple[str, ...],
    log_level: str | None,
    answers: AnswerOptions,
    settings: ConnectionSettings,
) -> int:
    """Get the prompt NAME and print its messages. Arguments of prompts are strings."""
    arguments = {key: value for key, _, value in values.pairs(words)}

    async def work(client: Client) -> None:
        result = await client.get_prompt(name, arguments)
        if settings.as_json:
            content.echo_json(result)
        else:
            show(result)

    return run_with_client(target, settings, work, {**client_options(target, answers), **log_options(log_level)})


def show(result: GetPromptResult) -> None:
    """Print the messages with their roles."""
    for number, message in enumerate(result.messages):
        if number:
            click.echo()
        click.echo(heading(f"{message.role}:"))
        click.echo(content.block_text(message.content))
