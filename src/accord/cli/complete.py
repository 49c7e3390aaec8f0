"""`accord complete`: complete an argument."""

from __future__ import annotations

import click

from accord.cli import completion, values
from accord.cli.content import echo_json, for_terminal
from accord.cli.failures import EXIT_CODES
from accord.cli.run_client import run_with_client
from accord.cli.screen import screen
from accord.cli.settings import ConnectionSettings, settings_options
from accord.client.client import Client
from accord.messages.completion import (
    Completion,
    CompletionContext,
    PromptReference,
    Reference,
    ResourceTemplateReference,
)
from accord.messages.views import is_type_in_revision

_EPILOG = f"""\
\b
For example:
  accord complete weather.py plan city os
  accord complete weather.py "weather://{{city}}/now" city "" country=no

{EXIT_CODES}"""


@click.command(epilog=_EPILOG)
@click.argument("target", shell_complete=completion.target)
@click.argument("ref", shell_complete=completion.names("prompts", "templates"))
@click.argument("argument")
@click.argument("value", default="")
@click.argument("words", metavar="[KEY=VALUE]...", nargs=-1)
@settings_options
def command(
    target: str, ref: str, argument: str, value: str, words: tuple[str, ...], settings: ConnectionSettings
) -> int:
    """Print the values that a server suggests for ARGUMENT, one per line; VALUE is the part that is already typed.

    REF is the name of a prompt, or the URI of a resource template. KEY=VALUE are arguments that already have a value.
    """
    context = {key: text for key, _, text in values.pairs(words)}

    async def work(client: Client) -> None:
        if context and not is_type_in_revision(CompletionContext, client.revision):
            screen.warn(f"{client.revision} completes an argument by itself: {', '.join(context)} is left out")
        completion = await client.complete(_reference(ref), argument=argument, value=value, context=context)
        if settings.as_json:
            echo_json(completion)
        else:
            show(completion)

    return run_with_client(target, settings, work)


def _reference(ref: str) -> Reference:
    """Return a reference to a template if it contains a scheme or a variable, otherwise to a prompt."""
    return ResourceTemplateReference(uri=ref) if "://" in ref or "{" in ref else PromptReference(name=ref)


def show(completion: Completion) -> None:
    """Print the suggested values, and on stderr how many more there are."""
    for value in completion.values:
        click.echo(for_terminal(value))
    if completion.has_more or (completion.total or 0) > len(completion.values):
        total = f"{completion.total:,}" if completion.total is not None else "more than these"
        click.echo(f"{len(completion.values)} of {total}", err=True)
    elif not completion.values:
        click.echo("no proposals", err=True)
