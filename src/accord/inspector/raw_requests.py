"""Raw requests: any bytes to a server, unchanged, on a connection of its own or in the open session.

A connection of its own is the default: nothing that happens there reaches the client of the page. In the open session
over HTTP, a raw message is a POST of its own with the headers of the session, so its response does not reach the client
either. On the pipe of a process there is only one stream; there, ids that the client itself uses are refused.

All messages are recorded as rows of the traffic.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import TypeAlias

import msgspec

from accord.check.engine.report import TransportName
from accord.check.probes.client_messages import initialize_params
from accord.check.probes.message_log import LoggedResponse, MemoryBudget, MessageLog, decode_json, message_objects
from accord.check.wires.base import Wire
from accord.check.wires.child import ChildWire
from accord.check.wires.http import Headers, HTTPWire, SSEWire
from accord.check.wires.memory import MemoryWire
from accord.client.client import Client
from accord.client.target import Command, InProcessServer, Remote
from accord.inspector.commands import InspectorError
from accord.inspector.raw_checks import envelope_problems
from accord.messages.base import JSONObject
from accord.messages.revision import RULES
from accord.redaction import secret_values
from accord.transport.http.sse import SSETransport
from accord.transport.http.streamable import StreamableTransport
from accord.transport.recording import RecordingTransport, SessionRecorder
from accord.wire.lines import SkippedMessage
from accord.wire.transcript import RECEIVED, SENT

MAX_CONNECTIONS = 10
"""Raw connections at once."""
MAX_RECEIVED = 32 << 20
"""Bytes that one raw connection receives; then it is closed."""
_OWN_CONNECTION = "use a connection of its own"
_HANDSHAKE_ID = "accord-inspector-initialize"

InspectedTarget: TypeAlias = Command | Remote | InProcessServer


class RawConnection:
    """One connection for raw messages. `number` is that of its rows in the traffic; `handshake` opens the protocol in
    this revision, where the revision has one.
    """

    def __init__(
        self,
        id: int,
        server: str,
        target: InspectedTarget,
        recorder: SessionRecorder,
        *,
        handshake: str = "",
        headers: Headers | None = None,
        is_session: bool = False,
    ) -> None:
        self.id: int = id
        self.server: str = server
        self.handshake: str = handshake
        self.is_session: bool = is_session
        """Whether it sends in the open session of the client."""
        self.is_open: bool = False
        self.reason: str = ""
        """Why it is closed."""
        self._closing: asyncio.Task[None] | None = None
        self._log = MessageLog(handshake or "2025-11-25", _transport(target), room=MemoryBudget(MAX_RECEIVED))
        self._wire = _wire(target, self._log, headers or {})
        if isinstance(target, Command):
            recorder.add_secrets(secret_values(target.env or {}))
        self._log.record(recorder, f"{server} (raw)")
        self.number: int = recorder.connections
        self._wire.on_message = self._on_message
        self._wire.on_close = self._on_close
        if isinstance(self._wire, HTTPWire):
            self._wire.on_response = self._on_response

    async def open(self) -> None:
        """Open it, and begin the handshake. Raises `ConnectError`."""
        try:
            await self._wire.open()
        except BaseException:
            await self.close("it could not be opened")
            raise
        self.is_open = True
        if self.handshake and RULES[self.handshake].handshake:
            params = initialize_params(self.handshake, {})
            self.send(_encode(_HANDSHAKE_ID, "initialize", params), {})

    def send(self, data: bytes, headers: Headers) -> None:
        """Send bytes, unchanged. Raises `InspectorError` if it is closed."""
        if not self.is_open:
            raise InspectorError(f"this connection is closed: {self.reason}", "open another one")
        self._log.add(SENT, data, stream=len(self._log.responses) + 1)
        self._log.entries.clear()
        self._wire.send(data, headers)

    async def fetch(self, method: str, data: bytes | None, headers: Headers) -> None:
        """Send an HTTP request with any method. Raises `InspectorError` over another transport."""
        if not isinstance(self._wire, HTTPWire):
            raise InspectorError("only HTTP has methods", "choose POST", status=400)
        if data:
            self._log.add(SENT, data, stream=len(self._log.responses) + 1)
            self._log.entries.clear()
        await self._wire.fetch(method, data, headers)

    async def close(self, reason: str = "closed here") -> None:
        """Close it; the process of a server ends."""
        self.reason = self.reason or reason
        self.is_open = False
        await self._wire.close()
        self._log.close(self._wire.stderr, self._wire.exit_code)

    def _on_message(self, raw: bytes | SkippedMessage, stream: int) -> None:
        if self._log.memory.exhausted:
            if self._closing is None:
                reason = f"it received more than {MAX_RECEIVED >> 20} MB"
                self._closing = asyncio.get_running_loop().create_task(self.close(reason))
            return
        entry = self._log.add(RECEIVED, raw, stream=stream)
        self._log.entries.clear()
        if self.handshake and any(each.get("id") == _HANDSHAKE_ID for each in message_objects(entry.message)):
            self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', {})

    def _on_response(self, response: LoggedResponse) -> None:
        response.body = b""  # it is recorded
        response.events.clear()
        response.messages.clear()

    def _on_close(self) -> None:
        self.is_open = False
        self.reason = self.reason or self._wire.close_reason


def _transport(target: InspectedTarget) -> TransportName:
    if isinstance(target, Remote):
        return "sse" if target.sse else "http"
    return "stdio" if isinstance(target, Command) else "memory"


def _wire(target: InspectedTarget, log: MessageLog, headers: Headers) -> Wire:
    if isinstance(target, Remote):
        return (SSEWire if target.sse else HTTPWire)(target.url, log, {**(target.headers or {}), **headers})
    return ChildWire(target) if isinstance(target, Command) else MemoryWire(target)


def _encode(id: str, method: str, params: JSONObject) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


class RawConnections:
    """The raw connections of all servers."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._connections: dict[int, RawConnection] = {}

    def all(self, server: str) -> list[RawConnection]:
        """Return the connections of a server, also the closed ones of late."""
        return [each for each in self._connections.values() if each.server == server]

    def get(self, id: int) -> RawConnection:
        """Return a connection. Raises `InspectorError`."""
        found = self._connections.get(id)
        if found is None:
            raise InspectorError(f"there is no raw connection {id}", "open one", status=404)
        return found

    async def open(
        self,
        server: str,
        target: InspectedTarget,
        recorder: SessionRecorder,
        *,
        handshake: str = "",
        headers: Headers | None = None,
        is_session: bool = False,
    ) -> RawConnection:
        """Open a connection. Raises `InspectorError` beyond `MAX_CONNECTIONS`, `ConnectError`."""
        for each in [each for each in self._connections.values() if not each.is_open]:
            if len(self._connections) >= MAX_CONNECTIONS:
                del self._connections[each.id]
                await each.close()
        if len(self._connections) >= MAX_CONNECTIONS:
            raise InspectorError(f"there are {MAX_CONNECTIONS} raw connections already", "close one")
        opened = RawConnection(
            next(self._numbers), server, target, recorder, handshake=handshake, headers=headers, is_session=is_session
        )
        await opened.open()
        self._connections[opened.id] = opened
        return opened

    async def in_session(self, server: str, target: InspectedTarget, recorder: SessionRecorder) -> RawConnection:
        """Return the connection for POSTs in the open session of a client, which each have its headers."""
        known = next((each for each in self.all(server) if each.is_session and each.is_open), None)
        return known or await self.open(server, target, recorder, is_session=True)

    async def close(self) -> None:
        """Close all connections."""
        for each in self._connections.values():
            await each.close()


