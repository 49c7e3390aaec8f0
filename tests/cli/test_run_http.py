"""`accord run --http`: a server at an address, as a process of its own."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

INIT = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@contextmanager
def running(target: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The process and its port; it must end with SIGTERM, with 0, and is asked for its stderr by the caller."""
    process = subprocess.Popen(
        [sys.executable, "-m", "accord", "run", target, "--http", ":0", *options],
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(target).parent,
        env={**os.environ},
    )
    try:
        assert process.stderr is not None
        while not (found := re.search(r"at http://127.0.0.1:(\d+)/mcp", process.stderr.readline())):
            assert process.poll() is None
        yield process, int(found[1])
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=100) == 0
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def post(port: int, message: Any, **headers: str) -> tuple[int, Any, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    asked = {"content-type": "application/json", "accept": "application/json, text/event-stream", **more}
    connection.request("POST", "/mcp", json.dumps(message), asked)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response.status, response.headers, text


def test_a_file_is_served_over_http(shop: str) -> None:
    with running(shop) as (_, port):
        status, _, text = post(port, INIT)
        assert status == 200
        assert json.loads(text)["result"]["serverInfo"]["name"] == "shop"


def test_the_options_of_the_command_reach_the_server(shop: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text('{"a-long-secret-of-ann": "ann"}')
    options = ["--api-keys", str(keys), "--allow-host", "shop.example", "--allow-origin", "https://page.example"]
    with running(shop, *options, "--events", f"sqlite:{tmp_path / 'events.db'}", "--access-log") as (process, port):
        assert post(port, INIT)[0] == 401
        ann = {"authorization": "Bearer a-long-secret-of-ann"}
        assert post(port, INIT, host="else.example", **ann)[0] == 403
        status, headers, _ = post(port, INIT, host="shop.example", origin="https://page.example", **ann)
        assert (status, headers["access-control-allow-origin"]) == (200, "https://page.example")
        assert process.stderr is not None
        logged = [process.stderr.readline() for _ in range(3)]
    assert [json.loads(line)["status"] for line in logged] == [401, 403, 200]
    assert not any("a-long-secret" in line for line in logged)
    assert (tmp_path / "events.db").exists()


def test_an_address_in_use_is_one_line_and_exit_code_1(accord: Run, shop: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = accord("run", shop, "--http", f":{port}")
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert said == f"accord: 127.0.0.1:{port} is in use by another program; stop that, or choose another port"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--http", "nowhere"], "'nowhere' is not an address"),
        (["--public-url", "https://a.example/mcp"], "--public-url needs --http ADDRESS"),
        (["--access-log"], "--access-log needs --http ADDRESS"),
        (["--http", ":0", "--events", "redis:x"], "'redis:x' is no store of events"),
        (["--http", ":0", "--allow-host", "http://x"], "'http://x' is no host"),
        (["--http", ":0", "--api-keys", "keys.json"], "keys.json is not a table of keys"),
    ],
)
def test_what_cannot_be_served_is_a_usage_error(
    accord: Run, shop: str, tmp_path: Path, options: list[str], says: str
) -> None:
    (tmp_path / "keys.json").write_text('["a-long-secret"]')
    done = accord("run", shop, *options)
    assert done.returncode == 2
    assert says in done.stderr
    assert "a-long-secret" not in done.stderr
