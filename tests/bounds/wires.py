"""A raw client of a server over each transport, that counts the bytes of a request and of its answer."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from accord import Principal, Server
from accord.server.auth.api_keys import APIKeys
from accord.transport.pipes import PipeTransport

from tests.bounds.table import Outcome
from tests.server.http.http_clients import Legacy, Modern, Stateful, site
from tests.server.raw import RawPeer, raw_peer

JSON = dict[str, Any]
EVERYWHERE = ("memory", "stdio", "http", "sse")
LINES = ("memory", "stdio")
KEYS = APIKeys({"k-ann": "ann", "k-bob": "bob"})
ANN = "Bearer k-ann"


class Wire:
    """One client of a server in 2025-03-26 or later. It asks one thing at a time."""

    def __init__(self, over: str, client: Any) -> None:
        self.over, self.client = over, client
        self._id = 100

    async def ask(self, method: str, params: JSON | None = None, *, id: Any = None) -> Outcome:
        self._id += 1
        message = {"jsonrpc": "2.0", "id": id or self._id, "method": method, "params": params or {}}
        return await self.send(message)

    async def send(self, message: Any) -> Outcome:
        """Send a message; return what its answer says."""
        return outcome(message, await self._answer(message))

    async def _answer(self, message: Any) -> Any:
        if self.over in LINES:
            self.client.say(message)
            id = message["id"] if isinstance(message, dict) else None
            while isinstance(answer := await self.client.hear(), dict) and answer.get("id", id) != id:
                pass
            return answer
        if self.over == "sse":
            posted = await self.client.post(message)
            return await self.client.stream.message() if posted.status == 202 else await posted.json()
        return await (await self.client.post(message)).result()

    async def begin(self, method: str, params: JSON) -> Any:
        """Send a request whose answer nobody awaits yet."""
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        if self.over in LINES:
            self.client.say(message)
        elif self.over == "sse":
            await self.client.post(message)
        else:
            return await self.client.begin("POST", json.dumps(message).encode())
        return None


def outcome(message: Any, answer: Any) -> Outcome:
    """Return what an answer says: its error, also that of a tool."""
    return Outcome(error_of(answer), len(json.dumps(message)), len(json.dumps(answer)))


def error_of(answer: Any) -> str:
    if isinstance(answer, list):
        return ""
    if "error" in answer:
        return str(answer["error"]["message"])
    result = answer["result"]
    return "".join(block["text"] for block in result["content"]) if result.get("isError") else ""


@asynccontextmanager
async def wire(
    over: str, server: Server, *, opened: bool = True, revision: str = "2025-11-25", known: bool = False
) -> AsyncIterator[Wire]:
    """A client of `server`, which has `auth=KEYS` where the client is known."""
    if over == "memory":
        async with raw_peer(server, revision if opened else None, Principal("ann") if known else None) as peer:
            yield Wire(over, peer)
    elif over == "stdio":
        async with piped(server, revision if opened else None) as peer:
            yield Wire(over, peer)
    else:
        headers = {"authorization": ANN} if known else {}
        async with site(server) as here:
            if over == "sse":
                client: Any = await Legacy.connect(here.raw, **headers)
                if opened:
                    await client.open(revision)
                yield Wire(over, client)
                await client.stream.leave()
            elif over == "modern":
                yield Wire(over, Modern(here.raw, **headers))
            else:
                client = Stateful(here.raw, revision, {}, **headers)
                yield Wire(over, await client.open() if opened else client)
                if client.id:
                    await (await client.delete()).end()


@asynccontextmanager
async def piped(server: Server, revision: str | None) -> AsyncIterator[RawPeer]:
    """A raw peer whose lines go over two pipes, as over stdio."""
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    ours = PipeTransport(ours_in, ours_out)
    await ours.open()
    theirs = PipeTransport(theirs_in, theirs_out, limits=server.limits)
    serving = asyncio.get_running_loop().create_task(server.serve(theirs))
    peer: Any = RawPeer(ours)  # type: ignore[arg-type]
    try:
        if revision is not None:
            await peer.open(revision)
        yield peer
    finally:
        await ours.close()
        async with asyncio.timeout(100):
            await serving
