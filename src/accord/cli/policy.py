"""`accord policy`: the rules of a host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from accord.cli import values
from accord.cli.content import echo_json
from accord.cli.failures import EXIT_CODES, printable
from accord.cli.settings import json_option
from accord.host.configuration import read_configuration
from accord.host.policy.call import ProposedCall
from accord.host.policy.policy import RuleResult, Verdict
from accord.messages.tools import ToolAnnotations

_EPILOG = f"""\
\b
A call:
  files read_text path=/srv/x          KEY=VALUE passes a text, KEY:=VALUE a JSON value
  files read_text '{{"path": "/srv/x"}}'  all arguments as a JSON object

{EXIT_CODES}"""


@click.group(epilog=EXIT_CODES)
def command() -> None:
    """Show how the rules of a host decide."""


def _annotations(ctx: click.Context, param: click.Parameter, value: str | None) -> ToolAnnotations | None:
    try:
        return None if value is None else msgspec.json.decode(value, type=ToolAnnotations)
    except msgspec.MsgspecError as exc:
        raise click.BadParameter(f"give them as a tool has them, as JSON: {exc}") from exc


@command.command(epilog=_EPILOG)
@click.argument("server")
@click.argument("tool")
@click.argument("words", metavar="[KEY=VALUE]...", nargs=-1)
@click.option(
    "--config", default="mcp.json", metavar="FILE", help="The configuration with the rules; by default mcp.json."
)
@click.option("--principal", default="", metavar="NAME", help="Who causes the call; by default the owner of the host.")
@click.option("--folder", metavar="DIR", help="The working directory of the server, for relative paths.")
@click.option(
    "--annotations", metavar="JSON", callback=_annotations, help="The tool's annotations, if the server is trusted."
)
@json_option
def explain(
    server: str,
    tool: str,
    words: tuple[str, ...],
    config: str,
    principal: str,
    folder: str | None,
    annotations: ToolAnnotations | None,
    as_json: bool,
) -> int:
    """Show what the rules decide about a call of the tool TOOL of the configured SERVER, and the result of each rule.

    Nothing is started or called.
    """
    policy = read_configuration(Path(config)).policy()
    call = ProposedCall(
        server=server,
        tool=tool,
        arguments=_arguments(words),
        principal=principal,
        annotations=annotations,
        folder=None if folder is None else str(Path(folder).absolute()),
    )
    verdict = policy.decide(call)
    if as_json:
        echo_json({"version": policy.version, **msgspec.to_builtins(verdict)})
        return 0
    for line in _lines(verdict):
        click.echo(printable(line))
    return 0


def _arguments(words: tuple[str, ...]) -> dict[str, Any]:
    if len(words) == 1 and words[0].startswith(("{", "@", "-")):
        return values.document(words[0])
    return values.arguments_of(words, {})


def _lines(verdict: Verdict) -> Iterator[str]:
    yield f"{verdict.decision}: {verdict.reason}"
    for result in sorted(verdict.rules, key=lambda each: not each.matches):
        yield f"  {result.decision:5}  {result.rule!r} {_outcome(result)}"


def _outcome(result: RuleResult) -> str:
    outcome = "matches" if result.matches else "does not match"
    if result.is_unclear:
        return f"{outcome}, because this is unclear: {result.reason}"
    return f"{outcome}: {result.reason}" if result.reason else f"{outcome}: it has no conditions"
