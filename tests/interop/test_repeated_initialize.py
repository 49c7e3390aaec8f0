"""Other people's clients that begin a session again on a process, or a stream, that they keep."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.peers import peer_python
from tests.interop.serving import serving

SERVER = """
import sys
from accord import Server

server = Server("twice")

@server.tool
def add(a: int, b: int) -> int:
    return a + b

if sys.argv[1:]:
    server.run(http=sys.argv[1])
else:
    server.run()
"""

SDK = """
import asyncio, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client

async def main(*command):
    parameters = StdioServerParameters(command=command[0], args=list(command[1:]))
    way = sse_client(command[1]) if command[0] == "sse" else stdio_client(parameters)
    async with way as streams, ClientSession(*streams) as session:
        for number in range(3):
            await session.initialize()
            result = await session.call_tool("add", {"a": number, "b": 1})
            print(result.content[0].text)

asyncio.run(main(*sys.argv[1:]))
"""

FASTMCP = """
import asyncio, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

async def main(*command):
    client = Client(StdioTransport(command[0], list(command[1:]), keep_alive=True))
    for number in range(3):
        async with client:
            print((await client.call_tool("add", {"a": number, "b": 1})).data)

asyncio.run(main(*sys.argv[1:]))
"""


def run(environment: str, program: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [str(peer_python(environment)), "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def server(tmp_path: Path) -> str:
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    return str(path)


@pytest.mark.parametrize(("environment", "program"), [("mcp1", SDK), ("fastmcp", FASTMCP)])
def test_a_client_that_keeps_the_process_is_served_each_time(environment: str, program: str, server: str) -> None:
    assert run(environment, program, sys.executable, server) == ["1", "2", "3"]


def test_a_client_that_keeps_the_stream_of_http_and_sse_is_served_each_time(server: str) -> None:
    with serving([sys.executable, server]) as served:
        assert run("mcp1", SDK, "sse", f"{served.url}/sse") == ["1", "2", "3"]
