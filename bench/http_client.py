"""The CPU time of a client per `tools/call` over HTTP, sequentially and with 64 tasks, against the floor of a server.

The floor is a minimal client on uvloop: persistent connections, a future per call, no checks. Each window is measured
in a process of its own: `python -m bench.http_client floor | accord PORT`.
"""

from __future__ import annotations

import asyncio
import os
import sys

import msgspec
import uvloop

from bench.client import by_tasks, in_a_process, windows
from bench.http_wire import Site, answer_in, is_whole
from bench.measure import LOADING, SERVING, Figure, take_turns
from bench.wire import META

ROUNDS = 5
AIMS = {1: 260 / 45.3, 64: 140 / 17.3}
SIDES = ("floor", "accord")

_HEAD = (
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
    b"Mcp-Method: tools/call\r\nMcp-Name: echo\r\nContent-Length: %d\r\n\r\n"
)


class LeastConnection(asyncio.Protocol):
    """A connection with one request at a time."""

    def __init__(self) -> None:
        self.answered: asyncio.Future[str]
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        if is_whole(self._data):
            data, self._data = self._data, b""
            self.answered.set_result(answer_in(data).result.content[0].text)


class LeastClient:
    """A minimal client, which uses an idle connection, or opens one."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._loop = asyncio.get_running_loop()
        self._idle: list[tuple[asyncio.Transport, LeastConnection]] = []
        self._encode = msgspec.json.Encoder().encode
        self._last = 0

    async def echo(self, text: str) -> str:
        """Call the tool."""
        self._last = number = self._last + 1
        arguments = self._encode({"text": text})
        body = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":%b,%b}}' % (
            number,
            arguments,
            META,
        )
        transport, connection = self._idle.pop() if self._idle else await self._connect()
        connection.answered = self._loop.create_future()
        transport.write(_HEAD % len(body) + body)
        text_received = await connection.answered
        self._idle.append((transport, connection))
        return text_received

    async def _connect(self) -> tuple[asyncio.Transport, LeastConnection]:
        return await self._loop.create_connection(LeastConnection, "127.0.0.1", self._port)


async def drive_floor(port: int) -> list[float]:
    return await windows(LeastClient(port).echo)


async def drive_accord(port: int) -> list[float]:
    from accord import Client

    async with Client(f"http://127.0.0.1:{port}/mcp") as client:

        async def echo(text: str) -> str:
            return (await client.call_tool("echo", {"text": text})).text

        return await windows(echo)


def run() -> list[Figure]:
    with Site("http_floor.py", core=LOADING) as site:
        floors, accords = take_turns(
            ROUNDS, *(lambda which=which: in_a_process("bench.http_client", which, str(site.port)) for which in SIDES)
        )
    return by_tasks("client over HTTP", floors, accords, AIMS)


if __name__ == "__main__":
    os.sched_setaffinity(0, {SERVING})
    _, which, port = sys.argv
    figures = uvloop.run(drive_floor(int(port))) if which == "floor" else asyncio.run(drive_accord(int(port)))
    print(msgspec.json.encode(figures).decode())
