"""The scripted server over stdio: each process that the client starts is a relay, and a conversation here."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shlex
import sys

from accord.check.clients import relay
from accord.check.clients.conversation import Conversation
from accord.check.clients.loopback import Loopback
from accord.check.clients.stand import Stand
from accord.check.record import Room
from accord.wire.lines import LineReader, Unreadable
from accord.wire.transcript import RECEIVED

_LINE_BYTES = 16 << 20
_PART_BYTES = 64 << 10
"""The relay sends no more at once."""
_LINGER = 1.0
"""Seconds."""
_HOW = {(relay.END, b""): "closed", (relay.TERM, b"1"): "terminated", (relay.TERM, b"0"): "orphaned"}


class Lines:
    """Listens for relays; `command` is the command line of one."""

    def __init__(self, stand: Stand) -> None:
        self._stand = stand
        self._token = secrets.token_hex(16)
        self._loopback = Loopback(self._relayed)
        self.command: list[str] = []
        """What the client has to start."""

    @property
    def target(self) -> str:
        """The command as one line for a shell."""
        return shlex.join(self.command)

    async def open(self) -> None:
        """Listen."""
        await self._loopback.open()
        port = str(self._loopback.port)
        # -I and -S: neither the environment nor site-packages change what starts, and it starts quickly.
        self.command = [sys.executable, "-I", "-S", relay.__file__, port, self._token, self._stand.scene.stderr]

    async def close(self) -> None:
        """End every relay. What a client did to one just before it ended may still be under way."""
        await self._loopback.close(_LINGER)

    async def _relayed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if secrets.compare_digest((await reader.readline()).strip(), self._token.encode()):
                await _Process(self._stand, writer).run(reader)
        except (OSError, EOFError, ValueError):
            return  # it was no relay of ours
        finally:
            writer.close()


class _Process:
    """One process of the server, as the client sees it; the way on which we speak to it."""

    def __init__(self, stand: Stand, writer: asyncio.StreamWriter) -> None:
        self._stand = stand
        self._writer = writer
        self._lines = LineReader(_LINE_BYTES)
        self._conversation: Conversation = stand.conversation()
        self._conversation.standing = self

    async def send(self, raw: bytes, *, last: bool = False) -> None:
        self._writer.write(raw + b"\n")
        with contextlib.suppress(OSError):
            await self._writer.drain()

    async def drop(self) -> None:
        """Exit."""
        self._writer.close()

    async def run(self, reader: asyncio.StreamReader) -> None:
        """Read until the client has ended this process, or has said more than there is room for."""
        try:
            while (ending := await self._ending(reader)) != "closed" or self._stand.scene.deaf:
                self._conversation.endings.append(ending)
            self._conversation.endings.append("closed")
        except (OSError, EOFError):
            self._conversation.endings.append("killed")

    async def _ending(self, reader: asyncio.StreamReader) -> str:
        """Read on, until the client does something to end this process."""
        while True:
            kind, data = await _part(reader, self._stand.room)
            if kind != relay.DATA:
                self._take(self._lines.end())
                return _HOW[bytes(kind), data]
            self._take(self._lines.feed(data))

    def _take(self, lines: list[bytes | Unreadable]) -> None:
        for line in lines:
            if isinstance(line, Unreadable):
                self._conversation.record.add(RECEIVED, line)
                continue
            for request in self._conversation.hear(line):
                self._stand.serve(self._conversation, request, self)


async def _part(reader: asyncio.StreamReader, room: Room) -> tuple[bytes, bytes]:
    """What comes next of a relay: its kind, and the bytes. Raises `EOFError` where there is no room for more."""
    kind, size = relay.HEADER.unpack(await reader.readexactly(relay.HEADER.size))
    if size > _PART_BYTES or room.full:
        raise EOFError
    data = await reader.readexactly(size)
    room.take(data)
    return kind, data
