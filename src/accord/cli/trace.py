"""`-v` and `-vv`: each message as it passes, one line on stderr: `→` sent, `←` received.

-v     for people: the time, the id, the method, and what it says, shortened and without `_meta`
-vv    the transcript itself (`accord.wire.transcript`), whole
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import click
import msgspec

from accord.cli.columns import width
from accord.cli.failures import printable
from accord.cli.screen import screen
from accord.transport.base import SkippedMessage, Transport
from accord.transport.recording import RecordingTransport
from accord.wire.transcript import SENT, Transcript, TranscriptEntry

_MAX_LINE_LENGTH = 400
"""Characters of a line that goes to a file or a pipe."""

_COLOURS = {True: "blue", False: "green"}


def tracing(verbose: int) -> Callable[[Transport], Transport] | None:
    """What makes a transport show what passes through it."""
    return partial(_recorded, verbose) if verbose else None


def _recorded(verbose: int, inner: Transport) -> Transport:
    return RecordingTransport(inner, LiveTranscript(whole=verbose > 1))


class LiveTranscript(Transcript):
    """Shows each entry instead of keeping it."""

    def __init__(self, *, whole: bool) -> None:
        super().__init__()
        self._whole = whole
        self._begun = time.monotonic()

    def add(self, entry: TranscriptEntry) -> None:
        """Print one message."""
        screen.print_line(printable(entry.render(), as_json=True) if self._whole else self._short(entry))

    def _short(self, entry: TranscriptEntry) -> str:
        head = f"{entry.at - self._begun:7.3f} {entry.direction}"
        text = printable(message_text(entry.message)).replace("\n", r"\n")
        room = width(sys.stderr) - len(head) - 2 if sys.stderr.isatty() else _MAX_LINE_LENGTH
        shortened = text if len(text) <= room else f"{text[:room]}…"
        return f"{click.style(head, fg=_COLOURS[entry.direction == SENT])} {shortened}"


def message_text(message: bytes | SkippedMessage) -> str:
    """What a message says, the most telling first; what is no message stays as it is."""
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
    """A value as JSON in one line, without `_meta`; nothing for nothing."""
    if isinstance(value, dict):
        value = {key: each for key, each in value.items() if key != "_meta"}
    return "" if value is None or value == {} else msgspec.json.encode(value).decode()
