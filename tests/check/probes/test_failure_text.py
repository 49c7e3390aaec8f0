"""A server that cannot be opened, or ends in the middle, is told as what it is, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from accord.check.engine.report import Report
from accord.check.probes.probe_connection import stderr_tail
from accord.check.server import check_server
from accord.check.settings import CheckSettings
from accord.client.target import Command
from accord.errors import ConnectError, TargetError

from tests.measure import costs_at_most

DIES = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        hello = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": hello}), flush=True)
    elif message["method"] == "tools/call":
        raise KeyError("no such tool")
"""
OPENS_ONCE = """
import json, os, sys, time
with open(sys.argv[1], "a") as said:
    said.write(f"{os.getpid()}\\n")
number = len(open(sys.argv[1]).readlines())
for line in sys.stdin:
    message = json.loads(line)
    living = [pid for pid in open(sys.argv[1]).read().split() if os.path.exists(f"/proc/{pid}")]
    with open(sys.argv[1] + ".most", "a") as said:
        said.write(f"{len(living)}\\n")
    if "id" in message and message["method"] == "initialize" and number == 1:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": hello}), flush=True)
    elif "id" in message:
        error = {"code": -32000, "message": "I am locked"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
"""


@contextlib.asynccontextmanager
async def site(response: bytes) -> AsyncIterator[str]:
    """Where each request gets this response."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.I)
            await reader.readexactly(int(length[1]) if length else 0)
            writer.write(response)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


async def program(folder: Path, text: str, *words: str, only: tuple[str, ...]) -> Report:
    file = folder / "server.py"
    file.write_text(text)
    settings = CheckSettings(revisions=("2025-11-25",), only=only)
    return await check_server(Command((sys.executable, str(file), *words)), settings)


async def test_a_server_that_exits_is_reported_with_its_exit_code_and_the_end_of_its_traceback(tmp_path: Path) -> None:
    report = await program(tmp_path, DIES, only=("tools/unknown-name",))
    text = report.findings[0].text
    assert "no response to tools/call: the server exited with code 1; its last output:\n" in text
    assert text.endswith("KeyError: 'no such tool'")
    assert report.findings[0].cause.startswith("An exception ends the whole server")


async def test_of_many_wrong_messages_the_one_that_ends_a_server_is_shown(tmp_path: Path) -> None:
    report = await program(tmp_path, DIES, only=("faults/survives",))
    found = next(each for each in report.findings if "after a word, the server does not respond" in each.text)
    assert "→ nobody" in found.evidence


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (b"401 Unauthorized\r\nContent-Type: text/plain", "HTTP 401, text/plain: who?; give credentials with --token"),
        (b"307 Moved\r\nLocation: http://127.0.0.1/there?key=1", "HTTP 307 to http://127.0.0.1/there"),
        (b"404 Not Found\r\nContent-Type: text/html", "HTTP 404, text/html: who?; is the path right?"),
        (b"200 OK\r\nContent-Type: text/html", "HTTP 200, text/html: who?"),
        (b"200 OK\r\nContent-Type: application/json", "HTTP 200, application/json: who?"),
    ],
)
async def test_an_http_response_in_place_of_an_answer_is_reported_once(head: bytes, told: str) -> None:
    async with site(b"HTTP/1.1 " + head + b"\r\nContent-Length: 4\r\nConnection: close\r\n\r\nwho?") as url:
        with pytest.raises(ConnectError) as raised:
            await check_server(url, CheckSettings(only=("ping",)))
    assert str(raised.value).startswith(f"{url} gives no answer that is MCP\n  2025-11-25, 2025-06-18, 2025-03-26 over")
    assert str(raised.value).count(told) == 1
    assert "key=1" not in str(raised.value)


async def test_a_server_of_another_json_rpc_protocol_supports_none_of_the_revisions(tmp_path: Path) -> None:
    (tmp_path / "pids").write_text("1\n")
    with pytest.raises(ConnectError, match="speaks none of 2025-11-25\n  2025-11-25 over stdio: it answers initialize"):
        await program(tmp_path, OPENS_ONCE, str(tmp_path / "pids"), only=("ping",))


@pytest.mark.parametrize(
    "settings",
    [
        CheckSettings(transports=("http",)),
        CheckSettings(only=("sse",)),
        CheckSettings(revisions=("2024-11-05",), only=("discover",)),
    ],
)
async def test_without_anything_to_try_nothing_is_reported_of_the_server(settings: CheckSettings) -> None:
    with pytest.raises(TargetError, match=r"nothing to check: .* is reachable over stdio, with no rule selected"):
        await check_server(Command(("no-such-command",)), settings)


async def test_a_server_that_accepts_one_client_does_not_run_once_for_each_case(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    await program(tmp_path, OPENS_ONCE, str(pids), only=("lifecycle", "faults", "ids", "cancel", "errors", "stdio"))
    started = pids.read_text().split()
    most = max(map(int, (tmp_path / "pids.most").read_text().split()))
    assert len(started) > 2 * most, f"{most} of {len(started)} ran at once"


async def test_a_command_that_is_not_there_is_named_with_its_whole_path(tmp_path: Path) -> None:
    with pytest.raises(ConnectError) as raised:
        await check_server(f"{tmp_path}/nowhere/server --option", CheckSettings(only=("ping",)))
    assert str(raised.value) == f'cannot start "server --option": no such file: {tmp_path}/nowhere/server'


def test_last_words_are_whole_lines_and_not_the_underlining_of_a_traceback() -> None:
    assert stderr_tail("") == stderr_tail("\n  ^^^^\n") == ""
    assert stderr_tail("x" * 390 + "\nTraceback:\n    code\n    ^^~~\nKeyError: 1\n").split("\n")[1:] == [
        "Traceback:",
        "    code",
        "KeyError: 1",
    ]
    assert stderr_tail("x" * 1_000 + "y").endswith("xy")
    assert len(stderr_tail("x" * 1_000)) < 450


async def test_a_silent_server_is_awaited_at_length_no_more_than_twice() -> None:
    settings = CheckSettings(opening=4, timeout=0.5, only=("ping", "discover"))
    with pytest.raises(ConnectError, match="gives no answer that is MCP") as raised:
        await check_server([sys.executable, "-c", "import sys; sys.stdin.read()"], settings)
    assert str(raised.value).splitlines()[1:] == [
        "  2026-07-28 over stdio: no response to server/discover in 4 s",
        "  2025-11-25 over stdio: no response to initialize in 4 s",
        "  2025-06-18, 2025-03-26, 2024-11-05 over stdio: no response to initialize in 0.5 s",
    ]


def test_the_time_for_the_end_of_stderr_does_not_depend_on_its_length() -> None:
    line = '"a%20b token",' * 4_000
    with costs_at_most(8):
        shown = stderr_tail(f"{line}\n" * 50 + "KeyError: token=abc")
    assert shown.endswith("KeyError: token=[redacted]")
