"""`accord check`: check a server or a client for conformance."""

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

_Result = TypeVar("_Result")

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
def command(target: str | None, options: CheckOptions) -> int:
    """Check whether a server, a client or an authorization server conforms to the protocol.

    A server and a client are checked in all their revisions and transports.

    No tool is called unless you allow it: --call-tools, --call-tool NAME, or --trusted.
    """
    options.check(target)
    if options.fleet is not None:
        return _check_fleet(options, options.fleet)
    if options.diff is not None and target is not None:
        return _compare_versions(options, options.diff, target)
    return _check_one(options, target)


def _check_one(options: CheckOptions, target: str | None) -> int:
    outputs = [formats.parse_report_option(each) for each in options.reports]
    baseline = _baseline(options)
    display = ProgressDisplay(screen.print_line, screen.update_line if sys.stderr.isatty() else None, width=width())
    reports: list[Report] = []
    code = 0
    while len(reports) < options.runs and not code:
        stop = StopSignal()  # one per run, because each run has an event loop of its own
        by_signal = stop if target is not None else None  # the check of a client cannot stop halfway
        reports.append(_run(_check(options, target, display, stop), by_signal))
        code = stop.code
    report = reports[-1]
    screen.clear_line()
    if options.baseline is not None and options.update_baseline and not report.interrupted:
        baseline = baselines.update(reports, baseline or baselines.Baseline())
        baselines.save(baseline, options.baseline)
    if baseline is not None:
        report = baselines.apply(report, baseline)
    formats.write_reports(report, outputs)
    if options.as_json:
        echo_json(report_data(report))
    else:
        for line in report_lines(report, width=width(), verbose=options.verbose):
            click.echo(line)
    return code or (TOOL_FAILED if report.fails_on(options.fail_on) else 0)


def _baseline(options: CheckOptions) -> baselines.Baseline | None:
    """Return the baseline, or None if it is yet to be written."""
    if options.baseline is None or (options.update_baseline and not options.baseline.exists()):
        return None
    return baselines.load(options.baseline)


class StopSignal:
    """A stop requested by Ctrl-C or SIGTERM; `code` is the exit code of the signal."""

    def __init__(self) -> None:
        self.event: asyncio.Event = asyncio.Event()
        self.code: int = 0

    def set(self, code: int) -> None:
        """End the check; the report contains the findings so far."""
        self.code = code
        self.event.set()


async def _check(options: CheckOptions, target: str | None, display: ProgressDisplay, stop: StopSignal) -> Report:
    if target is not None:
        from accord.check.engine.token_issue import describe_issuer
        from accord.check.issuer.issuer_server import issuer_url
        from accord.check.server import check_server

        if options.as_issuer:
            screen.print_line(f"configure the server: {describe_issuer(issuer_url(options.as_issuer))}")
        return await check_server(options.target(target), options.settings, display, label=target, stop=stop.event)
    if options.authorization_server is not None:
        from accord.check.authorization_servers.check import check_authorization_server

        return await check_authorization_server(
            options.authorization_server, options.settings, display, login=options.login
        )
    from accord.check.clients.client import check_client

    if sys.stderr.isatty():
        screen.update_line("which revisions does it speak? up to a minute, if it says nothing")
    if options.client_stdio is not None:
        return await check_client(options.client_stdio, "stdio", options.settings, display)
    return await check_client(str(options.client), "http", options.settings, display)


def _check_fleet(options: CheckOptions, file: Path) -> int:
    from accord.check.engine.fleet import check_fleet

    outputs = [formats.parse_report_option(each, formats.FLEET_FORMATS) for each in options.reports]
    servers = entries(file)
    display = FleetProgressDisplay(
        len(servers), screen.print_line, screen.update_line if sys.stderr.isatty() else None, width=width()
    )
    fleet = _run(
        check_fleet(
            servers, options.settings, jobs=options.jobs, watcher=display, history=options.history, file=str(file)
        )
    )
    screen.clear_line()
    formats.write_reports(fleet, outputs)
    if options.as_json:
        echo_json(report_data(fleet))
    else:
        for line in fleet_lines(fleet, width=width()):
            click.echo(line)
    return TOOL_FAILED if fleet.failed else 0


def _compare_versions(options: CheckOptions, old: str, new: str) -> int:
    from accord.check.surface.diff import compare, comparison_lines

    comparison = _run(compare(old, new, every=bool(options.revisions)))
    if options.as_json:
        echo_json(msgspec.to_builtins(comparison))
    else:
        for line in comparison_lines(comparison, width()):
            click.echo(printable(line))
    return comparison.exit_code


def _run(coroutine: Coroutine[Any, Any, _Result], stop: StopSignal | None = None) -> _Result:
    """Run a coroutine. SIGTERM cancels it, as Ctrl-C does; with `stop`, both signals only set it."""

    async def run() -> _Result:
        task = asyncio.current_task()
        if task is not None and sys.platform != "win32":
            loop = asyncio.get_running_loop()
            if stop is None:
                loop.add_signal_handler(signal.SIGTERM, task.cancel)
            else:
                loop.add_signal_handler(signal.SIGTERM, stop.set, TERMINATED)
                loop.add_signal_handler(signal.SIGINT, stop.set, INTERRUPTED)
        return await coroutine

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        raise click.exceptions.Exit(TERMINATED) from None
