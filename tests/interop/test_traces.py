"""One trace with the official SDK, which speaks OpenTelemetry as well: with us as the client, and as the server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from accord import Client

from tests.interop.peers import Sdk, peer_python
from tests.telemetry.recorder import Recorder

ROOT = Path(__file__).parent.parent.parent

TRACE = "c" * 32

SERVERS: dict[Sdk, str] = {
    "mcp2": "from mcp.server.mcpserver import MCPServer as Server",
    "fastmcp": "from fastmcp import FastMCP as Server",
}

SERVER = """
from opentelemetry.trace import get_current_span

server = Server("peer")


@server.tool()
async def trace() -> str:
    return f"{get_current_span().get_span_context().trace_id:032x}"


server.run()
"""

CLIENT = f"""
import asyncio, sys
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from opentelemetry import context, trace

SPAN = trace.SpanContext(int("{TRACE}", 16), int("d" * 16, 16), True, trace.TraceFlags(1))


async def main():
    context.attach(trace.set_span_in_context(trace.NonRecordingSpan(SPAN)))
    async with Client(stdio_client(StdioServerParameters(command=sys.argv[1], args=sys.argv[2:]))) as client:
        print((await client.call_tool("trace", {{}})).content[0].text)


asyncio.run(main())
"""

OURS = """
from opentelemetry.trace import get_current_span

from accord import OpenTelemetry, Server

server = Server("ours", telemetry=OpenTelemetry())


@server.tool
async def trace() -> str:
    return f"{get_current_span().get_span_context().trace_id:032x}"


server.run()
"""


@pytest.mark.parametrize("sdk", SERVERS)
async def test_a_call_to_a_peer_goes_on_in_our_trace(sdk: Sdk) -> None:
    recorder = Recorder()
    async with Client([str(peer_python(sdk)), "-c", SERVERS[sdk] + SERVER], telemetry=recorder.telemetry) as client:
        said = (await client.call_tool("trace")).text
    assert said == f"{recorder.client('tools/call trace').context.trace_id:032x}"


def test_a_call_of_a_peer_goes_on_here() -> None:
    command = [str(peer_python("mcp2")), "-c", CLIENT, sys.executable, "-c", OURS]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=100, cwd=ROOT)
    assert done.stdout.strip() == TRACE, done.stderr
