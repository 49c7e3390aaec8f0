"""What a host costs, by counts and by comparison in the same run; `python -m bench --only host` has the times."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord import Server
from accord.host.host import Host
from accord.host.policy.policy import Policy
from accord.messages import codec
from accord.messages.tools import Tool

RAW = Path(__file__).with_name("raw_server.py")
ALLOW = Policy.from_settings([{"name": "all", "decision": "allow"}])
SERVERS, TOOLS, WARM, CALLS = 50, 10_000, 500, 2_000
BYTES_PER_SERVER, BYTES_PER_CALL, OBJECTS_PER_CALL = 1_000_000, 20, 0.05


async def approve(prompt: object) -> bool:
    return True


def host(servers: dict[str, Any]) -> Host:
    return Host(servers, approve=approve, state=":memory:", policy=ALLOW)


def raw(*words: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-I", "-S", str(RAW), *words]}


async def test_servers_start_at_the_same_time(tmp_path: Path) -> None:
    """Each answers only when all others have started: one after the other, none would ever be connected."""
    servers = {f"s{number}": raw("gathers", str(SERVERS), str(tmp_path / "pids")) for number in range(SERVERS)}
    async with asyncio.timeout(150):
        async with host(servers) as one:
            await one.settled()
            assert {each.state for each in one.servers.values()} == {"connected"}
            assert len(await one.list_tools()) == SERVERS


async def test_the_definitions_are_decoded_once_and_not_for_each_list() -> None:
    server = Server("large")
    for number in range(TOOLS):
        server.tool(lambda item: item, name=f"tool_{number}", description="A tool. " * 10)
    async with host({"large": server}) as one:
        first = await one.list_tools()
        assert len(first) == TOOLS
        encoded = msgspec.json.encode([msgspec.Raw(codec.encode(tool)) for tool in first])
        decode = codec.decoder(list[Tool]).decode
        floors, lists = [], []
        for _ in range(5):
            begin = time.process_time()
            decode(encoded)
            middle = time.process_time()
            again = await one.list_tools()
            lists.append(time.process_time() - middle)
            floors.append(middle - begin)
        assert all(tool is other for tool, other in zip(first, again, strict=True))
        assert min(lists) < min(floors), (lists, floors)  # 50 ms is several times the floor


async def test_an_idle_server_takes_less_than_a_megabyte() -> None:
    count = 10
    async with host({"warm": raw("works", "-")}):
        pass
    gc.collect()
    tracemalloc.start()
    try:
        async with host({f"s{number}": raw("works", "-") for number in range(count)}) as one:
            await one.settled()
            gc.collect()
            used, _ = tracemalloc.get_traced_memory()
            assert used / count < BYTES_PER_SERVER
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("decision", ["allow", "ask"])
async def test_calls_leave_nothing_behind(tmp_path: Path, decision: str) -> None:
    """A leak of one object in each call would be as many as there are calls."""
    policy = Policy.from_settings([{"name": "all", "decision": decision}])
    audit, scale = (tmp_path / "audit.jsonl", 5) if decision == "ask" else (None, 1)  # they take longer
    server = Server("one")

    @server.tool
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    async with Host({"one": server}, approve=approve, state=":memory:", policy=policy, audit=audit) as one:

        async def call(count: int) -> int:
            for _ in range(count // scale):
                await one.call_tool("one_echo", {"text": "x"})
            gc.collect()
            return len(gc.get_objects())

        async def growth() -> tuple[float, float]:
            """Return by how many objects and bytes the memory grew for each call."""
            objects, (before, _) = await call(WARM), tracemalloc.get_traced_memory()
            after_objects, (after, _) = await call(CALLS), tracemalloc.get_traced_memory()
            return (after_objects - objects) / (CALLS / scale), (after - before) / (CALLS / scale)

        await call(WARM)
        tracemalloc.start()
        try:
            await call(WARM)
            for _ in range(3):  # timers that wait may be more after one round; a leak is in each
                objects, size = await growth()
                if objects < OBJECTS_PER_CALL and size < BYTES_PER_CALL:
                    return
        finally:
            tracemalloc.stop()
        assert objects < OBJECTS_PER_CALL
        assert size < BYTES_PER_CALL
