"""A host: its start with 50 servers, its list of 10,000 tools, its memory, and what a call through it costs.

The floor of the start is that of one such server, of a list its decoding with msgspec, and of a call a `Client`.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from accord import Client, Server
from accord.host.host import Host
from accord.host.policy.policy import Policy
from accord.messages import codec
from accord.messages.tools import Tool
from bench.measure import HERE, Figure, compare, take_turns

SERVERS, TOOLS, CALLS, GROWTH_CALLS, ROUNDS = 50, 10_000, 500, 100_000, 5
RAW = HERE.parent / "tests" / "host" / "raw_server.py"
ALLOW = Policy.from_settings([{"name": "all", "decision": "allow"}])


def run() -> list[Figure]:
    return [*memory(), starting(), *listing(), *calling()]  # the memory first: what others free is used again


def host(servers: dict[str, Any]) -> Host:
    return Host(servers, approve=_approve, state=":memory:", policy=ALLOW)


async def _approve(prompt: object) -> bool:
    return True


def sleeping(count: int) -> dict[str, Any]:
    """Return servers that sleep for a second at their start."""
    entry = {"command": sys.executable, "args": ["-I", "-S", str(RAW), "sleeps", "start"]}
    return {f"s{number}": entry for number in range(count)}


def starting() -> Figure:
    """Measure the time until all servers are connected and their lists are read."""
    floors, accords = take_turns(3, lambda: asyncio.run(started(1)), lambda: asyncio.run(started(SERVERS)))
    return compare(f"{SERVERS} servers that sleep 1 s at start", "s", floors, accords, aim=2.0, pick=min)


async def started(count: int) -> float:
    begin = time.perf_counter()
    async with host(sleeping(count)) as one:
        await one.settled()
        elapsed = time.perf_counter() - begin
        states = [each.state for each in one.servers.values()]
        assert states == ["connected"] * count, states
        return elapsed


def large() -> Server:
    server = Server("large")
    for number in range(TOOLS):
        server.tool(lambda item, days=1: item, name=f"tool_{number}", description=f"Tool number {number}. " * 5)
    return server


def listing() -> list[Figure]:
    return asyncio.run(_listing())


async def _listing() -> list[Figure]:
    async with host({"large": large()}) as one:
        tools = await one.list_tools()
        assert len(tools) == TOOLS
        encoded = msgspec.json.encode([msgspec.Raw(codec.encode(tool)) for tool in tools])
        decode = codec.decoder(list[Tool]).decode

        async def floor() -> float:
            begin = time.process_time()
            decode(encoded)
            return (time.process_time() - begin) * 1e3

        async def accord() -> float:
            begin = time.process_time()
            await one.list_tools()
            return (time.process_time() - begin) * 1e3

        floors, accords = [], []
        for _ in range(ROUNDS):
            floors.append(await floor())
            accords.append(await accord())
        return [compare(f"list of {TOOLS:,} tools", "ms CPU", floors, accords, pick=min)]


def resident() -> float:
    """Return the memory of this process in MB."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def memory() -> list[Figure]:
    return asyncio.run(_memory())


async def _memory() -> list[Figure]:
    async with host(sleeping(2)):  # imports
        pass
    before = resident()
    async with host(sleeping(SERVERS)) as one:
        await one.settled()
        each = (resident() - before) / SERVERS
    return [Figure("memory per idle server", "MB", 1.0, each, each, aim=1.0)]


def calling() -> list[Figure]:
    return asyncio.run(_calling())


async def _calling() -> list[Figure]:
    server = Server("one")

    @server.tool
    async def echo(text: str) -> str:
        return text

    async with host({"one": server}) as one, Client(server) as client:

        async def of(call: Any, name: str, count: int = CALLS) -> float:
            begin = time.process_time()
            for _ in range(count):
                await call(name, {"text": "x"})
            return (time.process_time() - begin) * 1e6 / count

        floors, accords = [], []
        for _ in range(ROUNDS):
            floors.append(await of(client.call_tool, "echo"))
            accords.append(await of(one.call_tool, "one_echo"))
        call = compare("call in memory, allowed by the policy", "µs CPU", floors, accords, pick=min)
        await of(one.call_tool, "one_echo", GROWTH_CALLS // 10)
        before = resident()
        await of(one.call_tool, "one_echo", GROWTH_CALLS)
        grown = (resident() - before) * 1e6 / GROWTH_CALLS
        return [call, Figure(f"growth over {GROWTH_CALLS:,} calls", "B/call", 2.0, grown, grown / 2.0, aim=1.0)]
