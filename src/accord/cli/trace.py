"""`-v`: each message as it passes, one line on stderr: `→` sent, `←` received, with the time since the start."""

from __future__ import annotations

import sys
import time
from collections.abc import Coroutine
from typing import Any

import click
import msgspec

from accord.cli.columns import width
from accord.cli.failures import printable
from accord.errors import ConnectionLost
from accord.transport.base import Message, Transport

_LONGEST = 400
"""Characters of a line that goes to a file or a pipe."""


class Trace:
    """A transport that shows what passes through another."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._begun = time.perf_counter()

    @property
    def name(self) -> str:
        return self._inner.name

    async def open(self) -> None:
        await self._inner.open()

    def receive(self) -> Coroutine[Any, Any, list[Message]]:
        return self._receive()

    async def _receive(self) -> list[Message]:
        messages = await self._inner.receive()
        for message in messages:
            self._show("←", message, fg="green")
        return messages

    def send(self, message: bytes) -> None:
        self._show("→", message, fg="blue")
        self._inner.send(message)

    def flush(self) -> None:
        self._inner.flush()

    async def drain(self) -> None:
        await self._inner.drain()

    async def close(self) -> None:
        await self._inner.close()

    def lost(self) -> ConnectionLost:
        return self._inner.lost()

    def _show(self, arrow: str, message: Message, fg: str) -> None:
        text = printable(described(message))
        room = width() - 11 if sys.stderr.isatty() else _LONGEST
        shortened = text if len(text) <= room else f"{text[: room - 1]}…"
        seconds = time.perf_counter() - self._begun
        click.echo(f"{click.style(f'{seconds:7.3f} {arrow}', fg=fg)} {shortened}", err=True)


def described(message: Message) -> str:
    """What a message says, the most telling first; `_meta` is left out, and what is no message stays as it is."""
    if not isinstance(message, bytes):
        return f"unreadable: {message.reason}"
    try:
        data = msgspec.json.decode(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return message.decode(errors="backslashreplace").strip()
    if not isinstance(data, dict):
        return _compact(data)
    number = f"#{data['id']} " if data.get("id") is not None else ""
    if "method" in data:
        return f"{number}{data['method']} {_compact(data.get('params'))}".rstrip()
    if "error" in data:
        return f"{number}error {_compact(data['error'])}"
    return f"{number}{_compact(data.get('result', data)) or '{}'}"


def _compact(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        value = {key: each for key, each in value.items() if key != "_meta"}
    return msgspec.json.encode(value).decode() if value != {} else ""
