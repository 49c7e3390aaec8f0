"""What a server tells unasked, a line each: log messages, changes, and whatever else it sends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, get_args

import click
import msgspec

from accord.cli.failures import printable
from accord.cli.screen import one_line, screen
from accord.cli.trace import compact
from accord.client.notifications import Notice
from accord.messages import codec
from accord.messages.base import LoggingLevel
from accord.messages.logging import LoggingMessageParams
from accord.messages.resources import ResourceUpdatedParams

_MAX_LENGTH = 4_000
"""Characters of what one notification says; `--json` has it whole."""

_COLOURS = {
    "debug": "bright_black", "info": "blue", "notice": "cyan", "warning": "yellow", "error": "red",
    "critical": "red", "alert": "red", "emergency": "red",
}  # fmt: skip

log_level_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--log-level",
    type=click.Choice(get_args(LoggingLevel)),
    metavar="LEVEL",
    help=f"Show the server's log messages from LEVEL on: {', '.join(get_args(LoggingLevel))}.",
)


def log_options(level: str | None) -> dict[str, Any]:
    """What makes a `Client` show log messages on stderr, for `run_with_client`."""
    return {"log_level": level, "on_log": lambda message: screen.print_line(log_text(message))} if level else {}


def log_text(message: LoggingMessageParams) -> str:
    """A log message in one line, its level coloured."""
    level = click.style(f"[{message.level}]", fg=_COLOURS[message.level])
    logger = f"{one_line(message.logger)}: " if message.logger else ""
    data = message.data if isinstance(message.data, str) else compact(message.data)
    return f"{level} {logger}{one_line(data, _MAX_LENGTH)}"


def notice_text(notice: Notice, at: datetime) -> str:
    """A notification in one line: when, what, and what it says."""
    name = one_line(notice.method.removeprefix("notifications/"))
    return (
        f"{click.style(f'{at:%H:%M:%S}.{at.microsecond // 1000:03}', dim=True)}  {name:<20} {_details(notice)}".rstrip()
    )


def _details(notice: Notice) -> str:
    match notice.params:
        case LoggingMessageParams() as message:
            return log_text(message)
        case ResourceUpdatedParams(uri=uri):
            return one_line(uri, _MAX_LENGTH)
    return one_line(compact(_plain(notice)), _MAX_LENGTH)


def notice_json(notice: Notice, at: datetime) -> str:
    """A notification as one JSON object in one line, its params as they came."""
    told = {"at": at.astimezone().isoformat(timespec="milliseconds"), "method": notice.method, "params": _plain(notice)}
    return printable(msgspec.json.encode(told).decode(), as_json=True)


def _plain(notice: Notice) -> Any:
    return msgspec.json.decode(codec.encode(notice.params)) if notice.params is not None else {}
