"""One visit to a server: reach it as the settings say, do something with it, and close it whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import click
import msgspec

from accord.cli.failures import printable
from accord.cli.screen import screen
from accord.cli.settings import ConnectionSettings
from accord.cli.trace import tracing
from accord.client.client import Client
from accord.client.target import Command, Remote, Target, parse
from accord.errors import ConnectionLost, TargetError
from accord.limits import Limits
from accord.messages.revision import REVISIONS
from accord.transport.http.settings import validated_headers
from accord.transport.process import left_out

TERMINATED = 143

_NAMES = 12
"""Names of variables that one line shows."""

Work = Callable[[Client], Awaitable[int | None]]


def run_with_client(
    target: str, settings: ConnectionSettings, work: Work, options: Mapping[str, Any] | None = None
) -> int:
    """Run `work` with an open client; the exit code that it returns. `options` are more of what a `Client` takes."""
    _warn_on_stderr()
    options = options or {}
    found = target_for(target, settings)
    if settings.verbose:
        _print_omitted_variables(found)
    client = client_for(found, settings, **options)
    try:
        return asyncio.run(_run(client, work, options.get("log_level"))) or 0
    except asyncio.CancelledError:
        return TERMINATED
    except ConnectionLost as exc:
        if exc.exit_code:
            _print_omitted_variables(found)
        raise


def _print_omitted_variables(target: Target) -> None:
    """Say which variables of the environment a server is started without, as one of them may be what it lacks."""
    if isinstance(target, Command) and not target.inherit_env and (names := left_out(target.env)):
        shown = ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")
        screen.print_line(f"started without these environment variables: {printable(shown)}; --env NAME passes one on")


def client_for(target: Target, settings: ConnectionSettings, **options: Any) -> Client:
    """The client that the settings ask for, not connected yet. Raises `TargetError`."""
    seconds = settings.timeout
    limits = Limits() if seconds is None else Limits(connect_seconds=seconds, probe_seconds=min(5, seconds / 2))
    return Client(
        target,
        revisions=[settings.revision] if settings.revision else REVISIONS,
        timeout=seconds,
        limits=limits,
        on_stderr=_show_stderr if settings.stderr else None,
        record=tracing(settings.verbose),
        roots=settings.roots or None,
        **options,
    )


def target_for(target: str, settings: ConnectionSettings) -> Target:
    """The target with the headers, the environment and the directory that were asked for. Raises `TargetError`."""
    found = parse(target)
    if isinstance(found, Remote):
        return with_headers(found, settings.headers, settings.bearer)
    if settings.headers:
        raise TargetError(f"--header is for a server at a URL, and {target!r} is none")
    return with_environment(found, settings.env, settings.cwd) if isinstance(found, Command) else found


def with_headers(remote: Remote, headers: Sequence[tuple[str, str]], bearer: str | None = None) -> Remote:
    """A URL with headers from the command line above those of its configuration. Raises `TargetError`."""
    token = [("authorization", f"Bearer {bearer}")] if bearer else []
    given = validated_headers(dict([*token, *headers]))
    return msgspec.structs.replace(remote, headers={**validated_headers(remote.headers or {}), **given} or None)


def with_environment(command: Command, env: Sequence[tuple[str, str]], cwd: str | None) -> Command:
    """A command with variables and a directory. A file of yours gets your environment, as `python FILE.py` does."""
    variables = {**(command.env or {}), **dict(env)} or None
    return msgspec.structs.replace(command, env=variables, cwd=cwd or command.cwd, inherit_env=command.is_file)


async def _run(client: Client, work: Work, log_level: str | None) -> int | None:
    with contextlib.suppress(NotImplementedError):  # Windows
        task = asyncio.current_task()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # type: ignore[union-attr]
    async with client:
        if log_level and client.server_capabilities and client.server_capabilities.logging is None:
            screen.warn(f"--log-level {log_level}: the server has no log messages")
        code = await work(client)
        sys.stdout.flush()  # a reader that is gone is noticed here, and an answer does not wait for the goodbye
        return code


def _show_stderr(line: str) -> None:
    screen.print_line(click.style(printable(line.rstrip("\n")), dim=True))


def _warn_on_stderr() -> None:
    """What the library finds worth a warning, in the form of our own messages."""
    log = logging.getLogger("accord")
    if not log.handlers:
        handler = _WarningHandler(logging.WARNING)
        log.addHandler(handler)
        log.propagate = False


class _WarningHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        screen.warn(printable(record.getMessage().removeprefix("accord: ")).replace("\n", "\n  "))
