"""accord behind bridges between stdio and HTTP: mcp-remote and supergateway, in each direction."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from accord import Client, ClientLimits, Limits
from accord.client.target import Command

from tests.interop.peers import npm_program
from tests.interop.serving import SECONDS, Serving, free_port, serving

SERVER = """
import sys
from accord import Server

server = Server("bridged")


@server.tool
def double(number: int) -> int:
    return 2 * number


server.run(http=sys.argv[1]) if len(sys.argv) > 1 else server.run()
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bridged") / "server.py"
    made.write_text(SERVER)
    return made


@pytest.fixture(scope="module")
def server(program: Path) -> Iterator[Serving]:
    with serving([sys.executable, str(program)]) as served:
        yield served


async def doubles(target: Any, **options: Any) -> str | None:
    """The revision in which a client calls a tool through a bridge."""
    async with Client(target, timeout=60, **options) as client:
        assert [tool.name for tool in await client.list_tools()] == ["double"]
        assert (await client.call_tool("double", {"number": 21})).data == 42
        return client.revision


REMOTE = [
    ("http-only", "/mcp", {}, "2026-07-28"),
    ("http-only", "/mcp", {"revisions": ["2025-11-25"]}, "2025-11-25"),
    ("sse-only", "/sse", {}, "2026-07-28"),
]


@pytest.mark.parametrize(("transport", "path", "options", "revision"), REMOTE)
async def test_a_client_over_stdio_reaches_a_server_over_http_by_mcp_remote(
    transport: str, path: str, options: dict[str, Any], revision: str, server: Serving, tmp_path: Path
) -> None:
    command = [*npm_program("mcp-remote"), server.url + path, "--allow-http", "--transport", transport]
    bridge = Command(tuple(command), env={"MCP_REMOTE_CONFIG_DIR": str(tmp_path)})
    assert await doubles(bridge, **options) == revision


@pytest.mark.parametrize(("option", "path"), [("--streamableHttp", "/mcp"), ("--sse", "/sse")])
async def test_a_client_over_stdio_reaches_a_server_over_http_by_supergateway(
    option: str, path: str, server: Serving
) -> None:
    # It opens its connection once: `initialize` after a probe that was given up would open it again.
    limits = Limits(client=ClientLimits(connect_seconds=SECONDS, probe_seconds=SECONDS))
    command = [*npm_program("supergateway"), option, server.url + path, "--logLevel", "none"]
    assert await doubles(command, limits=limits)


@contextmanager
def gateway(program: Path, *options: str) -> Iterator[str]:
    """supergateway before a server over stdio: its address."""
    port = free_port()
    command = [*npm_program("supergateway"), "--stdio", f"{sys.executable} {program}", "--port", str(port)]
    with subprocess.Popen(
        [*command, *options, "--healthEndpoint", "/healthz"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as process:
        try:
            wait_for(process, f"http://127.0.0.1:{port}/healthz")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(SECONDS)


def wait_for(process: subprocess.Popen[bytes], url: str) -> None:
    """Return once something answers there."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), urlopen(url, timeout=SECONDS):
            return
        time.sleep(0.05)
    raise AssertionError(f"nothing answered at {url}")


@pytest.mark.parametrize(
    ("options", "path"),
    [((), "/sse"), (("--outputTransport", "streamableHttp"), "/mcp"),
     (("--outputTransport", "streamableHttp", "--stateful"), "/mcp")],
)  # fmt: skip
async def test_clients_over_http_reach_a_server_over_stdio_by_supergateway(
    options: tuple[str, ...], path: str, program: Path
) -> None:
    with gateway(program, *options) as url:
        for _ in range(2):  # it starts the server once, for all its clients
            assert await doubles(url + path)
