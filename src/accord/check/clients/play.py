"""One scene played: the scripted server opened, the client started against it, and watched until it is over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from accord.check.clients.endpoint import Endpoint
from accord.check.clients.inside import InProcess, Inside
from accord.check.clients.lines import Lines
from accord.check.clients.program import Program, argv
from accord.check.clients.run import Ending, Run
from accord.check.clients.scene import Scene
from accord.check.clients.stand import Stand
from accord.check.clients.streams import Streams
from accord.check.record import Room
from accord.check.report import TransportName

if TYPE_CHECKING:
    from accord.check.settings import CheckSettings

_DEADLINE = 30.0
"""For a client that goes on and on, in seconds from its first word."""
_LOOK = 0.25
"""So often it is looked whether the client still speaks, in seconds."""
_KEPT = 16 << 20
"""Bytes of memory for what the client says in one scene; an ordinary one takes a hundredth of it."""


Client: TypeAlias = str | InProcess
"""A command line with a place for the target, or an async function of it."""


async def play(
    client: Client,
    scene: Scene,
    revision: str,
    transport: TransportName,
    settings: CheckSettings,
    patience: float,
    room: Room,
) -> Run:
    """Run the client in a scene. `patience`: seconds without a word after which it is ended; `room`: for what is kept
    of all scenes. Raises `ConnectError`.
    """
    stand = Stand(scene, revision, transport, Room(_KEPT, "a scene", within=room))
    front = _FRONTS[transport](stand)
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
    run.words, run.full = program.words, stand.room.full
    run.conversations, run.turned_at = stand.conversations, stand.turned_at
    if not isinstance(front, Lines):
        run.exchanges, run.connections = front.site.exchanges, front.site.connections
    run.places = frozenset(front.places) if isinstance(front, Streams) else frozenset()
    run.strays = stand.sideway.exchanges
    return run


_Front: TypeAlias = Lines | Endpoint | Streams
_FRONTS: dict[TransportName, Callable[[Stand], _Front]] = {"stdio": Lines, "http": Endpoint, "sse": Streams}


def _program(client: Client, scene: Scene, revision: str, front: _Front) -> Program | Inside:
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
        return "deadline" if stand.room.full else "itself"  # it ended since we listened no more
    finally:
        exited.cancel()


def _left(stand: Stand, patience: float, opening: float) -> float | None:
    """Seconds that the client may still be silent; None where it has spoken for too long, or too much."""
    now = time.monotonic()
    if stand.room.full:
        return None
    if stand.heard_at is None or stand.first_heard_at is None:
        return stand.began + opening - now
    if now > stand.first_heard_at + _DEADLINE:
        return None
    return stand.heard_at + patience - now
