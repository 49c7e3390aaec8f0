"""One session with a client: a process over stdio, a session over HTTP, or all requests without a session."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, Protocol

import msgspec

from accord.check.engine.report import TransportName
from accord.check.probes.message_log import MemoryBudget, MessageLog, message_objects
from accord.messages.base import JSONObject
from accord.messages.revision import RULES, Rules
from accord.wire.transcript import RECEIVED, SENT

CANCELLED = "notifications/cancelled"

_COUNTED = 64 << 10
"""The charged size of one message from the server: longer ones belong to the scenario, and are sent once."""


class ReplyChannel(Protocol):
    """The destination of messages: the stdout of a server, or the response to one POST."""

    async def send(self, raw: bytes, *, last: bool = False) -> None:
        """Send one message; `last` marks the response."""

    async def abort(self) -> None:
        """Close the connection or the stream without a response, like a server that crashes."""


class ConversationServer(Protocol):
    """The server of one run, as its sessions and the handlers of a scenario use it."""

    revision: str
    transport: TransportName
    memory: MemoryBudget
    state: dict[str, Any]
    """Data of a scenario between requests."""

    @property
    def trap_url(self) -> str:
        """A URL that no client should fetch."""

    def mark_message(self, message: JSONObject) -> None:
        """Record that the client sent a message."""

    def is_first_time(self, what: str) -> bool:
        """Return whether this is the first call with this key."""


class ClientConversation:
    """The messages of a session, the requests in progress, and the requests from the server. `scenario` is its name."""

    def __init__(self, server: ConversationServer, number: int, scenario: str) -> None:
        self.server: ConversationServer = server
        self.number: int = number
        """From 1, in the order of the first messages."""
        self.log: MessageLog = MessageLog(server.revision, server.transport, "own", scenario)
        self.client_capabilities: JSONObject = {}
        """The client capabilities from the handshake."""
        self.background_channel: ReplyChannel | None = None
        """The channel for messages that belong to no request."""
        self.shutdown_events: list[str] = []
        """Over stdio: how the client ended the server, in order: `closed` (its stdin), `terminated` (SIGTERM),
        `killed`, and `orphaned` if SIGTERM came after the exit of the client.
        """
        self._cancellations: dict[Any, asyncio.Event] = {}
        self._pending: dict[Any, asyncio.Future[JSONObject]] = {}
        self._ids = itertools.count(1)

    @property
    def rules(self) -> Rules:
        """The rules of its revision."""
        return RULES[self.server.revision]

    # --- what the client says --------------------------------------------------------------------------------------

    def receive(self, raw: bytes, stream: int = 0) -> list[JSONObject]:
        """Record a message, and return its requests, which need responses."""
        entry = self.log.add(RECEIVED, raw, stream=stream)
        requests: list[JSONObject] = []
        for message in message_objects(entry.message):
            if "method" not in message:
                self._receive_response(message)
            elif "id" in message:
                requests.append(message)
            elif message["method"] == CANCELLED:
                self._receive_cancellation(message.get("params"))
            self.server.mark_message(message)
        if not requests and entry.message is None:
            self.server.mark_message({})
        return requests

    def _receive_response(self, message: JSONObject) -> None:
        waiting = self._pending.get(id_key(message.get("id")))
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    def _receive_cancellation(self, params: Any) -> None:
        id = params.get("requestId") if isinstance(params, dict) else None
        self._cancellation(id).set()

    def _cancellation(self, id: Any) -> asyncio.Event:
        return self._cancellations.setdefault(id_key(id), asyncio.Event())

    async def wait_for_cancellation(self, id: Any, seconds: float) -> bool:
        """Wait until the client cancels a request."""
        return await _within(self._cancellation(id).wait(), seconds)

    def is_cancelled(self, id: Any) -> bool:
        """Return whether the client has cancelled a request."""
        return self._cancellation(id).is_set()

    def close_streams(self, *ids: Any) -> None:
        """Record that the client closed the stream of these requests."""
        for id in ids:
            self._cancellation(id).set()

    # --- what we say -----------------------------------------------------------------------------------------------

    async def send(self, message: Any, way: ReplyChannel, *, misbehaved: bool = False, last: bool = False) -> None:
        """Send a message, or bytes without changes, and record it."""
        raw = encode_message(message)
        self.server.memory.charge_message(raw[:_COUNTED])
        self.log.add(SENT, raw, misbehaved=misbehaved, stream=getattr(way, "stream", 0))
        await way.send(raw, last=last)

    async def send_request(
        self, method: str, params: JSONObject | None, way: ReplyChannel, *, id: Any = None, seconds: float
    ) -> JSONObject | None:
        """Send a request, and wait for the response; None after the timeout."""
        number = f"check-{next(self._ids)}" if id is None else id
        waiting = self._pending[id_key(number)] = asyncio.get_running_loop().create_future()
        request: JSONObject = {"jsonrpc": "2.0", "id": number, "method": method}
        await self.send(request if params is None else request | {"params": params}, way)
        await _within(waiting, seconds)
        return waiting.result() if waiting.done() and not waiting.cancelled() else None


def id_key(id: Any) -> tuple[str, Any]:
    """Return an id as a key with its type: 7 is not "7". Invalid ids are compared as text."""
    return type(id).__name__, id if isinstance(id, str | int | float) else repr(id)


def encode_message(message: Any) -> bytes:
    """Return a message as bytes; bytes without changes."""
    return message if isinstance(message, bytes) else msgspec.json.encode(message)


async def _within(what: Any, seconds: float) -> bool:
    try:
        await asyncio.wait_for(what, seconds)
    except TimeoutError:
        return False
    return True
