"""What tests of stores share: every implementation, and a clock that moves when it is told to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from accord.limits import Limits
from accord.store.base import Events, Replay
from accord.store.memory import MemoryEvents
from accord.store.sqlite import SQLiteEvents


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


Make = Callable[[Path, Limits, Clock], Events]

STORES: dict[str, Make] = {
    "memory": lambda _, limits, clock: MemoryEvents(limits, clock=clock),
    "sqlite": lambda folder, limits, clock: SQLiteEvents(folder / "events.db", limits, clock=clock),
}


@asynccontextmanager
async def opened(events: Events) -> AsyncIterator[Events]:
    """A store, opened and closed again."""
    await events.open()
    try:
        yield events
    finally:
        await events.close()


async def messages(events: Events, session: str, stream: str, after: int = 0) -> list[bytes]:
    """What a client that has `after` would get; their numbers follow each other."""
    replay = await events.read(session, stream, after)
    assert isinstance(replay, Replay)
    assert [number for number, _ in replay.events] == list(range(after + 1, after + 1 + len(replay.events)))
    return [message for _, message in replay.events]
