"""The scripted server over stdio: each process that the client starts is a relay, with a session in this process."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shlex
import sys

from accord.check.clients import relay
from accord.check.clients.conversation import ClientConversation
from accord.check.clients.loopback import LoopbackListener
from accord.check.clients.scripted_server import ScriptedServer
from accord.check.probes.message_log import MemoryBudget
from accord.wire.lines import LineReader, SkippedMessage
from accord.wire.transcript import RECEIVED

_LINE_BYTES = 16 << 20
_PART_BYTES = 64 << 10
"""Maximum size of a block from the relay."""
_CLOSE_GRACE = 1.0
"""Seconds."""
_SHUTDOWN_EVENTS = {(relay.END, b""): "closed", (relay.TERM, b"1"): "terminated", (relay.TERM, b"0"): "orphaned"}


class ScriptedStdioServer:
    """Listens for relays; `command` is the command line of one."""

    def __init__(self, stand: ScriptedServer) -> None:
        self._server = stand
        self._token = secrets.token_hex(16)
        self._loopback = LoopbackListener(self._serve_relay)
        self.command: list[str] = []
        """The command line that the client has to start."""

    @property
    def target(self) -> str:
        """The command line as one string for a shell."""
        return shlex.join(self.command)

    async def open(self) -> None:
        """Listen."""
        await self._loopback.open()
        port = str(self._loopback.port)
        # -I and -S: neither the environment nor site-packages change what starts, and it starts quickly.
        self.command = [sys.executable, "-I", "-S", relay.__file__, port, self._token, self._server.scenario.stderr]

    async def close(self) -> None:
        """End all relays, after their last bytes have been read."""
        await self._loopback.close(_CLOSE_GRACE)

    async def _serve_relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if secrets.compare_digest((await reader.readline()).strip(), self._token.encode()):
                await _RelayedProcess(self._server, writer).run(reader)
        except (OSError, EOFError, ValueError):
            return  # it was no relay of ours
        finally:
            writer.close()


class _RelayedProcess:
    """One process of the server, as the client sees it, and the channel to the client."""

    def __init__(self, stand: ScriptedServer, writer: asyncio.StreamWriter) -> None:
        self._server = stand
        self._writer = writer
        self._lines = LineReader(_LINE_BYTES)
        self._conversation: ClientConversation = stand.add_conversation()
        self._conversation.background_channel = self

    async def send(self, raw: bytes, *, last: bool = False) -> None:
        self._writer.write(raw + b"\n")
        with contextlib.suppress(OSError):
            await self._writer.drain()

    async def abort(self) -> None:
        """Exit."""
        self._writer.close()

    async def run(self, reader: asyncio.StreamReader) -> None:
        """Read until the client has ended this process, or the memory limit is reached."""
        try:
            while (ending := await self._next_shutdown_event(reader)) != "closed" or self._server.scenario.deaf:
                self._conversation.shutdown_events.append(ending)
            self._conversation.shutdown_events.append("closed")
        except (OSError, EOFError):
            self._conversation.shutdown_events.append("killed")

    async def _next_shutdown_event(self, reader: asyncio.StreamReader) -> str:
        """Read until the client does something to end this process."""
        while True:
            kind, data = await _read_part(reader, self._server.memory)
            if kind != relay.DATA:
                self._receive(self._lines.end())
                return _SHUTDOWN_EVENTS[bytes(kind), data]
            self._receive(self._lines.feed(data))

    def _receive(self, lines: list[bytes | SkippedMessage]) -> None:
        for line in lines:
            if isinstance(line, SkippedMessage):
                self._conversation.log.add(RECEIVED, line)
                continue
            for request in self._conversation.receive(line):
                self._server.serve(self._conversation, request, self)


async def _read_part(reader: asyncio.StreamReader, room: MemoryBudget) -> tuple[bytes, bytes]:
    """Read the kind and the bytes of a block. Raises `EOFError` beyond the memory limit."""
    kind, size = relay.HEADER.unpack(await reader.readexactly(relay.HEADER.size))
    if size > _PART_BYTES or room.exhausted:
        raise EOFError
    data = await reader.readexactly(size)
    room.charge_message(data)
    return kind, data
