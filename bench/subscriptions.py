"""One update for 10,000 subscriptions of one server, in this process: from the change to the arrival of the last
message.

The floor only encodes the same notifications and passes them in memory. There are no pipes, because the benchmark
measures how the server finds the subscribers, and both sides share one core.
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
LIMITS = Limits(pending_bytes=64 << 20, subscribed_bytes=1 << 30, subscribed_total_bytes=4 << 30)
"""Both sides share an event loop, so nothing is read while the notifications are written; all subscriptions fit."""

AIM, FLOOR = 100, 10.0
"""The maximum milliseconds of an update, and the lowest measured time of the floor."""


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
    """Return the requests of one client: its share of the listens, all for the same resource."""
    return [_listen(number, [URI]) for number in range(1, COUNT // clients + 1)]


def resources(_: int) -> list[bytes]:
    """Return one listen for 10,000 resources."""
    return [_listen(1, [f"test://items/{number}" for number in range(COUNT)])]


def _listen(id: int, uris: list[str]) -> bytes:
    params = {"_meta": META, "notifications": {"resourceSubscriptions": uris}}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params})


async def _measured(clients: int, subscribe: Callable[[int], list[bytes]]) -> tuple[list[float], list[float]]:
    server = Server("bench", limits=LIMITS)
    server.resource("test://items/{n}")(lambda n: n)
    pairs = [memory.pair(LIMITS) for _ in range(clients)]
    server_tasks = [asyncio.ensure_future(server.serve(theirs)) for _, theirs in pairs]
    requests = subscribe(clients)
    for ours, _ in pairs:
        for message in requests:
            ours.send(message)
    client_transports = [ours for ours, _ in pairs]
    await _taken(client_transports, len(requests))
    floor_pairs = [memory.pair(LIMITS) for _ in range(clients)]
    floors, accords = [], []
    for _ in range(ROUNDS):
        floors.append(
            await _timed(lambda: _floor(floor_pairs, len(requests)), [ours for ours, _ in floor_pairs], len(requests))
        )
        accords.append(await _timed(lambda: server.resource_updated(URI), client_transports, len(requests)))
    for ours in client_transports:
        await ours.close()
    await asyncio.gather(*server_tasks)
    return floors, accords


def _floor(pairs: list[tuple[memory.MemoryTransport, memory.MemoryTransport]], count: int) -> None:
    for _, theirs in pairs:
        for id in range(1, count + 1):
            params = {"_meta": {"io.modelcontextprotocol/subscriptionId": id}, "uri": URI}
            method = "notifications/resources/updated"
            theirs.send(msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}))


async def _timed(change: Callable[[], None], transports: list[memory.MemoryTransport], count: int) -> float:
    """Return the milliseconds of CPU time until all notifications have arrived."""
    receiving = asyncio.ensure_future(_taken(transports, count))
    await asyncio.sleep(0)
    started = time.process_time()
    change()
    await receiving
    return (time.process_time() - started) * 1e3


async def _taken(transports: list[memory.MemoryTransport], count: int) -> None:
    await asyncio.gather(*(_take(transport, count) for transport in transports))


async def _take(transport: memory.MemoryTransport, count: int) -> None:
    while count > 0:
        count -= len(await transport.receive())
