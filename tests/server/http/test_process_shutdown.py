"""SIGTERM at a server with everything open: what runs is answered, streams end properly, the process ends with 0."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.server.http.test_serve import body, rest, until

AT_ONCE = 100.0
"""Seconds in which happens what waits for nothing, however busy the machine is."""

PATIENCE = 1000.0
"""Seconds for which waits what must not: longer than a test may take."""

PROGRAM = """
import asyncio, sys, time
from accord import Limits, Server

server = Server("ending", limits=Limits(requests_in_flight=1000, grace_seconds=float(sys.argv[1])))


@server.tool
async def wait(seconds: float) -> str:
    print("running", flush=True)
    await asyncio.sleep(seconds)
    return "waited"


@server.tool
def wait_in_a_thread(seconds: float) -> str:
    print("running", flush=True)
    time.sleep(seconds)
    return "waited"


server.run(http=":0")
print("after the server", flush=True)
"""

NEW = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": NEW,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}
INIT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class Ending:
    """The process and its port."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port

    def send(self, verb: str, message: Any = None, **headers: str) -> socket.socket:
        content = json.dumps(message).encode() if message is not None else b""
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        accept = "text/event-stream" if verb == "GET" else "application/json, text/event-stream"
        head = [f"{verb} /mcp HTTP/1.1", "host: localhost", f"accept: {accept}", "content-type: application/json"]
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        sock.sendall("\r\n".join([*head, *lines, f"content-length: {len(content)}", "", ""]).encode() + content)
        return sock

    def new(self, id: int, method: str, **params: Any) -> socket.socket:
        """A request of 2026-07-28."""
        headers = {"mcp_protocol_version": NEW, "mcp_method": method}
        if "name" in params:
            headers["mcp_name"] = params["name"]
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": META}}
        return self.send("POST", message, **headers)

    def runs(self, calls: int) -> None:
        """Returns when so many calls run."""
        assert self.process.stdout is not None
        for _ in range(calls):
            assert self.process.stdout.readline() == "running\n"

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=AT_ONCE)
        assert (self.process.returncode, out) == (0, "after the server\n")


@contextmanager
def ending(folder: Path, grace: float = PATIENCE) -> Iterator[Ending]:
    (folder / "ending.py").write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, "ending.py", str(grace)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        found = re.search(r"at http://127.0.0.1:(\d+)/mcp", process.stderr.readline())
        assert found
        yield Ending(process, int(found[1]))
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_calls_are_answered_and_streams_of_both_forms_end_properly(tmp_path: Path) -> None:
    with ending(tmp_path) as it, ExitStack() as opened:
        with it.send("POST", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INIT}) as sock:
            found = re.search(rb"mcp-session-id: (\S+)", until(sock, b'"result"'))
        assert found
        old = {"mcp_session_id": found[1].decode(), "mcp_protocol_version": "2025-11-25"}
        stream = opened.enter_context(it.send("GET", **old))
        until(stream, b"text/event-stream")
        listen = opened.enter_context(it.new(1, "subscriptions/listen", notifications={"toolsListChanged": True}))
        until(listen, b"acknowledged")
        calls = [
            opened.enter_context(it.new(id, "tools/call", name="wait", arguments={"seconds": 1})) for id in range(100)
        ]
        it.runs(100)
        it.end()
        for id, call in enumerate(calls):
            answer = json.loads(body(rest(call)))
            assert (answer["id"], answer["result"]["content"][0]["text"]) == (id, "waited")
        assert rest(stream).endswith(b"0\r\n\r\n")
        last = rest(listen)
        assert last.endswith(b"0\r\n\r\n")
        assert b'"result"' in last


@pytest.mark.parametrize("session", [False, True])
@pytest.mark.parametrize("tool", ["wait", "wait_in_a_thread"])
def test_a_call_that_takes_too_long_does_not_keep_the_process_and_is_answered(
    tmp_path: Path, tool: str, session: bool
) -> None:
    call = {"name": tool, "arguments": {"seconds": PATIENCE}}
    with ending(tmp_path, grace=0.5) as it, ExitStack() as opened:
        if session:
            with it.send("POST", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INIT}) as sock:
                found = re.search(rb"mcp-session-id: (\S+)", until(sock, b'"result"'))
            assert found
            headers = {"mcp_session_id": found[1].decode(), "mcp_protocol_version": "2025-11-25"}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            sock = opened.enter_context(it.send("POST", message, **headers))
        else:
            sock = opened.enter_context(it.new(1, "tools/call", **call))
        it.runs(1)
        it.end()
        answer = rest(sock)
    assert b'"code":-32603' in answer
    assert answer.endswith(b"0\r\n\r\n")
