"""One update to 10,000 subscriptions on one server, in this process: from the change to the last message that arrived.

The floor encodes the same notifications and hands them over in memory, and does nothing else. Memory, not pipes: what
is measured is how the server finds who wants it and what that costs, and both ends share one core.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec

from accord.limits import Limits
from accord.server.server import Server
from accord.transport import memory
from bench.measure import Figure, compare

COUNT, ROUNDS = 10_000, 5
URI = "test://items/1"
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
LIMITS = Limits(pending_bytes=64 << 20)
"""Both ends share a loop, so that nobody reads while all of it is written."""

AIM, FLOOR = 100, 10.0
"""Milliseconds that an update may take, and the lowest that the floor was seen to take."""


def run() -> list[Figure]:
    return [
        of_update("one update: 10,000 listens of one client", 1, listens, AIM / FLOOR),
        of_update("one update: 10,000 listens of 100 clients", 100, listens, AIM / FLOOR),
        of_update("one update: 10,000 listens of 1,000 clients", 1_000, listens, AIM / FLOOR),
        of_update("one update: 100 of 1,000,000 resources of 100 clients", 100, resources),
    ]


def of_update(name: str, clients: int, subscribe: Callable[[int], list[bytes]], aim: float | None = None) -> Figure:
    floors, accords = asyncio.run(_measured(clients, subscribe))
    return compare(name, "ms CPU", floors, accords, aim, pick=min)


def listens(clients: int) -> list[bytes]:
    """What one client sends: its share of the listens, all for the same resource."""
    return [_listen(number, [URI]) for number in range(1, COUNT // clients + 1)]


def resources(_: int) -> list[bytes]:
    """One listen for 10,000 resources."""
    return [_listen(1, [f"test://items/{number}" for number in range(COUNT)])]


def _listen(id: int, uris: list[str]) -> bytes:
    params = {"_meta": META, "notifications": {"resourceSubscriptions": uris}}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params})


async def _measured(clients: int, subscribe: Callable[[int], list[bytes]]) -> tuple[list[float], list[float]]:
    server = Server("bench", limits=LIMITS)
    server.resource("test://items/{n}")(lambda n: n)
    pairs = [memory.pair(LIMITS) for _ in range(clients)]
    serving = [asyncio.ensure_future(server.serve(theirs)) for _, theirs in pairs]
    asked = subscribe(clients)
    for ours, _ in pairs:
        for message in asked:
            ours.send(message)
    ends = [ours for ours, _ in pairs]
    await _taken(ends, len(asked))
    bare = [memory.pair(LIMITS) for _ in range(clients)]
    floors, accords = [], []
    for _ in range(ROUNDS):
        floors.append(await _timed(lambda: _floor(bare, len(asked)), [ours for ours, _ in bare], len(asked)))
        accords.append(await _timed(lambda: server.resource_updated(URI), ends, len(asked)))
    for ours in ends:
        await ours.close()
    await asyncio.gather(*serving)
    return floors, accords


def _floor(pairs: list[tuple[memory.MemoryTransport, memory.MemoryTransport]], each: int) -> None:
    for _, theirs in pairs:
        for id in range(1, each + 1):
            params = {"_meta": {"io.modelcontextprotocol/subscriptionId": id}, "uri": URI}
            method = "notifications/resources/updated"
            theirs.send(msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}))


async def _timed(change: Callable[[], None], ends: list[memory.MemoryTransport], each: int) -> float:
    """Milliseconds of CPU until everyone has what the change leads to; nothing in between waits for anything."""
    taking = asyncio.ensure_future(_taken(ends, each))
    await asyncio.sleep(0)
    began = time.process_time()
    change()
    await taking
    return (time.process_time() - began) * 1e3


async def _taken(ends: list[memory.MemoryTransport], each: int) -> None:
    await asyncio.gather(*(_take(end, each) for end in ends))


async def _take(end: memory.MemoryTransport, count: int) -> None:
    while count > 0:
        count -= len(await end.receive())
