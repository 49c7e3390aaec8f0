"""A server that a test plays by hand: it reads JSON and writes bytes, with nothing of accord in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from accord import Client
from accord.transport import memory

Message = dict[str, Any]

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
OFFERS: Message = {"tools": {}, "resources": {}, "prompts": {}}
INFO = {"name": "raw", "version": "1"}


class RawServer:
    """One end of a memory pair with a client at the other."""

    def __init__(self, transport: memory.MemoryTransport, revision: str, offers: Message = OFFERS) -> None:
        self.transport = transport
        self.revision = revision
        self.offers = offers
        self.declared: Message = {}
        """The capabilities of the client: of the handshake, or of the last request that it sent."""
        self._inbox: list[Message] = []
        self._id = 0

    def say(self, message: Message) -> None:
        self.transport.send(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def hear(self, seconds: float = 100) -> Message:
        """The next message."""
        while not self._inbox:
            async with asyncio.timeout(seconds):
                received = await self.transport.receive()
            assert received, "the client has closed the connection"
            self._inbox += [json.loads(message) for message in received if isinstance(message, bytes)]
        message = self._inbox.pop(0)
        self.declared = message.get("params", {}).get("_meta", {}).get(CAPABILITIES, self.declared)
        return message

    async def open(self) -> None:
        """Be a server of one revision."""
        while (message := await self.hear())["method"] != "initialize":
            if self.revision == "2026-07-28":
                found = {"supportedVersions": [self.revision], "capabilities": self.offers, "ttlMs": 0}
                self.answer(message, **found, cacheScope="private")
                return
            self.refuse(message, -32601, "no such method")
        self.declared = message["params"]["capabilities"]
        self.answer(message, protocolVersion=self.revision, capabilities=self.offers, serverInfo=INFO)
        assert (await self.hear())["method"] == "notifications/initialized"

    def answer(self, request: Message, **result: Any) -> None:
        kind = {"resultType": "complete"} if self.revision == "2026-07-28" else {}
        self.say({"id": request["id"], "result": {**kind, **result}})

    def refuse(self, request: Message, code: int, text: str, **data: Any) -> None:
        self.say({"id": request["id"], "error": {"code": code, "message": text, **data}})

    def done(self, request: Message, text: str = "done") -> None:
        """A good answer to `tools/call`."""
        self.answer(request, content=[{"type": "text", "text": text}])

    def require(self, request: Message, **fields: Any) -> None:
        """Answer by asking for input (2026-07-28)."""
        self.answer(request, resultType="input_required", **fields)

    def send(self, method: str, params: Message | None = None) -> int:
        """Ask the client (through 2025-11-25); the id."""
        self._id += 1
        self.say({"id": self._id, "method": method, "params": params or {}})
        return self._id

    async def ask(self, method: str, params: Message | None = None) -> Message:
        """What the client answers: the next message must be that."""
        id = self.send(method, params)
        answer = await self.hear()
        assert answer.get("id") == id, answer
        return answer


@asynccontextmanager
async def raw_server(
    revision: str, *, offers: Message = OFFERS, early: Sequence[Message] = (), **options: Any
) -> AsyncIterator[tuple[RawServer, Client]]:
    """A server to play, and a client that has opened it. `early` is what the server says before anything is asked."""
    ours, theirs = memory.pair()
    server, client = RawServer(ours, revision, offers), Client(theirs, **options)
    for message in early:
        server.say(message)
    async with asyncio.timeout(100):
        await asyncio.gather(server.open(), client.connect())
        try:
            yield server, client
        finally:
            await client.close()
