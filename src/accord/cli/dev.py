"""`accord dev`: live reload."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from accord.cli import completion
from accord.cli.failures import EXIT_CODES
from accord.cli.interrupts import Interrupts, run_interruptible
from accord.cli.settings import positive_seconds, traceback_option
from accord.client.target import Command, parse
from accord.dev.settings import DevSettings
from accord.errors import TargetError
from accord.messages.base import JSONObject
from accord.transport.hangup import write_stderr_nowait

if TYPE_CHECKING:
    from accord.dev.attach_client import Attachment
    from accord.dev.view_messages import ToView


@click.command(epilog=EXIT_CODES)
@click.argument("target", shell_complete=completion.target)
@click.option(
    "--watch",
    multiple=True,
    metavar="PATH",
    type=click.Path(exists=True, path_type=Path),
    help="Reload when this file, or a file in this directory, changes; may be repeated.",
)
@click.option(
    "--grace",
    type=float,
    default=DevSettings().grace_seconds,
    show_default=True,
    metavar="SECONDS",
    callback=positive_seconds,
    help="The time for calls of the old process to finish.",
)
@click.option("--stop-first", is_flag=True, help="End the old process before the new one starts.")
@click.option("--search", is_flag=True, help="Add the tools search_tools and call_tool, which reach new tools at once.")
@click.option("--inspect", is_flag=True, help="Open the inspector, with the program as its server.")
@click.option("--attach", is_flag=True, help="Show the calls of `accord dev TARGET`, which runs already.")
@click.option("--http", metavar="ADDRESS", help="Serve FILE.py over HTTP there, such as :8000, instead of over stdio.")
@traceback_option
def command(
    target: str,
    watch: tuple[Path, ...],
    grace: float,
    stop_first: bool,
    search: bool,
    inspect: bool,
    attach: bool,
    http: str | None,
) -> int:
    """Serve a program to a host, and replace its process when its files change.

    TARGET is FILE.py, or any command line of a stdio server. The host keeps its connection: put `accord dev TARGET`
    into its configuration in place of the command. Watched are the modules that FILE.py imports, the files that the
    command line names, and --watch.

    With --attach, in a second terminal, the calls are listed, and Enter opens their messages, without secrets. If
    stdout is no terminal, each event is a line of JSON.
    """
    program = parse(target)
    if not isinstance(program, Command):
        raise TargetError(f"{target!r} is no program to start; give FILE.py or the command line of a stdio server")
    if attach:
        return _attach(program)
    if http is not None and inspect:
        raise click.UsageError("--inspect is for a program over stdio; leave --http out")
    if inspect:
        _inspect()
    settings = DevSettings(watch=watch, grace_seconds=grace, stop_first=stop_first, search=search)
    return _serve_stdio(program, settings) if http is None else _serve_http(program, http, settings)


def _attach(program: Command) -> int:
    from accord.dev.attach_client import attach

    attachment = attach(program)
    try:
        if sys.stdin.isatty() and sys.stdout.isatty():
            from accord.cli import dev_view  # curses, which Windows does not have

            dev_view.show(attachment)
        else:
            _print_events(attachment)
    finally:
        attachment.close()
    return 0


def _print_events(attachment: Attachment) -> None:
    """Print each event as a line of JSON, until `accord dev` ends."""
    while messages := attachment.receive():
        for each in messages:
            sys.stdout.buffer.write(msgspec.json.encode(_with_json(each)) + b"\n")
        sys.stdout.flush()


def _with_json(message: ToView) -> JSONObject:
    """Return an event for other programs, in which the JSON-RPC messages are JSON."""
    fields: JSONObject = msgspec.to_builtins(message)
    for name in ("request", "response"):
        with suppress(KeyError, msgspec.DecodeError):
            fields[name] = msgspec.json.decode(fields[name])
    return fields


def _inspect() -> None:
    """Become the inspector, whose server is this command."""
    own = (sys.executable, "-P", "-m", "accord")
    arguments = [each for each in sys.argv[1:] if each != "--inspect"]
    os.execv(sys.executable, [*own, "inspect", shlex.join([*own, *arguments])])


def _serve_http(program: Command, address: str, settings: DevSettings) -> int:
    from accord.dev.http import HTTPReloader

    async def work(interrupts: Interrupts) -> int:
        await HTTPReloader(program, address, settings, show=_show, show_stderr=_show_stderr).run()
        return 0

    return run_interruptible(work)


def _serve_stdio(program: Command, settings: DevSettings) -> int:
    from accord.dev.stdio import StdioReloader
    from accord.transport.stdio import StdioTransport

    async def work(interrupts: Interrupts) -> int:
        await StdioReloader(program, StdioTransport(), settings, show=_show, show_stderr=_show_stderr).run()
        return 0

    return run_interruptible(work)


def _show_stderr(line: str) -> None:
    write_stderr_nowait(line + os.linesep)


def _show(line: str) -> None:
    write_stderr_nowait(f"accord: {line}{os.linesep}")
