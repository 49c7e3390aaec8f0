"""`accord inspect`: the link, the port, the token, and what starts only after an approval in the terminal."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

if sys.platform == "win32":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

from accord.cli.interrupts import Interrupts, run_interruptible

from tests.cli.conftest import Run
from tests.cli.terminal import SECONDS, Terminal

SHOP = """
from pathlib import Path
from accord import Server

Path("started").touch()
server = Server("shop")


@server.tool
def price(item: str) -> int:
    return len(item)
"""
LINK = re.compile(r"(http://127\.0\.0\.1:\d+)/#token=([\w-]{43})")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


def parts(link: str) -> tuple[str, str]:
    """Return the address and the token of a link."""
    match = LINK.search(link)
    assert match is not None, link
    return match[1], match[2]


def send(link: tuple[str, str], command: str, **params: Any) -> tuple[int, Any]:
    """Send a command, as a program does; return the status and the result."""
    headers = {"content-type": "application/json", "accord-inspector-token": link[1]}
    request = urllib.request.Request(f"{link[0]}/api/{command}", json.dumps(params).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, json.load(exc)


@contextmanager
def inspecting(
    folder: Path, *arguments: str, command: tuple[str, ...] = ("inspect", "--no-open"), **environment: str
) -> Iterator[tuple[str, str]]:
    """Run the command without a terminal, and yield its link; it ends with SIGTERM, and leaves nothing behind."""
    with subprocess.Popen(
        [sys.executable, "-m", "accord", *command, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
    ) as process:
        try:
            assert process.stdout is not None
            yield parts(process.stdout.readline())
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS)


def test_the_servers_of_the_command_line_connect_when_the_page_asks(folder: Path) -> None:
    with inspecting(folder, "shop.py") as link:
        assert not (folder / "started").exists()
        status, server = send(link, "servers/connect", server="shop.py")
        assert (status, server["state"], server["revision"]) == (200, "connected", "2026-07-28")
        assert (folder / "started").exists()
        assert send((link[0], "wrong"), "servers/list")[0] == 401


@pytest.mark.parametrize(("ignored", "code"), [(False, 129), (True, 143)])
def test_a_closed_terminal_ends_the_inspector_and_leaves_nothing(
    folder: Path, tmp_path: Path, ignored: bool, code: int
) -> None:
    """The signal ended it at once: what it had recorded stayed in its temporary folder. Under nohup, it is ignored."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "accord", "inspect", "--no-open", "shop.py"]
    with subprocess.Popen(
        ["nohup", *command] if ignored else command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:
        try:
            assert process.stdout is not None
            link = parts(process.stdout.readline())
            assert send(link, "servers/connect", server="shop.py")[0] == 200
            process.send_signal(signal.SIGHUP)
            if ignored:
                assert send(link, "servers/list")[0] == 200
                process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == code
        finally:
            process.kill()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(("begins", "code"), [(True, 129), (False, 0)])
def test_no_further_signal_cancels_what_a_command_closes(begins: bool, code: int) -> None:
    """A terminal that closes sends SIGHUP, as its shell does, and ends the input before that."""
    closed = False

    async def close() -> None:
        nonlocal closed
        signal.raise_signal(signal.SIGHUP)
        for _ in range(10):
            await asyncio.sleep(0.01)
        closed = True

    async def work(interrupts: Interrupts) -> int:
        interrupts.contexts.push_async_callback(close)
        if begins:
            signal.raise_signal(signal.SIGHUP)
            await asyncio.Event().wait()
        return 0

    assert (run_interruptible(work), closed) == (code, True)


def test_a_program_under_live_reload_is_inspected(folder: Path) -> None:
    opened = folder / "opened"
    browser = folder / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o700)
    with inspecting(folder, "shop.py", "--inspect", "--grace", "1", command=("dev",), BROWSER=str(browser)) as link:
        (name,) = [each["name"] for each in send(link, "servers/list")[1]["servers"]]
        assert send(link, "servers/connect", server=name)[1]["state"] == "connected"
        call: Any = {"kind": "tool", "name": "price", "server": name}
        assert send(link, "calls/start", argumentsJson='{"item": "tea"}', **call)[0] == 200
        (folder / "shop.py").write_text(
            SHOP.replace("len(item)", "len(item)\n\n\n@server.tool\ndef added() -> int:\n    return 1")
        )
        deadline = time.monotonic() + SECONDS
        while "added" not in str(send(link, "tools/list", server=name)):
            assert time.monotonic() < deadline
    assert opened.read_text().startswith("file://")


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="there is no IPv6")
def test_nobody_else_can_serve_the_frames_of_apps(folder: Path) -> None:
    """A browser takes ::1 for `localhost` before 127.0.0.1: another user would get what the page sends to an app."""
    with inspecting(folder, "shop.py") as link:
        port = int(link[0].rpartition(":")[2])
        with socket.socket(socket.AF_INET6) as other, pytest.raises(OSError, match="in use"):
            other.bind(("::1", port))
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"http://[::1]:{port}/", timeout=SECONDS)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://localhost:{port}/app/unknown", timeout=SECONDS)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="there is no IPv6")
def test_a_port_that_somebody_else_has_at_the_other_address_is_refused(accord: Run, folder: Path) -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
        port = other.getsockname()[1]
        result = accord("inspect", "--no-open", "--port", str(port))
    assert result.returncode == 2
    assert f"[::1]:{port} is in use" in result.stderr


