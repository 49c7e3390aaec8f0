"""Tasks (2026-07-28) on one server, in this process: creating them, in memory and in SQLite, polling them, and the
memory of those that wait.

The floor is a call of the same tool by a client without tasks, which gets the result at once. Both include what the
transport in memory costs.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec

from accord.limits import Limits, TaskLimits
from accord.server.server import Server
from accord.stores import MemoryTasks, SQLiteTasks, Tasks
from accord.transport import memory
from accord.transport.memory import MemoryTransport
from bench.measure import Figure, compare

COUNT, ROUNDS, AT_ONCE, WAITING = 1_000, 5, 100, 10_000
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
WITH_TASKS = {
    **META,
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
}
LIMITS = Limits(
    tasks=TaskLimits(tasks=1 << 20, tasks_per_principal=1 << 20, running_per_principal=1 << 20, polls_per_second=1e9)
)


def run() -> list[Figure]:
    return asyncio.run(_figures())


async def _figures() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        return [
            await _calls("create a task in memory (aim 60 us)", MemoryTasks(LIMITS), "wait"),
            await _calls("create a task in SQLite (aim 250 us)", SQLiteTasks(Path(folder, "1.db")), "wait"),
            await _calls("create, run and end a task in memory", MemoryTasks(LIMITS), "work"),
            await _calls("create, run and end a task in SQLite", SQLiteTasks(Path(folder, "2.db")), "work"),
            await _polls("poll a task in memory (aim 40 us)"),
            await _memory(f"memory of {WAITING:,} waiting tasks, each (aim 8,192)"),
        ]


def _server(store: Tasks) -> Server:
    server = Server("bench", limits=LIMITS, tasks=store)

    @server.tool(task=True)
    async def work() -> str:
        return "worked"

    @server.tool(task=True)
    async def wait() -> str:
        await asyncio.get_running_loop().create_future()
        return ""

    return server


class _Client:
    """A client that sends many requests at once."""

    def __init__(self, server: Server) -> None:
        transports: tuple[MemoryTransport, MemoryTransport] = memory.pair(LIMITS)
        self._transport, theirs = transports
        self._serving = asyncio.ensure_future(server.serve(theirs))

    async def send(self, method: str, params: list[dict[str, Any]]) -> tuple[list[Any], float]:
        """Return the results of requests, and the microseconds of CPU time for each."""
        requests = [
            msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": method, "params": each})
            for id, each in enumerate(params)
        ]
        answers: list[bytes] = []
        started = time.process_time()
        for start in range(0, len(requests), AT_ONCE):
            for request in requests[start : start + AT_ONCE]:
                self._transport.send(request)
            while len(answers) < min(start + AT_ONCE, len(requests)):
                answers += await self._transport.receive()
        used = time.process_time() - started
        return [msgspec.json.decode(each)["result"] for each in answers], used * 1e6 / len(requests)

    async def close(self) -> None:
        await self._transport.close()
        await self._serving


def _call(tool: str, meta: dict[str, Any]) -> dict[str, Any]:
    return {"name": tool, "arguments": {}, "_meta": meta}


async def _calls(name: str, store: Tasks, tool: str) -> Figure:
    """Calls that become tasks, and as the floor calls that do not."""
    client = _Client(_server(store))
    floors, accords = [], []
    for _ in range(ROUNDS):
        floors.append((await client.send("tools/call", [_call("work", META)] * COUNT))[1])
        results, used = await client.send("tools/call", [_call(tool, WITH_TASKS)] * COUNT)
        assert "taskId" in results[0]
        accords.append(used)
    await client.close()
    return compare(name, "us CPU", floors, accords, pick=min)


async def _polls(name: str) -> Figure:
    client = _Client(_server(MemoryTasks(LIMITS)))
    floors, accords = [], []
    (task,), _ = await client.send("tools/call", [_call("wait", WITH_TASKS)])
    poll = {"taskId": task["taskId"], "_meta": WITH_TASKS}
    for _ in range(ROUNDS):
        floors.append((await client.send("tools/call", [_call("work", META)] * COUNT))[1])
        accords.append((await client.send("tasks/get", [poll] * COUNT))[1])
    await client.close()
    return compare(name, "us CPU", floors, accords, pick=min)


async def _memory(name: str) -> Figure:
    """The floor is an asyncio task that waits."""
    floor = [asyncio.ensure_future(asyncio.sleep(1_000)) for _ in range(WAITING)]
    client = _Client(_server(MemoryTasks(LIMITS)))
    await client.send("tools/call", [_call("wait", WITH_TASKS)])
    for each in floor:
        each.cancel()
    await asyncio.gather(*floor, return_exceptions=True)
    del floor
    gc.collect()
    tracemalloc.start()
    floor = [asyncio.ensure_future(asyncio.sleep(1_000)) for _ in range(WAITING)]
    await asyncio.sleep(0)
    before = tracemalloc.get_traced_memory()[0]
    results, _ = await client.send("tools/call", [_call("wait", WITH_TASKS)] * WAITING)
    del results
    gc.collect()
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    for each in floor:
        each.cancel()
    await asyncio.gather(*floor, return_exceptions=True)
    await client.close()
    return compare(name, "bytes", [before / WAITING], [used / WAITING])