async def session_headers(client: Client) -> dict[str, str | None] | None:
    """Return the headers of a further request in the session of a client, in lower case; None if it is not HTTP."""
    transport = _inner(client)
    if not isinstance(transport, StreamableTransport):
        return None
    return {name.lower(): value for name, value in (await transport.session_headers()).items()}


def send_on_pipe(client: Client, data: bytes) -> None:
    """Send bytes on the pipe of a client, unchanged. A response to them is a row of the traffic.

    Raises `InspectorError` for what would disturb the client: an id that it uses itself, and a message that a server
    cannot read, since its error has no id and could be meant for any request.
    """
    if isinstance(_inner(client), StreamableTransport | SSETransport):
        raise InspectorError("this server has no pipe", _OWN_CONNECTION, status=400)
    value = decode_json(data)
    is_foreign = isinstance(value, list) and not RULES[client.revision].batches
    problem = "it is a batch" if is_foreign else next(envelope_problems(data), "") or _line_problem(data)
    if problem:
        raise InspectorError(f"in the open session this would disturb the client: {problem}", _OWN_CONNECTION)
    for message in message_objects(value):
        id = message.get("id")
        if "method" in message and isinstance(id, int | float):
            raise InspectorError(
                f"the client of the page uses the id {id} itself", 'write the id as a text, such as "raw-1"'
            )
    client.connection.transport.send(data)
    client.connection.transport.flush()


def _line_problem(data: bytes) -> str:
    return "it has more than one line" if b"\n" in data.strip() else ""


def _inner(client: Client) -> object:
    transport = client.connection.transport
    return transport.inner if isinstance(transport, RecordingTransport) else transport
