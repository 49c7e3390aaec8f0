"""Checks well-known servers and prints the table of docs/known-issues-in-servers.md: all revisions, no tools called.

    python -m tests.check.peers.survey FOLDER [NAME...]

needs the peers (`scripts/peers`). It writes the whole report of each server to FOLDER, as JSON and Markdown. One after
the other, on a quiet machine with two cores, they take about ten minutes.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from accord.check.engine.report import Report
from accord.check.reports.markdown import markdown
from accord.check.server import check_server
from accord.check.settings import CheckSettings
from accord.messages.revision import REVISIONS

from tests.interop.peers import npm_server, peer_server, python_server
from tests.interop.serving import SECONDS, free_port, serving


class Surveyed(NamedTuple):
    """A server, over one transport."""

    name: str
    over: str
    command: Callable[[], list[str]]
    path: str = ""
    """Of its URL, over HTTP; over stdio nothing."""


SURVEYED: tuple[Surveyed, ...] = (
    Surveyed("server-everything 2026.8.31", "stdio", lambda: npm_server("everything")),
    Surveyed("server-everything 2026.8.31", "HTTP", lambda: [*npm_server("everything"), "streamableHttp"], "/mcp"),
    Surveyed("server-everything 2026.8.31", "HTTP+SSE", lambda: [*npm_server("everything"), "sse"], "/sse"),
    Surveyed("server-filesystem 2026.8.31", "stdio", lambda: [*npm_server("filesystem"), "."]),
    Surveyed("server-memory 2026.8.31", "stdio", lambda: npm_server("memory")),
    Surveyed("mcp-server-git 2026.10.19", "stdio", lambda: [*python_server("mcp-server-git"), "--repository", "."]),
    Surveyed("mcp-server-time 2026.10.19", "stdio", lambda: python_server("mcp-server-time")),
    Surveyed("mcp 1.30.0 (`FastMCP`)", "stdio", lambda: peer_server("mcp1")),
    Surveyed("mcp 1.30.0 (`FastMCP`)", "HTTP", lambda: [*peer_server("mcp1"), "mcp"], "/mcp"),
    Surveyed("mcp 1.30.0 (`FastMCP`)", "HTTP+SSE", lambda: [*peer_server("mcp1"), "sse"], "/sse"),
    Surveyed("mcp 2.3.0 (`MCPServer`)", "stdio", lambda: peer_server("mcp2")),
    Surveyed("mcp 2.3.0 (`MCPServer`)", "HTTP", lambda: [*peer_server("mcp2"), "mcp"], "/mcp"),
    Surveyed("mcp 2.3.0 (`MCPServer`)", "HTTP+SSE", lambda: [*peer_server("mcp2"), "sse"], "/sse"),
    Surveyed("TypeScript SDK 2.4.0", "HTTP", lambda: peer_server("ts2"), "/mcp"),
    Surveyed("fastmcp 4.1.2", "stdio", lambda: peer_server("fastmcp")),
    Surveyed("fastmcp 4.1.2", "HTTP", lambda: [*peer_server("fastmcp"), "mcp"], "/mcp"),
    Surveyed("fastmcp 4.1.2", "HTTP+SSE", lambda: [*peer_server("fastmcp"), "sse"], "/sse"),
)

SETTINGS = CheckSettings(level="should", full=True)


@contextmanager
def reached(server: Surveyed, folder: str) -> Iterator[Any]:
    """What to check: a URL while the server serves, or a command; `folder` is an empty one, under git."""
    subprocess.run(["git", "init", "-q", folder], check=True)
    command = server.command()
    if server.path:
        with serving(command, free_port()) as served:
            _wait_for(served.port)  # some say where they are before they are there
            yield f"{served.url}{server.path}"
    else:
        yield {"command": command[0], "args": command[1:], "cwd": folder, "env": {"MEMORY_FILE_PATH": f"{folder}/m"}}


def _wait_for(port: int) -> None:
    """Until somebody listens there. Raises `TimeoutError`."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nobody listens at port {port}")


async def survey(server: Surveyed, into: Path) -> Report:
    """Check it, and keep the report."""
    with tempfile.TemporaryDirectory() as folder, reached(server, folder) as target:
        report = await check_server(target, SETTINGS)
    stem = into / f"{server.name.partition(' (')[0].replace(' ', '-')}-{server.over.replace('+', '-')}"
    stem.with_name(f"{stem.name}.json").write_bytes(msgspec.json.encode(report))
    stem.with_name(f"{stem.name}.md").write_text(markdown(report), encoding="utf-8")
    return report


def row(server: Surveyed, report: Report) -> str:
    """Return a line of the table: the score in each revision."""
    scores = {visit.revision: f"{visit.score}{' (ended early)' if visit.error else ''}" for visit in report.visits}
    cells = [scores.get(revision, "") for revision in REVISIONS]
    return f"| {' | '.join([server.name, server.over, *cells])} |"


def main(folder: str, *names: str) -> None:
    into = Path(folder)
    into.mkdir(parents=True, exist_ok=True)
    print(f"| Server | Over | {' | '.join(REVISIONS)} |\n| --- | --- |{' :-: |' * len(REVISIONS)}")
    for server in SURVEYED:
        if not names or any(name in server.name for name in names):
            print(row(server, asyncio.run(survey(server, into))), flush=True)
    print(f"\nMost memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
