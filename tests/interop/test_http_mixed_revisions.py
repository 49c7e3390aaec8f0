"""One server program, one port, and clients of three eras at the same time."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from typing import Any

from tests.interop.peers import PROGRAMS, ROOT, Sdk, peer_python
from tests.interop.serving import serving

EVERYTHING = [sys.executable, str(ROOT / "examples" / "everything.py")]

CLIENTS: list[tuple[Sdk, str, str]] = [
    ("mcp1", "mcp", "2025-11-25"),
    ("mcp2", "mcp", "2026-07-28"),
    ("mcp1", "sse", "2024-11-05"),
]


def visitor(sdk: Sdk, url: str, revision: str) -> subprocess.Popen[str]:
    program = [str(peer_python(sdk)), str(PROGRAMS / "mixed_revisions_story.py"), sdk]
    return subprocess.Popen(
        [*program, "--revision", revision, "--", url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )


def line(client: subprocess.Popen[str]) -> dict[str, Any]:
    """What the client writes next; it ends by itself, or pytest's timeout ends the test."""
    assert client.stdout is not None
    words = client.stdout.readline()
    assert words, f"the client ended with exit code {client.wait()}; its words are on stderr"
    told: dict[str, Any] = json.loads(words)
    return told


def test_everything_answers_clients_of_three_eras_at_once() -> None:
    with serving(EVERYTHING) as server, contextlib.ExitStack() as stack:
        clients = []
        for sdk, way, revision in CLIENTS:
            client = stack.enter_context(visitor(sdk, f"{server.url}/{way}", revision))
            stack.callback(client.kill)
            clients.append(client)
        assert [line(client)["revision"] for client in clients] == [revision for _, _, revision in CLIENTS]
        for client in clients:  # all of them are open: now all of them call
            assert client.stdin is not None
            client.stdin.write("go\n")
            client.stdin.flush()
        saw = [line(client) for client in clients]
        assert [client.wait() for client in clients] == [0, 0, 0]
        assert server.end() == 0
    for (_, _, revision), seen in zip(CLIENTS, saw, strict=True):
        assert json.loads(words(seen["calls"]["who"]))["revision"] == revision
        assert json.loads(words(seen["calls"]["measure"])) == [{"sky": "clear", "celsius": 20.0}]
        assert seen["progress"] == [0, 50, 100]
        assert seen["read"]["contents"][0]["text"] == "This is the content of the static text resource."
        assert seen["prompt"]["messages"][0]["content"]["text"] == "This is a simple prompt for testing."


def words(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])
