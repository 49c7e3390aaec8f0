"""A connection to a server for one command: connect with the settings, run the command, and close."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from accord.cli.failures import printable
from accord.cli.screen import screen
from accord.cli.settings import ConnectionSettings
from accord.cli.trace import recorder
from accord.client.client import Client
from accord.client.target import Command, Remote, Target, parse
from accord.errors import ConnectionLost, TargetError
from accord.limits import ClientLimits, Limits
from accord.messages.revision import REVISIONS
from accord.transport.http.settings import validated_headers
from accord.transport.process import left_out

if TYPE_CHECKING:
    from accord.client.target import ClientAuth

TERMINATED = 143

_NAMES = 12
"""The maximum number of variable names in one line."""

Work = Callable[[Client], Awaitable[int | None]]


def run_with_client(
    target: str, settings: ConnectionSettings, work: Work, options: Mapping[str, Any] | None = None
) -> int:
    """Run `work` with a connected client and return its exit code. `options` are further options of `Client`."""
    warn_on_stderr()
    options = options or {}
    parsed = target_for(target, settings)
    if settings.verbose:
        _print_omitted_variables(parsed)
    client = client_for(parsed, settings, **options)
    try:
        return asyncio.run(_run(client, work, options.get("log_level"))) or 0
    except asyncio.CancelledError:
        return TERMINATED
    except ConnectionLost as exc:
        if exc.exit_code:
            _print_omitted_variables(parsed)
        raise


def _print_omitted_variables(target: Target) -> None:
    """Print the environment variables that the server does not inherit, because it may need one of them."""
    if isinstance(target, Command) and not target.inherit_env and (names := left_out(target.env)):
        listed = ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")
        screen.print_line(f"started without these environment variables: {printable(listed)}; --env NAME passes one on")


def client_for(target: Target, settings: ConnectionSettings, **options: Any) -> Client:
    """Return an unconnected client with the settings. Raises `TargetError`."""
    seconds = settings.timeout
    limits = ClientLimits()
    if seconds is not None:
        limits = ClientLimits(connect_seconds=seconds, probe_seconds=min(5, seconds / 2))
    return Client(
        target,
        auth=_login(target),
        revisions=[settings.revision] if settings.revision else REVISIONS,
        timeout=seconds,
        limits=Limits(client=limits),
        on_stderr=_show_stderr if settings.stderr else None,
        record=recorder(settings.verbose, settings.record, settings.unredacted),
        roots=settings.roots or None,
        **options,
    )


def _login(target: Target) -> ClientAuth | None:
    """Return the login for a URL, unless its headers already authenticate; only `accord login` asks the user."""
    if not isinstance(target, Remote) or "authorization" in (target.headers or {}):
        return None
    from accord.auth.oauth import OAuth  # SQLite and what else a command without a URL does not need

    if target.auth is not None and not isinstance(target.auth, OAuth):
        return target.auth
    return msgspec.structs.replace(target.auth or OAuth(), interactive=False)


def target_for(target: str, settings: ConnectionSettings) -> Target:
    """Return the target with the headers, environment and working directory of the settings. Raises `TargetError`."""
    parsed = parse(target)
    if isinstance(parsed, Remote):
        return with_headers(parsed, settings.headers, settings.bearer)
    if settings.headers:
        raise TargetError(f"--header is for a server at a URL, and {target!r} is none")
    return with_environment(parsed, settings.env, settings.cwd) if isinstance(parsed, Command) else parsed


def with_headers(remote: Remote, headers: Sequence[tuple[str, str]], bearer: str | None = None) -> Remote:
    """Return a URL with its headers; those of the command line override the configuration's. Raises `TargetError`."""
    token = [("authorization", f"Bearer {bearer}")] if bearer else []
    overrides = validated_headers(dict([*token, *headers]))
    combined = {**validated_headers(remote.headers or {}), **overrides} or None
    login = None if "authorization" in overrides else remote.auth
    return msgspec.structs.replace(remote, headers=combined, auth=login)


def with_environment(command: Command, env: Sequence[tuple[str, str]], cwd: str | None) -> Command:
    """Return a command with an environment and a working directory. A FILE.py inherits the whole environment."""
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
        sys.stdout.flush()  # flushed before the connection closes, so that a closed pipe raises here
        return code


def _show_stderr(line: str) -> None:
    screen.print_line(click.style(printable(line.rstrip("\n")), dim=True))


def warn_on_stderr() -> None:
    """Print the warnings of the library in the form of the command's own."""
    logger = logging.getLogger("accord")
    if not logger.handlers:
        handler = _WarningHandler(logging.WARNING)
        logger.addHandler(handler)
        logger.propagate = False


class _WarningHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        screen.warn(printable(record.getMessage().removeprefix("accord: ")).replace("\n", "\n  "))
