"""Running a scenario: the scripted server is opened, and the client is started and watched until it ends."""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from accord.check.clients import browser
from accord.check.clients.client_process import ClientProcess, InProcess, InProcessClient, build_argv
from accord.check.clients.http_server import ScriptedHTTPServer
from accord.check.clients.run import ClientRun, Ending
from accord.check.clients.scenario import Scenario
from accord.check.clients.scripted_server import ScriptedServer
from accord.check.clients.sse_server import ScriptedSSEServer
from accord.check.clients.stdio_server import ScriptedStdioServer
from accord.check.engine.report import TransportName
from accord.check.probes.message_log import MemoryBudget

if TYPE_CHECKING:
    from accord.check.settings import CheckSettings

_DEADLINE = 30.0
"""Maximum seconds of a client that does not end, from its first message."""
_POLL = 0.25
"""Seconds between checks whether the client is still active."""
_MEMORY = 16 << 20
"""Bytes of memory for the messages of a client in one scenario; an ordinary one takes a hundredth of it."""


Client: TypeAlias = str | InProcess
"""A command line with a placeholder for the target, or an async function of it."""


async def run_scenario(
    client: Client,
    scenario: Scenario,
    revision: str,
    transport: TransportName,
    settings: CheckSettings,
    patience: float,
    room: MemoryBudget,
) -> ClientRun:
    """Run the client in a scenario, and end it after `patience` seconds of silence. `room` bounds the memory of all
    scenarios. Raises `ConnectError`.
    """
    memory = MemoryBudget(_MEMORY, "a scenario", within=room)
    stand = ScriptedServer(scenario, revision, transport, memory, settings.record)
    front = _SERVER_TRANSPORTS[transport](stand)
    run = ClientRun(scenario.name, revision, transport)
    await stand.open()
    await front.open()
    run.started_at = time.monotonic()
    program = _create_client(client, scenario, revision, front)
    try:
        program.start()
        run.ending = await _watch_client(program, stand, max(patience, scenario.patience), settings.opening)
        run.finished_at = time.monotonic()
        run.exit_code = program.exit_code
    finally:
        await program.stop()
        await front.close()
        await stand.close()
    run.output, run.overflow = program.output, stand.memory.exhausted
    run.conversations, run.intervened_at = stand.conversations, stand.intervened_at
    if not isinstance(front, ScriptedStdioServer):
        run.exchanges, run.connections = front.listener.exchanges, front.listener.connections
    run.endpoint_paths = frozenset(front.endpoint_paths) if isinstance(front, ScriptedSSEServer) else frozenset()
    run.stray_requests = stand.trap_listener.exchanges
    run.login = None if stand.authorization is None else stand.authorization.log
    return run


_ServerTransport: TypeAlias = ScriptedStdioServer | ScriptedHTTPServer | ScriptedSSEServer
_SERVER_TRANSPORTS: dict[TransportName, Callable[[ScriptedServer], _ServerTransport]] = {
    "stdio": ScriptedStdioServer,
    "http": ScriptedHTTPServer,
    "sse": ScriptedSSEServer,
}


def _create_client(
    client: Client, scenario: Scenario, revision: str, front: _ServerTransport
) -> ClientProcess | InProcessClient:
    if not isinstance(client, str):
        return InProcessClient(client, front.target)
    words = front.command if isinstance(front, ScriptedStdioServer) else ()
    return ClientProcess(build_argv(client, front.target, words), _environment(scenario, revision, front.target))


def _environment(scenario: Scenario, revision: str, target: str) -> dict[str, str]:
    named = "ACCORD_CHECK_URL" if target.startswith("http://") else "ACCORD_CHECK_SERVER"
    found = {"ACCORD_CHECK_SCENARIO": scenario.name, "ACCORD_CHECK_REVISION": revision, named: target}
    if scenario.authorization is not None:
        found["BROWSER"] = f"{shlex.join([sys.executable, '-I', '-S', browser.__file__])} %s"
        plan = scenario.authorization
        given = {"ACCORD_CHECK_CLIENT_ID": plan.client_id, "ACCORD_CHECK_CLIENT_SECRET": plan.client_secret}
        found |= {name: value for name, value in given.items() if value}
    return found


async def _watch_client(
    program: ClientProcess | InProcessClient, stand: ScriptedServer, patience: float, opening: float
) -> Ending:
    """Wait until the client ends, is silent, or is active for too long."""
    exited = asyncio.get_running_loop().create_task(program.exited.wait())
    try:
        while not exited.done():
            left = _remaining_seconds(stand, patience, opening)
            if left is None:
                return "deadline"
            if left <= 0:
                return "quiet"
            await asyncio.wait([exited], timeout=min(left, _POLL))
        return "deadline" if stand.memory.exhausted else "itself"  # it ended since we listened no more
    finally:
        exited.cancel()


def _remaining_seconds(stand: ScriptedServer, patience: float, opening: float) -> float | None:
    """Return the seconds that the client may still be silent; None if it is active for too long, or sent too much."""
    now = time.monotonic()
    if stand.memory.exhausted:
        return None
    if stand.last_message_at is None or stand.first_message_at is None:
        return stand.started_at + opening - now
    if now > stand.first_message_at + _DEADLINE:
        return None
    return stand.last_message_at + patience - now
