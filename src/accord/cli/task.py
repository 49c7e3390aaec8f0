"""`accord task`: look at a task, wait for it, or cancel it."""

from __future__ import annotations

import click

from accord.cli import completion
from accord.cli.answer_options import AnswerOptions, asking_options, client_options
from accord.cli.call import show
from accord.cli.content import echo_json
from accord.cli.failures import EXIT_CODES, TOOL_FAILED, printable
from accord.cli.run_client import run_with_client
from accord.cli.settings import ConnectionSettings, settings_options
from accord.client.client import Client
from accord.client.tasks import TaskState


@click.command(epilog=EXIT_CODES)
@click.argument("target", shell_complete=completion.target)
@click.argument("id")
@click.option("--wait", is_flag=True, help="Wait for the end of the task, answer what it asks, and print its result.")
@click.option("--cancel", is_flag=True, help="Cancel the task.")
@asking_options
@settings_options
def command(
    target: str, id: str, wait: bool, cancel: bool, answers: AnswerOptions, settings: ConnectionSettings
) -> int:
    """Print the state of a task that `accord call --detach` has started.

    A server over stdio is started anew, so that only tasks in a file are known to it.
    """
    if wait and cancel:
        raise click.UsageError("--wait and --cancel exclude each other")

    async def work(client: Client) -> int:
        handle = client.task(id)
        if wait:
            result = await handle.result()
            show(id, result, settings)
            return TOOL_FAILED if result.is_error else 0
        if cancel:
            await handle.cancel()
        _print_state(await handle.state(), settings)
        return 0

    return run_with_client(target, settings, work, client_options(target, answers))


def _print_state(state: TaskState, settings: ConnectionSettings) -> None:
    if settings.as_json:
        echo_json(state)
    else:
        click.echo(f"{state.status}: {printable(state.message)}" if state.message else state.status)
