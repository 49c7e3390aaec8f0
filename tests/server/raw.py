"""A client that writes bytes and reads JSON: what a server really says, with nothing in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from accord import Principal
from accord.server.server import Server
from accord.transport import memory

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class RawPeer:
    """One end of a memory pair with a server at the other."""

    def __init__(self, transport: memory.MemoryTransport) -> None:
        self.transport = transport
        self.inbox: list[Any] = []
        self.revision = ""
        self._id = 0

    def say(self, message: bytes | dict[str, Any] | list[Any]) -> None:
        self.transport.send(message if isinstance(message, bytes) else json.dumps(message).encode())

    async def hear(self, seconds: float = 100) -> Any:
        """The next message."""
        if not self.inbox:
            async with asyncio.timeout(seconds):
                self.inbox += [json.loads(message) for message in await self.transport.receive()]
        return self.inbox.pop(0) if self.inbox else None

    async def open(self, revision: str) -> dict[str, Any]:
        """The handshake, or nothing where the revision has none."""
        self.revision = revision
        if revision == "2026-07-28":
            return {}
        params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        answer = await self.ask("initialize", params)
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def send(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request; its id."""
        self._id += 1
        params = dict(params or {})
        if self.revision == "2026-07-28":
            params["_meta"] = {**META, **params.get("_meta", {})}
        self.say({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        return self._id

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The next message after a request, which must be its answer."""
        id = self.send(method, params)
        answer = await self.hear()
        assert answer["id"] == id, answer
        return answer

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool call."""
        answer = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        return answer["result"]


@asynccontextmanager
async def raw_peer(
    server: Server, revision: str | None = "2025-11-25", principal: Principal | None = None
) -> AsyncIterator[RawPeer]:
    """A raw peer of a running server, opened in a revision (None: not opened)."""
    ours, theirs = memory.pair()
    serving = asyncio.get_running_loop().create_task(server.serve(theirs, principal=principal))
    peer = RawPeer(ours)
    try:
        if revision is not None:
            await peer.open(revision)
        yield peer
    finally:
        await ours.close()
        async with asyncio.timeout(100):
            await serving
