"""Fixtures of the interop tests: run a peer client against a server, or accord's client with a peer server.

A target is a command, or a list of one URL.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import pytest

from accord import Client, ToolResult
from accord.client.connect import CONNECT_METHODS
from accord.client.target import identity, parse

from tests.interop.forking import ForkedPrograms
from tests.interop.peers import Sdk, TypeScript, peer_client

T = TypeVar("T")

RunClient = Callable[..., subprocess.CompletedProcess[str]]

Watch = Callable[..., dict[str, Any]]

SECONDS = 150
"""For a whole story, below the timeout of a test: a peer takes 2 to 6 s, most of it its own imports."""


@pytest.fixture(scope="session")
def run_client() -> Iterator[RunClient]:
    """`run_client(sdk, program, *arguments)`: how that peer client ended, and what it printed."""
    with ForkedPrograms() as programs:

        def run(
            sdk: Sdk | TypeScript, program: Literal["client", "input_client", "sessions_client"], *arguments: str
        ) -> subprocess.CompletedProcess[str]:
            command = peer_client(sdk, program)
            if sdk not in get_args(TypeScript):
                return programs.run(command, *arguments, seconds=SECONDS)
            options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "encoding": "utf-8"}
            return subprocess.run([*command, *arguments], timeout=SECONDS, check=False, **options)

        yield run


@pytest.fixture(scope="session")
def watch(run_client: RunClient) -> Watch:
    """`watch(sdk, target, revision=None, program="client")`: what that peer client saw of the server at `target`."""

    def run(
        sdk: Sdk | TypeScript,
        target: list[str],
        revision: str | None = None,
        program: Literal["client", "input_client"] = "client",
    ) -> dict[str, Any]:
        speaks = ["--revision", revision] if revision else []
        done = run_client(sdk, program, *speaks, "--", *target)
        assert done.returncode == 0, f"the {sdk} client failed:\n{done.stderr[-4000:]}"
        seen: dict[str, Any] = json.loads(done.stdout)
        return seen

    return run


class Visit:
    """accord's client with one server, open over several tests: they share an event loop that runs when asked."""

    def __init__(self, client: Client, runner: asyncio.Runner) -> None:
        self.client = client
        self._runner = runner

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something of the client's to its end."""
        return self._runner.run(work)

    def call(self, tool: str, **arguments: Any) -> ToolResult:
        """Call a tool."""
        return self.run(self.client.call_tool(tool, arguments))


Visiting = Callable[..., AbstractContextManager[Visit]]


@pytest.fixture(scope="session")
def visiting() -> Visiting:
    """`visiting(target, **options)`: a `Visit`; when it is over, none of the processes may be left that it started."""

    @contextmanager
    def open_and_close(target: Any, **options: Any) -> Iterator[Visit]:
        CONNECT_METHODS.forget(identity(parse(target)))  # a port is used again, by a server of another revision
        before = {process.session for process in _processes()}
        client = Client(target, timeout=100, **options)
        with asyncio.Runner() as runner:
            runner.run(client.connect())
            ours = {each.session for each in _processes() if each.parent == os.getpid()} - before
            try:
                yield Visit(client, runner)
            finally:
                runner.run(client.close())
        if not isinstance(target, str):
            assert ours or not Path("/proc").exists(), "found no process of the server's while it was open"
        left = [process for process in _processes() if process.session in ours]
        assert not left, f"closed, but these processes of the server still run: {left}"

    return open_and_close


class Process(NamedTuple):
    """A process; a server's, and whatever it starts, are in a session of their own."""

    pid: int
    parent: int
    session: int
    command: str


def _processes() -> Iterator[Process]:
    """Every living process; none without /proc."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, parent, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # gone meanwhile
            continue
        if state != "Z":
            yield Process(int(entry.name), int(parent), int(session), command.strip())
