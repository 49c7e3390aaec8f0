"""What the killed process keeps: known from the names alone, so that a reader knows what must be there."""

from __future__ import annotations

import random
from collections.abc import Iterator


def appends(session: str, stream: str) -> Iterator[tuple[list[bytes], bool]]:
    """The messages of each append to a stream, and whether it ends the stream."""
    seeded = random.Random(f"{session} {stream}")
    count = seeded.randint(1, 8)
    for turn in range(1, count + 1):
        size = seeded.choice((1, 1, 1, 2, 5))
        yield [body(session, stream, turn, n, seeded) for n in range(size)], turn == count


def body(session: str, stream: str, turn: int, n: int, seeded: random.Random) -> bytes:
    padding = seeded.choice((0, 0, 100, 5_000, 20_000))
    return f"{session} {stream} {turn} {n} ".encode() + b"x" * padding
