"""Shared code of the benchmarks: child processes that always end, their CPU time, and figures.

Linux only: the CPU time of another process is read from its clock, in nanoseconds, with all its threads. Floor and
accord alternate, round by round, so that other load on the machine affects both.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any, Self

import msgspec

HERE = Path(__file__).parent
LIFE = 60.0
"""The time after which a child process is killed; the few benchmarks that need more set their own."""

CORES = sorted(os.sched_getaffinity(0))
SERVING, LOADING = CORES[0], CORES[-1]
"""The core of the measured process, and that of the other one; the same on a machine with one core."""


class Figure(msgspec.Struct, omit_defaults=True):
    """One line of the table. `aim` is a ratio to the floor; without one, the figure is informative."""

    name: str
    unit: str
    floor: float
    accord: float
    ratio: float
    aim: float | None = None
    low: float = 0
    """The lowest and highest ratio of a round, which show the spread."""
    high: float = 0

    @property
    def state(self) -> str:
        if self.aim is None:
            return "-"
        return "ok" if self.ratio <= self.aim else "over"


Pick = Callable[[Sequence[float]], float]


def compare(
    name: str,
    unit: str,
    floors: Sequence[float],
    accords: Sequence[float],
    aim: float | None = None,
    pick: Pick = median,
) -> Figure:
    """Return a figure of several rounds: `pick` (the median, or `min` for wall-clock times) of each side."""
    floor, accord = pick(floors), pick(accords)
    ratios = [accord_time / floor_time for floor_time, accord_time in zip(floors, accords, strict=True)]
    rounded = (round(value, 3) for value in (floor, accord, accord / floor))
    return Figure(name, unit, *rounded, aim, low=round(min(ratios), 2), high=round(max(ratios), 2))


def take_turns(rounds: int, *sides: Callable[[], Any]) -> list[list[Any]]:
    """Run each side once per round, and return the results of each side."""
    results_of_sides: list[list[Any]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, results in zip(sides, results_of_sides, strict=True):
            results.append(side())
    return results_of_sides


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far, from the clock of clock_getcpuclockid(3)."""
    return time.clock_gettime((~pid << 3) | 2)


def python(*arguments: str, interpreter: str = sys.executable) -> list[str]:
    """Return a command of an interpreter, by default this one, with the working directory not on its path."""
    return [interpreter, "-P", *arguments]


class Child:
    """A child process that reads and writes lines; it is ended with the `with` block."""

    def __init__(
        self,
        *arguments: str,
        core: int = SERVING,
        piece: int = 1 << 16,
        life: float = LIFE,
        interpreter: str = sys.executable,
    ) -> None:
        # Unbuffered, so that each read and write here is one of the process.
        command = python(*arguments, interpreter=interpreter)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, cwd=HERE.parent
        )
        os.sched_setaffinity(self.process.pid, {core})
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        self._rest = b""
        self._piece = piece
        self.received = 0
        self._killer = threading.Timer(life, self.process.kill)
        self._killer.daemon = True
        self._killer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._in.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._killer.cancel()
        self._out.close()

    def send(self, data: bytes) -> None:
        """Write all of the data."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._in.fileno(), rest) :]

    def lines(self) -> list[bytes]:
        """Return the available whole lines, at least one."""
        parts = [self._rest]
        while not parts[-1].count(b"\n"):
            data = os.read(self._out.fileno(), self._piece)
            if not data:
                raise RuntimeError(f"{self.process.args} has ended before it answered")
            self.received += len(data)
            parts.append(data)
        *lines, self._rest = b"".join(parts).split(b"\n")
        return lines

    def ask(self, message: bytes) -> bytes:
        """Send one line, and return the one line of the response."""
        self.send(message)
        (line,) = self.lines()
        return line

    @property
    def cpu(self) -> float:
        """Return the CPU time so far, in seconds."""
        return cpu_seconds(self.process.pid)

    def memory(self, field: str) -> int:
        """Return `VmRSS` or `VmHWM` (the peak) in bytes."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) << 10
        raise KeyError(field)
