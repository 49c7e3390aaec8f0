"""The side of a running `accord dev` that views are attached to. It never waits for a view.

A view that attaches receives the last calls, then each new event. Each view has a bounded queue: what does not fit is
counted and dropped. Messages are redacted when they are sent: nothing is redacted while no view is attached, or for a
view that does not read.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from accord.dev.attach_socket import check_private, default_folder, identity, peer_user
from accord.dev.program import Program
from accord.dev.view_messages import (
    Dropped,
    EndedCall,
    Hello,
    ReloadCommand,
    StartedCall,
    ToView,
    ViewEvent,
    size_of,
)
from accord.wire.session_redaction import SessionRedaction

QUEUE_BYTES = 1 << 20
"""Limit of what waits for one view."""
_HISTORY_EVENTS = 1_000
_HISTORY_BYTES = 1 << 22
_MOST_VIEWS = 8
_LARGE_CHARACTERS = 1 << 13
"""The redaction of a larger event may take milliseconds: it runs in a thread."""
_COMMAND_BYTES = 1 << 10

_encode = msgspec.json.Encoder().encode


class AttachServer:
    """Accepts views of a program in `folder`, a private folder."""

    def __init__(self, program: Program, *, folder: Path | None = None) -> None:
        self._program = program
        self._folder = folder
        self._path: Path | None = None
        self._server: asyncio.Server | None = None
        self._started = time.time()
        self._redaction = SessionRedaction()
        self._history: deque[tuple[ViewEvent, int]] = deque()
        self._history_bytes = 0
        self._views: dict[_ViewQueue, tuple[asyncio.Task[None], asyncio.StreamWriter]] = {}

    async def open(self) -> None:
        """Accept views. Raises `OSError`."""
        folder = default_folder() if self._folder is None else self._folder
        check_private(folder)
        self._path = folder / f"{os.getpid()}-{secrets.token_hex(4)}.sock"
        self._server = await asyncio.start_unix_server(self._serve, self._path, limit=_COMMAND_BYTES)

    async def close(self) -> None:
        """End all views."""
        if self._server is not None and self._path is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)
        views = list(self._views.values())
        for _, writer in views:
            writer.transport.abort()
        await asyncio.gather(*(task for task, _ in views), return_exceptions=True)

    def publish(self, event: ViewEvent) -> None:
        """Add an event to the history, and to the queue of each view."""
        size = size_of(event)
        self._history.append((event, size))
        self._history_bytes += size
        while len(self._history) > _HISTORY_EVENTS or self._history_bytes > _HISTORY_BYTES:
            self._history_bytes -= self._history.popleft()[1]
        for view in self._views:
            view.offer(event, size)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection: socket.socket = writer.get_extra_info("socket")
        task = asyncio.current_task()
        if peer_user(connection) not in (None, os.getuid()) or len(self._views) >= _MOST_VIEWS or task is None:
            writer.close()
            return
        view = _ViewQueue()
        self._views[view] = task, writer
        history = [event for event, _ in self._history]
        sending = asyncio.ensure_future(self._send(history, view, writer))
        try:
            await self._receive(reader)
        finally:
            del self._views[view]
            sending.cancel()
            await asyncio.wait({sending})
            writer.close()

    async def _receive(self, reader: asyncio.StreamReader) -> None:
        """Do what a view asks for, until it is detached or sends anything else."""
        decode = msgspec.json.Decoder(ReloadCommand).decode
        with suppress(OSError, ValueError, msgspec.DecodeError):
            while line := await reader.readline():
                decode(line)
                self._program.request_reload()

    async def _send(self, history: list[ViewEvent], view: _ViewQueue, writer: asyncio.StreamWriter) -> None:
        target = self._program.name
        with suppress(OSError):
            writer.write(self._line(Hello(target, identity(self._program.command), os.getpid(), self._started)))
            events, dropped = history, 0
            while True:
                for event in events:
                    writer.write(await self._redacted_line(event))
                    await writer.drain()
                    await asyncio.sleep(0)  # the program's messages first
                if dropped:
                    writer.write(self._line(Dropped(dropped)))
                events, dropped = await view.take()

    async def _redacted_line(self, event: ViewEvent) -> bytes:
        if size_of(event) < _LARGE_CHARACTERS:
            return self._line(self._redacted(event))
        return self._line(await asyncio.to_thread(self._redacted, event))

    def _redacted(self, event: ViewEvent) -> ViewEvent:
        if isinstance(event, StartedCall):
            return msgspec.structs.replace(event, request=self._text(event.request))
        if isinstance(event, EndedCall):
            return msgspec.structs.replace(event, response=self._text(event.response))
        return msgspec.structs.replace(event, text=self._redaction.text(event.text))

    def _text(self, message: str) -> str:
        return self._redaction.data(message.encode()).decode()

    @staticmethod
    def _line(message: ToView) -> bytes:
        return _encode(message) + b"\n"


class _ViewQueue:
    """The queue of events for one view."""

    def __init__(self) -> None:
        self._events: list[ViewEvent] = []
        self._size = 0
        self._dropped = 0
        self._is_ready = asyncio.Event()

    def offer(self, event: ViewEvent, size: int) -> None:
        """Add an event, or count it as dropped."""
        if self._size + size > QUEUE_BYTES:
            self._dropped += 1
        else:
            self._events.append(event)
            self._size += size
        self._is_ready.set()

    async def take(self) -> tuple[list[ViewEvent], int]:
        """Return all events that wait, and the number of those that were dropped after them."""
        await self._is_ready.wait()
        events, self._events = self._events, []
        dropped, self._dropped, self._size = self._dropped, 0, 0
        self._is_ready.clear()
        return events, dropped


async def opened(program: Program, show: Callable[[str], None]) -> AttachServer:
    """Return a server that accepts views; if it cannot, show why, as the program runs without views too."""
    server = AttachServer(program)
    if sys.platform != "win32":
        try:
            await server.open()
        except OSError as exc:
            show(f"no view can be attached: {exc}")
    return server
