"""`accord call`: call a tool.

Progress goes to stderr: as one updated line on a terminal, as a line per report elsewhere.
"""

from __future__ import annotations

import difflib
import sys
from typing import Any

import click
import msgspec
from msgspec import UNSET

from accord.cli import completion, content, values
from accord.cli.answer_options import AnswerOptions, asking_options, client_options
from accord.cli.columns import width
from accord.cli.failures import EXIT_CODES, TOOL_FAILED, printable, red
from accord.cli.run_client import run_with_client, target_for
from accord.cli.screen import screen
from accord.cli.settings import ConnectionSettings, settings_options
from accord.cli.trace import log_level_option, log_options
from accord.client.client import Client
from accord.client.results import ToolResult
from accord.client.target import Command
from accord.errors import InvalidParams

_BAR = 24
_MAX_COMPARED = 1_000
"""The maximum number of tool names that a mistyped one is compared with."""


class ProgressLine:
    """Prints progress reports; `done()` clears the line."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()

    def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        text = progress_text(progress, total, message)
        if not self._live:
            screen.print_line(f"progress: {text}")
            return
        line = f"{bar(progress, total)} {text}" if total else text
        screen.update_line(line[: width(sys.stderr) - 1])

    def done(self) -> None:
        """Clear the line."""
        screen.clear_line()


def progress_text(progress: float, total: float | None, message: str | None) -> str:
    """Return a progress report as text: `2/5 message`."""
    count = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
    return f"{count} {' '.join(printable(message).split())}" if message else count


def bar(progress: float, total: float) -> str:
    """Return a progress bar."""
    filled = round(_BAR * min(max(progress / total, 0), 1))
    return "█" * filled + "░" * (_BAR - filled)


_EPILOG = f"""\
\b
Arguments:
  city=Oslo days=3      values are parsed by the schema of the tool
  tags=a tags=b         repeated keys make an array
  days:=3               := passes a JSON value

{EXIT_CODES}"""


_ENDS_WITH_COMMAND = (
    "the server's process ends with this command: the task fails, or runs again from the start if its tool allows it; "
    "to let it go on, serve over HTTP (accord run FILE --http :8000) and call the URL"
)


@click.command(epilog=_EPILOG)
@click.argument("target", shell_complete=completion.target)
@click.argument("tool", shell_complete=completion.names("tools"))
@click.argument("words", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--args", "given", metavar="JSON", help="All arguments as a JSON object; @FILE, or - for stdin.")
@click.option("-o", "--output", metavar="FILE", help="Save images, audio and embedded resources; - for stdout.")
@click.option("--detach", is_flag=True, help="Print the id of the task that the call becomes, for `accord task`.")
@log_level_option
@asking_options
@settings_options
def command(
    target: str,
    tool: str,
    words: tuple[str, ...],
    given: str | None,
    output: str | None,
    detach: bool,
    log_level: str | None,
    answers: AnswerOptions,
    settings: ConnectionSettings,
) -> int:
    """Call a tool and print its result. Progress is printed to stderr."""
    values.pairs(words)
    document = values.document(given) if given is not None else {}

    async def work(client: Client) -> int:
        arguments = {**document, **(values.arguments_of(words, await _schema(client, tool)) if words else {})}
        result = await _detach(client, tool, arguments) if detach else await _call(client, tool, arguments)
        if isinstance(result, str):
            if isinstance(target_for(target, settings), Command):
                screen.warn(_ENDS_WITH_COMMAND)
            content.echo_json({"taskId": result}) if settings.as_json else click.echo(result)
            return 0
        if output is not None and not result.is_error:
            content.save(content.binaries(result.content), output)
            if output != "-" and result.structured_content is not UNSET:
                click.echo(content.pretty(result.data))
        else:
            show(tool, result, settings)
        return TOOL_FAILED if result.is_error else 0

    return run_with_client(target, settings, work, {**client_options(target, answers), **log_options(log_level)})


async def _schema(client: Client, name: str) -> dict[str, Any]:
    return next((tool.input_schema for tool in await client.list_tools() if tool.name == name), {})


async def _call(client: Client, name: str, arguments: dict[str, Any]) -> ToolResult:
    progress = ProgressLine()
    try:
        return await client.call_tool(name, arguments, on_progress=progress)
    except InvalidParams as exc:
        known = [tool.name for tool in await client.list_tools()]
        near = [each for each in known if abs(len(each) - len(name)) <= len(name)][:_MAX_COMPARED]
        if name not in known and (close := difflib.get_close_matches(name, near, 1)):
            exc.message += f"; did you mean {close[0]!r}?"
        raise
    finally:
        progress.done()


async def _detach(client: Client, name: str, arguments: dict[str, Any]) -> ToolResult | str:
    """Return the id of the task that a call becomes, or its result if it becomes none."""
    handle = await client.start_tool(name, arguments)
    return handle.id or await handle.result()


def show(tool: str, result: ToolResult, settings: ConnectionSettings) -> None:
    """Print the result to stdout, or a tool error to stderr."""
    if settings.as_json:
        content.echo_json(msgspec.structs.replace(result, output_schema=None))
    elif result.is_error:
        message = "\n".join(printable(content.block_text(block)) for block in result.content)
        click.echo(f"{red('error:')} {printable(tool)} failed: {message}", err=True)
    else:
        for line in content.result_lines(result):
            click.echo(line)
