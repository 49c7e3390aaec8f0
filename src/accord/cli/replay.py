"""`accord replay`: a recorded server for clients, a recorded client for servers, and a pytest test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli import completion
from accord.cli.content import echo_json
from accord.cli.failures import EXIT_CODES, TOOL_FAILED, printable
from accord.cli.run_client import target_for, warn_on_stderr
from accord.cli.screen import screen
from accord.cli.settings import ConnectionSettings, settings_options
from accord.errors import TargetError
from accord.redaction import REDACTED
from accord.wire.session_file import MessageEntry

if TYPE_CHECKING:
    from socket import socket

    from accord.server.http.serving.address import Address
    from accord.testing.recorded_server import RecordedServer

_SECONDS = 10.0


@click.command(epilog=EXIT_CODES.replace("the tool returned an error", "the server's messages differ"))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("target", required=False, shell_complete=completion.target)
@click.option("--http", metavar="ADDRESS", help="Serve the recording over HTTP there, as :8000; port 0 is a free one.")
@click.option("--test", is_flag=True, help="Print a pytest test that replays the recording.")
@click.option(
    "--ignore", multiple=True, metavar="PATH",
    help="Values that may differ, as result.content.*.text; may be repeated.",
)  # fmt: skip
@settings_options
def command(
    file: Path, target: str | None, http: str | None, test: bool, ignore: tuple[str, ...], settings: ConnectionSettings
) -> int:
    """Replay a session file, or a transcript.

    Without TARGET, send the recorded messages of the server, over stdio or HTTP, to any client. With TARGET, send the
    recorded messages of the client to that server, and compare its messages.
    """
    if http is not None and (target is not None or test):
        raise click.UsageError("--http serves the recording: leave out TARGET and --test")
    if ignore and (target is None or test):
        raise click.UsageError("--ignore is for a comparison with TARGET")
    try:
        _warn_about(file)
        if test:
            from accord.testing.generated_tests import pytest_source

            click.echo(pytest_source(file, target), nl=False)
            return 0
        if target is None:
            return _serve(file, http)
        return _compare(file, target, ignore, settings)
    except ValueError as exc:
        raise TargetError(str(exc)) from exc


def _warn_about(file: Path) -> None:
    """Warn about what is missing at the end of a file."""
    from accord.testing.recording import read_recorded

    session = read_recorded(file)
    if session.incomplete:
        screen.warn(f"{file}: the last line is incomplete; it is left out")
    if session.limit_reached:
        screen.warn(f"{file}: the recording reached its maximum size; the rest is missing")


# --- a recorded server ---------------------------------------------------------------------------------------------


def _serve(file: Path, http: str | None) -> int:
    from accord.testing.recorded_server import RecordedServer

    server = RecordedServer(file)
    if http is None:
        asyncio.run(_serve_stdio(server))
    else:
        _serve_http(server, str(file), http)
    return 0


async def _serve_stdio(server: RecordedServer) -> None:
    from accord.transport.stdio import StdioTransport

    transport = StdioTransport(exit_when_stuck=True)
    await transport.open()
    try:
        await server.serve(transport)
    finally:
        await transport.close()


def _serve_http(server: RecordedServer, name: str, http: str) -> None:
    from accord.server.http.serving.address import bind, bound_address, is_loopback, parse_address

    address = parse_address(http)
    try:
        sockets = bind(address)
    except OSError as exc:
        raise TargetError(str(exc.strerror)) from exc
    address = bound_address(address, sockets)

    def print_address() -> None:
        screen.print_line(f"accord: {printable(name)} at http://{address}/mcp, and HTTP+SSE at /sse")
        if not is_loopback(sockets):
            screen.warn(f"{address} can be reached from other machines, which may read the whole recording")

    asyncio.run(_serve_app(server, address, sockets, print_address))


async def _serve_app(
    server: RecordedServer, address: Address, sockets: Sequence[socket], started: Callable[[], None]
) -> None:
    from accord.limits import DEFAULT_LIMITS
    from accord.server.http.serving.serve import serve_app
    from accord.testing.recorded_app import RecordedApp

    await serve_app(RecordedApp(server, hosts=(str(address),)), sockets, DEFAULT_LIMITS, started)


# --- a recorded client ---------------------------------------------------------------------------------------------


def _compare(file: Path, target: str, ignore: tuple[str, ...], settings: ConnectionSettings) -> int:
    """Send the client's messages to a server; print the differences."""
    from accord.cli.trace import recorder
    from accord.testing.recording import read_messages, read_recorded
    from accord.testing.replayer import play

    warn_on_stderr()
    messages = read_messages(file)
    redacted = _redacted_requests(read_recorded(file).entries)
    if redacted:
        screen.warn(f"{redacted} recorded messages of the client have redacted values, which are sent as they are")
    record = recorder(settings.verbose, settings.record, settings.unredacted)
    mismatches = asyncio.run(play(messages, target_for(target, settings), ignore, settings.timeout or _SECONDS, record))
    if settings.as_json:
        echo_json({"messages": len(messages), "differences": mismatches})
    else:
        for mismatch in mismatches:
            click.echo(printable(mismatch))
        click.echo(f"{len(messages)} messages, {len(mismatches)} differences")
    return TOOL_FAILED if mismatches else 0


def _redacted_requests(entries: Sequence[object]) -> int:
    sent = (entry.data for entry in entries if isinstance(entry, MessageEntry) and entry.direction == "sent")
    return sum(REDACTED.encode() in data for data in sent)
