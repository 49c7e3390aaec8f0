"""One visit to a server: reach it as the settings say, do something with it, and close it whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import click
import msgspec

from accord.cli.failures import printable
from accord.cli.screen import screen
from accord.cli.settings import Settings
from accord.cli.trace import tracing
from accord.client.client import Client
from accord.client.target import Command, Target, parse
from accord.limits import Limits
from accord.messages.revision import REVISIONS

TERMINATED = 143

Work = Callable[[Client], Awaitable[int | None]]


def visit(target: str, settings: Settings, work: Work, options: Mapping[str, Any] | None = None) -> int:
    """Run `work` with an open client; the exit code that it returns. `options` are more of what a `Client` takes."""
    _warn_on_stderr()
    options = options or {}
    client = client_for(target, settings, **options)
    try:
        return asyncio.run(_visit(client, work, options.get("log_level"))) or 0
    except asyncio.CancelledError:
        return TERMINATED


def client_for(target: str, settings: Settings, **options: Any) -> Client:
    """The client that the settings ask for, not connected yet. Raises `TargetError`."""
    seconds = settings.timeout
    limits = Limits() if seconds is None else Limits(connect_seconds=seconds, probe_seconds=min(5, seconds / 2))
    return Client(
        target_for(target, settings),
        revisions=[settings.revision] if settings.revision else REVISIONS,
        timeout=seconds,
        limits=limits,
        on_stderr=_show_stderr if settings.stderr else None,
        record=tracing(settings.verbose),
        roots=settings.roots or None,
        **options,
    )


def target_for(target: str, settings: Settings) -> Target:
    """The target with the environment and the directory that were asked for."""
    found = parse(target)
    if not isinstance(found, Command):
        return target
    env = {**(found.env or {}), **dict(settings.env)}
    return msgspec.structs.replace(found, env=env or None, cwd=settings.cwd or found.cwd)


async def _visit(client: Client, work: Work, log_level: str | None) -> int | None:
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
    screen.say(click.style(printable(line.rstrip("\n")), dim=True))


def _warn_on_stderr() -> None:
    """What the library finds worth a warning, in the form of our own messages."""
    log = logging.getLogger("accord")
    if not log.handlers:
        handler = _Warnings(logging.WARNING)
        log.addHandler(handler)
        log.propagate = False


class _Warnings(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        screen.warn(printable(record.getMessage().removeprefix("accord: ")))
