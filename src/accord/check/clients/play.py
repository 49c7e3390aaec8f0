"""One scene played: the scripted server opened, the client started against it, and watched until it is over."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeAlias

from accord.check.clients.endpoint import Endpoint
from accord.check.clients.inside import InProcess, Inside
from accord.check.clients.lines import Lines
from accord.check.clients.program import Program, argv
from accord.check.clients.run import Ending, Run
from accord.check.clients.scene import Scene
from accord.check.clients.stand import Stand
from accord.check.report import TransportName

if TYPE_CHECKING:
    from accord.check.settings import CheckSettings

_DEADLINE = 30.0
"""For a client that goes on and on, in seconds from its first word."""
_LOOK = 0.25
"""So often it is looked whether the client still speaks, in seconds."""


Client: TypeAlias = str | InProcess
"""A command line with a place for the target, or an async function of it."""


async def play(
    client: Client, scene: Scene, revision: str, transport: TransportName, settings: CheckSettings, patience: float
) -> Run:
    """Run the client in a scene. `patience`: seconds without a word after which it is ended. Raises `ConnectError`."""
    stand = Stand(scene, revision, transport)
    front = Lines(stand) if transport == "stdio" else Endpoint(stand)
    run = Run(scene.name, revision, transport)
    await stand.open()
    await front.open()
    run.began = time.monotonic()
    program = _program(client, scene, revision, front)
    try:
        program.start()
        run.ending = await _watched(program, stand, max(patience, scene.patience), settings.opening)
        run.finished = time.monotonic()
        run.exit_code = program.exit_code
    finally:
        await program.end()
        await front.close()
        await stand.close()
    run.stderr = program.words
    run.conversations, run.turned_at = stand.conversations, stand.turned_at
    run.exchanges = front.site.exchanges if isinstance(front, Endpoint) else []
    run.strays = stand.sideway.exchanges
    return run


def _program(client: Client, scene: Scene, revision: str, front: Lines | Endpoint) -> Program | Inside:
    if not isinstance(client, str):
        return Inside(client, front.target)
    words = front.command if isinstance(front, Lines) else ()
    return Program(argv(client, front.target, words), _environment(scene, revision, front.target))


def _environment(scene: Scene, revision: str, target: str) -> dict[str, str]:
    named = "ACCORD_CHECK_URL" if target.startswith("http://") else "ACCORD_CHECK_SERVER"
    return {"ACCORD_CHECK_SCENE": scene.name, "ACCORD_CHECK_REVISION": revision, named: target}


async def _watched(program: Program | Inside, stand: Stand, patience: float, opening: float) -> Ending:
    """Wait until the client ends, falls silent, or has spoken for too long."""
    exited = asyncio.get_running_loop().create_task(program.exited.wait())
    try:
        while not exited.done():
            left = _left(stand, patience, opening)
            if left is None:
                return "deadline"
            if left <= 0:
                return "quiet"
            await asyncio.wait([exited], timeout=min(left, _LOOK))
        return "itself"
    finally:
        exited.cancel()


def _left(stand: Stand, patience: float, opening: float) -> float | None:
    """Seconds that the client may still be silent; None where it has spoken for too long."""
    now = time.monotonic()
    if stand.heard_at is None or stand.first_heard_at is None:
        return stand.began + opening - now
    if now > stand.first_heard_at + _DEADLINE:
        return None
    return stand.heard_at + patience - now
