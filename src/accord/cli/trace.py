"""`-v`: each message as it passes, one line on stderr: `→` sent, `←` received, with the time since the start."""

from __future__ import annotations

import time
from collections.abc import Coroutine
from typing import Any

import click

from accord.cli.columns import width
from accord.cli.failures import printable
from accord.errors import ConnectionLost
from accord.transport.base import Message, Transport


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
        text = message.decode(errors="backslashreplace") if isinstance(message, bytes) else f"unreadable: {message}"
        room = width() - 12
        text = printable(text.strip())
        shortened = text if len(text) <= room else f"{text[: room - 1]}…"
        seconds = time.perf_counter() - self._begun
        click.echo(f"{click.style(f'{seconds:7.3f} {arrow}', fg=fg)} {shortened}", err=True)