def test_a_configuration_that_the_user_named_needs_no_approval(folder: Path) -> None:
    entry = {"command": sys.executable, "args": ["-m", "accord", "run", "shop.py"], "cwd": str(folder)}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"mine": entry}}))
    with inspecting(folder, "--config", "mcp.json") as link:
        assert [each["name"] for each in send(link, "servers/list")[1]["servers"]] == ["mine"]
        assert send(link, "servers/connect", server="mine")[1]["state"] == "connected"


def test_a_session_file_is_shown_without_a_server(folder: Path) -> None:
    (folder / "shop.jsonl").write_text('{"kind":"session","version":1,"at":"2026-11-23T15:40:02.000Z"}\n{"kind":"clos')
    with inspecting(folder, "--session", "shop.jsonl") as link:
        live, opened = send(link, "session/list")[1]["sessions"]
        assert (live["id"], opened["name"], opened["rows"]) == ("live", "shop.jsonl", 0)
        assert opened["remark"] == "the last line (2) is incomplete; it is left out"


def test_a_session_file_beyond_the_limit_of_requests_is_opened(folder: Path) -> None:
    head = b'{"kind":"session","version":1,"at":"2026-11-23T15:40:02.000Z"}\n'
    line = b'{"kind":"stderr","connection":1,"t":0.1,"text":"' + b"x" * 1_000 + b'"}\n'
    with inspecting(folder) as link:
        headers = {"content-type": "application/octet-stream", "accord-inspector-token": link[1]}
        headers["accord-inspector-file"] = "large.jsonl"
        request = urllib.request.Request(f"{link[0]}/api/session/open", head + 5_000 * line, headers)
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            assert response.status == 200
        assert [each["name"] for each in send(link, "session/list")[1]["sessions"]][1:] == ["large.jsonl"]


def test_secrets_are_replaced_unless_the_user_asks_otherwise(folder: Path) -> None:
    (folder / "shop.py").write_text("from accord import Server\nserver = Server('shop')\n")
    text = '{"jsonrpc": "2.0", "id": "raw-1", "method": "tools/call", "params": {"password": "hunter2-hunter2"}}'
    for option in ([], ["--unredacted"]):
        with inspecting(folder, "shop.py", *option) as link:
            send(link, "servers/connect", server="shop.py")
            send(link, "raw/send", server="shop.py", text=text)
            for _ in range(1_000):  # a thread records the messages
                if send(link, "traffic/rows", filter="raw-1")[1]["total"]:
                    break
            assert send(link, "traffic/rows", filter="hunter2-hunter2")[1]["total"] == len(option)
            assert send(link, "session/list")[1]["sessions"][0]["redacted"] is not bool(option)


def test_another_file_than_a_session_is_an_error(accord: Run, folder: Path) -> None:
    result = accord("inspect", "--no-open", "--session", str(folder / "shop.py"))
    assert result.returncode == 2
    assert "shop.py cannot be opened: it is neither a session file nor a transcript" in result.stderr


def test_a_typed_command_does_not_start_without_a_terminal(folder: Path) -> None:
    with inspecting(folder) as link:
        assert send(link, "servers/add", target="shop.py")[1]["needsApproval"]
        status, error = send(link, "servers/connect", server="shop.py")
        assert (status, error["error"]) == (409, "shop.py cannot be approved: there is no terminal")
    assert not (folder / "started").exists()


def printed(terminal: Terminal) -> tuple[str, str]:
    """Return the next link that the command prints."""
    assert terminal.process.stdout is not None
    return parts(terminal.process.stdout.readline().decode())


def test_a_typed_command_starts_only_if_it_is_approved_in_the_terminal_each_time(folder: Path) -> None:
    with Terminal("inspect", "--no-open", cwd=folder) as terminal:
        link = printed(terminal)
        send(link, "servers/add", target="shop.py")
        for reply, status in (("no", 409), ("yes", 200), ("no", 409)):
            with subprocess.Popen([sys.executable, "-c", CONNECT, *link], stdout=subprocess.PIPE, text=True) as request:
                assert "shop.py" in terminal.expect("Approve?")
                assert not (folder / "started").exists()
                terminal.type(reply)
                assert request.communicate(timeout=SECONDS)[0].strip() == str(status)
            assert (folder / "started").exists() == (status == 200)
            (folder / "started").unlink(missing_ok=True)
            send(link, "servers/disconnect", server="shop.py")
        terminal.press("\x03")
        assert terminal.end()[0] == 130


CONNECT = """
import sys, urllib.request, urllib.error
headers = {"content-type": "application/json", "accord-inspector-token": sys.argv[2]}
request = urllib.request.Request(sys.argv[1] + "/api/servers/connect", b'{"server": "shop.py"}', headers)
try:
    print(urllib.request.urlopen(request, timeout=100).status)
except urllib.error.HTTPError as exc:
    print(exc.code)
    exc.close()
"""


def test_t_replaces_the_token(folder: Path) -> None:
    with Terminal("inspect", "--no-open", cwd=folder) as terminal:
        old = printed(terminal)
        terminal.expect("a new link")
        terminal.type("t")
        new = printed(terminal)
        assert new[0] == old[0]
        assert new[1] != old[1]
        assert send(old, "servers/list")[0] == 401
        assert send(new, "servers/list")[0] == 200


def test_a_port_in_use_is_an_error_with_a_cure(accord: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        found = accord("inspect", "--no-open", "--port", str(used.getsockname()[1]))
    assert found.returncode == 2
    assert "in use by another program; stop that, or choose another port" in found.stderr
