"""`-v` and `-vv`: each message in one line on stderr, `→` sent, `←` received.

-v     readable: the time, the id, the method, and the content, shortened and without `_meta`
-vv    the complete transcript (`accord.wire.transcript`), with a remark for each HTTP request and response

Notifications of the server in a line each: log messages, changes and others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache
from typing import Any, get_args

import click
import msgspec

from accord.cli.columns import one_line, width
from accord.cli.failures import printable
from accord.cli.screen import screen
from accord.client.notifications import Notice
from accord.messages import codec
from accord.messages.base import LoggingLevel
from accord.messages.notifications import LoggingMessageParams
from accord.messages.resources import ResourceUpdatedParams
from accord.transport.base import SkippedMessage, Transport
from accord.transport.recording import SessionRecorder, SessionSink
from accord.transport.session_queue import SessionQueue
from accord.transport.session_writer import SessionFileWriter
from accord.wire.session_file import Entry, HTTPEntry, SessionHeader
from accord.wire.session_redaction import SessionRedaction
from accord.wire.transcript import ARROWS, SENT, TranscriptEntry, shortened

_MAX_LINE_LENGTH = 400
"""The maximum length of a line in a file or a pipe in characters."""

_COLOURS = {True: "blue", False: "green"}


@cache
def recorder(verbose: int, file: str | None, unredacted: bool) -> Callable[[Transport], Transport] | None:
    """Return what prints the traffic of a transport, or writes it to a session file, or both; None for neither.

    It is the same for all connections of the process: a command with several servers writes one file.
    """
    sinks: list[SessionSink] = [TracePrinter(complete=verbose > 1)] if verbose else []
    if file is not None:
        sinks.append(SessionQueue(SessionFileWriter(file, redacted=not unredacted)))
    return SessionRecorder(*sinks) if sinks else None


class TracePrinter:
    """Prints each message; `complete`: as a transcript, with the HTTP exchanges as remarks."""

    def __init__(self, *, complete: bool) -> None:
        self._complete = complete
        self._redaction = SessionRedaction()

    def begin(self, header: SessionHeader) -> None:
        """See `SessionSink`."""

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """See `SessionSink`."""

    def write(self, entry: Entry) -> None:
        """Print one entry."""
        if isinstance(entry, HTTPEntry):
            if self._complete:
                screen.print_line(printable(self._exchange(entry)))
        elif (short := shortened(entry)) is not None:
            screen.print_line(printable(short.render(), as_json=True) if self._complete else self._short(short))

    def _exchange(self, entry: HTTPEntry) -> str:
        number = f"# {ARROWS[entry.direction]} HTTP {entry.exchange}:"
        if entry.direction == "sent":
            return one_line(f"{number} {entry.method} {self._redaction.url(entry.url)}", _MAX_LENGTH)
        return one_line(f"{number} {entry.status} {entry.headers.get('content-type', '')}".rstrip(), _MAX_LENGTH)

    def _short(self, entry: TranscriptEntry) -> str:
        head = f"{entry.at:7.3f} {entry.direction}"
        text = printable(message_text(entry.message)).replace("\n", r"\n")
        room = width(sys.stderr) - len(head) - 2 if sys.stderr.isatty() else _MAX_LINE_LENGTH
        shortened_text = text if len(text) <= room else f"{text[:room]}…"
        return f"{click.style(head, fg=_COLOURS[entry.direction == SENT])} {shortened_text}"


def message_text(message: bytes | SkippedMessage) -> str:
    """Return a message as text, its id and method first; invalid messages stay as they are."""
    if not isinstance(message, bytes):
        return f"unreadable: {message.reason}"
    try:
        data = msgspec.json.decode(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return message.decode(errors="backslashreplace").strip()
    if not isinstance(data, dict):
        return compact(data)
    number = f"#{data['id']} " if data.get("id") is not None else ""
    if "method" in data:
        return f"{number}{data['method']} {compact(data.get('params'))}".rstrip()
    if "error" in data:
        return f"{number}error {compact(data['error'])}"
    return f"{number}{compact(data.get('result', data)) or '{}'}"


def compact(value: Any) -> str:
    """Return a value as JSON in one line without `_meta`, or an empty string for an empty value."""
    if isinstance(value, dict):
        value = {key: item for key, item in value.items() if key != "_meta"}
    return "" if value is None or value == {} else msgspec.json.encode(value).decode()


_MAX_LENGTH = 4_000
"""The maximum length of a notification in characters; `--json` prints all of it."""

_LEVEL_COLOURS = {
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
    """Return the options that make a `Client` print log messages to stderr, for `run_with_client`."""
    return {"log_level": level, "on_log": lambda message: screen.print_line(log_text(message))} if level else {}


def log_text(message: LoggingMessageParams) -> str:
    """Return a log message in one line, with its level in colour."""
    level = click.style(f"[{message.level}]", fg=_LEVEL_COLOURS[message.level])
    logger = f"{one_line(message.logger)}: " if message.logger else ""
    data = message.data if isinstance(message.data, str) else compact(message.data)
    return f"{level} {logger}{one_line(data, _MAX_LENGTH)}"


def notice_text(notice: Notice, at: datetime) -> str:
    """Return a notification in one line: time, method and content."""
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
    """Return a notification as one JSON object in one line, with its original params."""
    fields = {
        "at": at.astimezone().isoformat(timespec="milliseconds"),
        "method": notice.method,
        "params": _plain(notice),
    }
    return printable(msgspec.json.encode(fields).decode(), as_json=True)


def _plain(notice: Notice) -> Any:
    return msgspec.json.decode(codec.encode(notice.params)) if notice.params is not None else {}
