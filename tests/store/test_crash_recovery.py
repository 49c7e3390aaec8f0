"""A process is killed at any point: what it acknowledged is there, once, in order, and nothing is out of place."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from accord.store.base import Events
from accord.store.sqlite import SQLiteEvents

from tests.store.stores import messages, opened
from tests.store.story import appends

KILLS = 200

Acknowledged = dict[tuple[str, str], tuple[int, bool]]
"""By session and stream: how many events, and whether the stream has ended."""


class Victims:
    """One process after the other, each of which is killed."""

    def __init__(self) -> None:
        self.forker = subprocess.Popen(
            [sys.executable, "-m", "tests.store.killed"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def close(self) -> None:
        assert self.forker.stdin is not None
        assert self.forker.stdout is not None
        self.forker.stdin.close()
        self.forker.stdout.close()
        assert self.forker.wait(100) == 0

    def live(self, file: Path, run: int, *, steps: int = 0, acknowledgements: int = 0) -> Acknowledged:
        """Let one live for so many steps of SQLite, or until it has acknowledged so often: what it acknowledged."""
        assert self.forker.stdin is not None
        self.forker.stdin.write(f"{file} {run} {run} {steps}\n".encode())
        self.forker.stdin.flush()
        kept: Acknowledged = {}
        child = 0
        for count, words in enumerate(self.told()):
            if words[0] == "child":
                child = int(words[1])
            else:
                session, stream, first, size, ends = words
                kept[session, stream] = (int(first) + int(size) - 1, ends == "1")
            if not steps and child and count >= acknowledgements:
                os.kill(child, signal.SIGKILL)
                steps = 1  # it is done; what it still managed to tell counts, too
        return kept

    def told(self) -> Iterator[list[str]]:
        assert self.forker.stdout is not None
        for line in self.forker.stdout:
            if line == b"over\n":
                return
            yield line.decode().split()
        raise AssertionError("the process that forks has ended")


@pytest.fixture
def victims() -> Iterator[Victims]:
    found = Victims()
    yield found
    found.close()


async def check(events: Events, kept: Acknowledged) -> int:
    """All that was acknowledged is there, and whole appends only; how many events there are."""
    streams: defaultdict[str, set[str]] = defaultdict(set)
    for session, stream in kept:
        streams[session].add(stream)
    count = 0
    for session, names in streams.items():
        # one more than was heard of may have been begun, and kept without an acknowledgement
        begun = {f"{name[0]}{int(name[1:]) + 1}" for name in names}
        for stream in sorted(names | begun):
            replay = await events.read(session, stream, 0)
            acknowledged, ended = kept.get((session, stream), (0, False))
            if replay is None:
                assert (session, stream) not in kept
                continue
            found = await messages(events, session, stream)
            assert replay.about == stream.encode()
            assert len(found) >= acknowledged
            assert replay.ended or not ended
            prefixes: list[tuple[list[bytes], bool]] = [([], False)]
            for each, ends in appends(session, stream):
                prefixes.append(([*prefixes[-1][0], *each], ends))
            assert (found, replay.ended) in prefixes
            count += len(found)
    return count


@pytest.mark.timeout(300)
async def test_what_was_acknowledged_before_a_kill_is_replayed_once_and_in_order(
    victims: Victims, tmp_path: Path
) -> None:
    file = tmp_path / "events.db"
    seeded = random.Random(4)
    survived: dict[int, Acknowledged] = {}
    for run in range(KILLS):
        if run % 2:
            survived[run] = victims.live(file, run, steps=seeded.randint(1, 40_000))
        else:
            survived[run] = victims.live(file, run, acknowledgements=seeded.randint(0, 60))
        if run % 10 == 9:  # else the next process finds the file as the kill left it
            async with opened(SQLiteEvents(file)) as events:
                await check(events, survived[run])
    async with opened(SQLiteEvents(file)) as events:
        counts = [await check(events, kept) for kept in survived.values()]
    assert sum(1 for count in counts if count) > KILLS / 2
