"""`accord check`: is this server, or this client, right?"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import click
import msgspec

from accord.check import baseline as baselines
from accord.check.report import Report, TransportName
from accord.check.reports import forms
from accord.check.reports.live import Live
from accord.check.reports.terminal import in_lines
from accord.check.settings import LEVELS, CheckSettings
from accord.cli.columns import width
from accord.cli.content import echo_json
from accord.cli.failures import TOOL_FAILED
from accord.cli.screen import screen
from accord.cli.settings import json_option, key_values, positive_seconds, traceback_option
from accord.cli.visit import TERMINATED
from accord.client.target import Command, parse
from accord.errors import TargetError
from accord.messages.revision import REVISIONS

_TRANSPORTS: tuple[TransportName, ...] = ("stdio", "http", "sse")

_EXIT_CODES = """\
\b
Exit codes:
  0    nothing was found, or only warnings, or what the baseline has
  1    something was found, or an entry of the baseline was not
  2    the command line is wrong
  3    the peer could not be reached, or speaks none of the revisions
  70   a rule failed by itself: a defect in accord"""


def _packed(function: Callable[..., int]) -> Callable[..., int]:
    """The options that make the settings of a check, gathered."""

    def gathered(**given: Any) -> int:
        names = ("revisions", "transports", "only", "skip", "level", "timeout", "jobs", "trusted", "seed", "cases")
        asked = {name: given.pop(name) for name in names}
        tools, some = given.pop("call_tools"), given.pop("call_tool")
        headers = dict(given.pop("headers")) or None
        asked["cases"] = asked["cases"] if tools or some or asked["trusted"] else 0
        settings = CheckSettings(**asked, call_tools=some or tools, headers=headers)
        return function(settings=settings, **given)

    gathered.__doc__ = function.__doc__
    return gathered


@click.command(epilog=_EXIT_CODES)
@click.argument("target", required=False)
@click.option("--client", metavar="COMMAND", help="Check this client over HTTP: {url} in it is where we serve.")
@click.option("--client-stdio", metavar="COMMAND", help="Check this client over stdio: it starts {server}.")
@click.option("--revision", "revisions", multiple=True, type=click.Choice(REVISIONS), metavar="REVISION",
              help="Only this revision; may be repeated. Without it, all that the peer speaks.")  # fmt: skip
@click.option("--transport", "transports", multiple=True, type=click.Choice(_TRANSPORTS), metavar="TRANSPORT",
              help="Only over this: stdio, http or sse; may be repeated.")  # fmt: skip
@click.option("--only", multiple=True, metavar="RULE", help="Only this rule, or area of rules; * is any text.")
@click.option("--skip", multiple=True, metavar="RULE", help="Not this rule, or area.")
@click.option("--level", type=click.Choice(LEVELS), default="may", help="Rules of this level and stricter ones.")
@click.option("--call-tools", is_flag=True, help="Tools may be called, also with generated arguments.")
@click.option("--call-tool", multiple=True, metavar="NAME", help="This tool may be called; may be repeated.")
@click.option("--trusted", is_flag=True, help="Tools that say of themselves that they only read may be called.")
@click.option("--cases", type=click.IntRange(0), default=700, help="How many cases to generate; 700 by default.")
@click.option("--seed", type=int, default=0, help="Of the generated cases: the same seed gives the same cases.")
@click.option("--report", "reports", multiple=True, metavar="FILE",
              help="Write a report: .json, .xml (JUnit), .sarif, .md, .html, .svg (a badge), or FORM=FILE.")  # fmt: skip
@click.option("--baseline", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="What is known and accepted; entries that are not found any more fail.")  # fmt: skip
@click.option("--update-baseline", is_flag=True, help="Write what is found into the baseline.")
@click.option("--jobs", type=click.IntRange(1), default=2, help="Conversations at once; 2 by default.")
@click.option("--timeout", type=float, default=5.0, metavar="SECONDS", callback=positive_seconds,
              help="For one answer; 5 by default.")  # fmt: skip
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", callback=key_values,
              help="Send with every HTTP request; may be repeated.")  # fmt: skip
@click.option("--env", multiple=True, metavar="KEY=VALUE", callback=key_values, help="Set for the server.")
@click.option("--cwd", type=click.Path(exists=True, file_okay=False), help="The directory to start the server in.")
@click.option("-v", "--verbose", is_flag=True, help="All evidence, whole; and known findings.")
@json_option
@traceback_option
@_packed
def command(
    settings: CheckSettings,
    target: str | None,
    client: str | None,
    client_stdio: str | None,
    reports: tuple[str, ...],
    baseline: Path | None,
    update_baseline: bool,
    verbose: bool,
    as_json: bool,
    **server: Any,
) -> int:
    """Check whether a server, or a client, keeps to the protocol: in every revision, over every transport it has.

    No tool is called unless you allow it: --call-tools, --call-tool NAME, or --trusted.
    """
    if sum(each is not None for each in (target, client, client_stdio)) != 1:
        raise click.UsageError("give one TARGET, or --client COMMAND, or --client-stdio COMMAND")
    if update_baseline and baseline is None:
        raise click.UsageError("--update-baseline needs --baseline FILE")
    wanted = [forms.wanted(each) for each in reports]
    known = baselines.load(baseline) if baseline and (baseline.exists() or not update_baseline) else None
    live = Live(screen.say, screen.move if sys.stderr.isatty() else None, width=width())
    report = _run(_checked(settings, live, target, client or client_stdio or "", client_stdio is not None, **server))
    screen.clear()
    if baseline and update_baseline:
        known = baselines.update(report, known or baselines.Baseline())
        baselines.save(known, baseline)
    if known is not None:
        report = baselines.apply(report, known)
    forms.write(report, wanted)
    if as_json:
        echo_json(msgspec.to_builtins(report))
    else:
        for line in in_lines(report, width=width(), verbose=verbose):
            click.echo(line)
    return TOOL_FAILED if report.failed else 0


async def _checked(
    settings: CheckSettings, live: Live, target: str | None, command: str, over_stdio: bool, **server: Any
) -> Report:
    if target is None:
        from accord.check.clients.client import check_client

        return await check_client(command, "stdio" if over_stdio else "http", settings, live)
    from accord.check.server import check_server

    return await check_server(_target(target, **server), settings, live, label=target)


def _target(target: str, env: tuple[tuple[str, str], ...], cwd: str | None) -> Any:
    """The target with the environment and the directory that were asked for."""
    found = parse(target)
    if not isinstance(found, Command):
        if env or cwd:
            raise TargetError("--env and --cwd are for servers that are started here")
        return found
    return msgspec.structs.replace(found, env={**(found.env or {}), **dict(env)} or None, cwd=cwd or found.cwd)


def _run(work: Coroutine[Any, Any, Report]) -> Report:
    async def run() -> Report:
        task = asyncio.current_task()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # type: ignore[union-attr]
        return await work

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        raise click.exceptions.Exit(TERMINATED) from None
