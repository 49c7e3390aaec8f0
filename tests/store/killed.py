"""A process that keeps events until it is killed.

It reads lines `FILE RUN SEED STEPS` and forks for each a child that writes to the store, and tells on stdout what was
acknowledged: `SESSION STREAM FIRST COUNT ENDS`. With `STEPS` over 0 the child kills itself after that many steps of
SQLite's own machine: in the middle of a statement. When it is gone, `over`.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

from accord.store.sqlite import SQLiteEvents

from tests.store.story import appends

connect = sqlite3.connect


def deadly(steps: int) -> None:
    """From now on, connections kill the process after so many steps."""

    def counted(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(*args, **kwargs)
        left = steps

        def step() -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

        db.set_progress_handler(step, 1)
        return db

    sqlite3.connect = counted  # type: ignore[assignment]


def tell(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def write(file: str, run: str, seed: int) -> None:
    events = SQLiteEvents(Path(file))
    await events.open()
    random.seed(seed)
    await asyncio.gather(*(fill(events, f"{run}-{session}", stream) for session in "st" for stream in "ab"))


async def fill(events: SQLiteEvents, session: str, stream: str) -> None:
    """Streams of the same name in two sessions, one after the other and side by side."""
    for turn in range(1_000_000):
        name = f"{stream}{turn}"
        await events.begin(session, name, name.encode())
        for messages, ends in appends(session, name):
            first = await events.append(session, name, messages, ends=ends)
            tell(session, name, first, len(messages), int(ends))
            await asyncio.sleep(0)


def main() -> None:
    for line in sys.stdin:
        file, run, seed, steps = line.split()
        child = os.fork()
        if not child:
            if int(steps):
                deadly(int(steps))
            asyncio.run(write(file, run, int(seed)))
        tell("child", child)
        os.waitpid(child, 0)
        tell("over")


if __name__ == "__main__":
    main()
