"""`accord check`: is this server, or this client, right?"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from accord.check.engine import baseline as baselines
from accord.check.engine.report import Report
from accord.check.reports import formats
from accord.check.reports.as_json import report_data
from accord.check.reports.fleet_terminal import fleet_lines
from accord.check.reports.progress_display import FleetProgressDisplay, ProgressDisplay
from accord.check.reports.terminal import report_lines
from accord.cli.check_options import CheckOptions, check_options
from accord.cli.columns import width
from accord.cli.content import echo_json
from accord.cli.failures import INTERRUPTED, TOOL_FAILED, printable
from accord.cli.run_client import TERMINATED
from accord.cli.screen import screen
from accord.client.target import entries

_Found = TypeVar("_Found")

_EXIT_CODES = """\
\b
Exit codes:
  0    no MUST is broken, or only what the baseline has; with --fail-on mine also known faults of the SDK
  1    a MUST is broken, or something could not be tested, or an entry of the baseline was not found
  2    the command line is wrong
  3    the peer could not be reached, or speaks none of the revisions
  130  interrupted (Ctrl-C), 143 terminated: what was found by then is reported"""


@click.command(epilog=_EXIT_CODES)
@click.argument("target", required=False)
@check_options
def command(target: str | None, asked: CheckOptions) -> int:
    """Check whether a server or a client conforms to the protocol, in all its revisions and transports.

    No tool is called unless you allow it: --call-tools, --call-tool NAME, or --trusted.
    """
    asked.check(target)
    if asked.fleet is not None:
        return _fleet(asked, asked.fleet)
    if asked.diff is not None and target is not None:
        return _diff(asked, asked.diff, target)
    return _one(asked, target)


def _one(asked: CheckOptions, target: str | None) -> int:
    wanted = [formats.parse_report_option(each) for each in asked.reports]
    known = _baseline(asked)
    live = ProgressDisplay(screen.print_line, screen.update_line if sys.stderr.isatty() else None, width=width())
    reports: list[Report] = []
    code = 0
    while len(reports) < asked.runs and not code:
        stop = StopSignal()  # one for each run: each has an event loop of its own
        by_signal = stop if target is not None else None  # a client is not checked halfway
        reports.append(_run(_check(asked, target, live, stop), by_signal))
        code = stop.code
    report = reports[-1]
    screen.clear_line()
    if asked.baseline is not None and asked.update_baseline and not report.interrupted:
        known = baselines.update(reports, known or baselines.Baseline())
        baselines.save(known, asked.baseline)
    if known is not None:
        report = baselines.apply(report, known)
    formats.write_reports(report, wanted)
    if asked.as_json:
        echo_json(report_data(report))
    else:
        for line in report_lines(report, width=width(), verbose=asked.verbose):
            click.echo(line)
    return code or (TOOL_FAILED if report.fails_on(asked.fail_on) else 0)


def _baseline(asked: CheckOptions) -> baselines.Baseline | None:
    """What is accepted; one that is to be written need not be there."""
    if asked.baseline is None or (asked.update_baseline and not asked.baseline.exists()):
        return None
    return baselines.load(asked.baseline)


class StopSignal:
    """Set by Ctrl-C and SIGTERM; `code` is the exit code that says which."""

    def __init__(self) -> None:
        self.event: asyncio.Event = asyncio.Event()
        self.code: int = 0

    def set(self, code: int) -> None:
        """End the check, and report what was found by then."""
        self.code = code
        self.event.set()


async def _check(asked: CheckOptions, target: str | None, live: ProgressDisplay, stop: StopSignal) -> Report:
    if target is not None:
        from accord.check.server import check_server

        return await check_server(asked.target(target), asked.settings, live, label=target, stop=stop.event)
    from accord.check.clients.client import check_client

    if sys.stderr.isatty():
        screen.update_line("which revisions does it speak? up to a minute, if it says nothing")
    if asked.client_stdio is not None:
        return await check_client(asked.client_stdio, "stdio", asked.settings, live)
    return await check_client(str(asked.client), "http", asked.settings, live)


def _fleet(asked: CheckOptions, file: Path) -> int:
    from accord.check.engine.fleet import check_fleet

    wanted = [formats.parse_report_option(each, formats.FLEET_FORMATS) for each in asked.reports]
    servers = entries(file)
    live = FleetProgressDisplay(
        len(servers), screen.print_line, screen.update_line if sys.stderr.isatty() else None, width=width()
    )
    fleet = _run(
        check_fleet(servers, asked.settings, jobs=asked.jobs, watcher=live, history=asked.history, file=str(file))
    )
    screen.clear_line()
    formats.write_reports(fleet, wanted)
    if asked.as_json:
        echo_json(report_data(fleet))
    else:
        for line in fleet_lines(fleet, width=width()):
            click.echo(line)
    return TOOL_FAILED if fleet.failed else 0


def _diff(asked: CheckOptions, old: str, new: str) -> int:
    from accord.check.surface.diff import compare, comparison_lines

    comparison = _run(compare(old, new, every=bool(asked.revisions)))
    if asked.as_json:
        echo_json(msgspec.to_builtins(comparison))
    else:
        for line in comparison_lines(comparison, width()):
            click.echo(printable(line))
    return comparison.exit_code


def _run(work: Coroutine[Any, Any, _Found], stop: StopSignal | None = None) -> _Found:
    """Run it to its end; SIGTERM ends it as Ctrl-C does, with all that was started. With `stop` both only set it."""

    async def run() -> _Found:
        task = asyncio.current_task()
        if task is not None and sys.platform != "win32":
            loop = asyncio.get_running_loop()
            if stop is None:
                loop.add_signal_handler(signal.SIGTERM, task.cancel)
            else:
                loop.add_signal_handler(signal.SIGTERM, stop.set, TERMINATED)
                loop.add_signal_handler(signal.SIGINT, stop.set, INTERRUPTED)
        return await work

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        raise click.exceptions.Exit(TERMINATED) from None
