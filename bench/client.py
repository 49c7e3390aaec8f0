"""The CPU time of a client per `tools/call`, sequentially and with 64 tasks, against the floor of a server.

The floor is a minimal client on asyncio: a child process, a future per call, no checks. Each window is measured in a
process of its own: `python -m bench.client floor | accord`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from bench.measure import HERE, LIFE, LOADING, SERVING, Figure, compare, python, take_turns
from bench.wire import META, Answer

ROUNDS, SECONDS, WARM_UP = 7, 0.2, 0.3
TASKS = (1, 64)
AIMS = {1: 60 / 31, 64: 25 / 4.8}
SERVER = python(str(HERE / "floor.py"), "calls", str(LOADING))

Echo = Callable[[str], Awaitable[str]]
Rows = list[list[float]]
"""The results of each round, by the number of tasks."""


class LeastClient:
    """A minimal client, which writes all requests of one event loop step at once, and reads whole lines."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin.fileno(), process.stdout.fileno()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._out, self._read)
        self._decode = msgspec.json.Decoder(Answer).decode
        self._encode = msgspec.json.Encoder().encode
        self._waiting: dict[int, asyncio.Future[str]] = {}
        self._unsent: list[bytes] = []
        self._rest = b""
        self._last = 0

    def echo(self, text: str) -> asyncio.Future[str]:
        """Call the tool."""
        self._last = number = self._last + 1
        params = b'{"name":"echo","arguments":%b,%b}' % (self._encode({"text": text}), META)
        self._unsent.append(b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%b}\n' % (number, params))
        future = self._waiting[number] = self._loop.create_future()
        if len(self._waiting) == 1:
            self._flush()
        elif len(self._unsent) == 1:
            self._loop.call_soon(self._flush)
        return future

    def _flush(self) -> None:
        os.write(self._in, b"".join(self._unsent))  # less than the size of a pipe buffer
        self._unsent.clear()

    def _read(self) -> None:
        *lines, self._rest = (self._rest + os.read(self._out, 1 << 16)).split(b"\n")
        for line in lines:
            answer = self._decode(line)
            self._waiting.pop(answer.id).set_result(answer.result.content[0].text)


def measure_floor() -> list[float]:
    with subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        try:
            return asyncio.run(drive(process))
        finally:
            process.kill()


async def drive(process: subprocess.Popen[bytes]) -> list[float]:
    return await windows(LeastClient(process).echo)


def measure_accord() -> list[float]:
    return asyncio.run(drive_accord())


async def drive_accord() -> list[float]:
    from accord import Client

    async with Client(SERVER) as client:

        async def echo(text: str) -> str:
            return (await client.call_tool("echo", {"text": text})).text

        return await windows(echo)


async def windows(echo: Echo) -> list[float]:
    """Return the microseconds of CPU time per call, for each number of tasks."""
    times = []
    for tasks in TASKS:
        await calls(echo, tasks, WARM_UP)
        started = time.process_time()
        count = await calls(echo, tasks, SECONDS)
        times.append((time.process_time() - started) * 1e6 / count)
    return times


async def calls(echo: Echo, tasks: int, seconds: float) -> int:
    """Return how many calls the tasks made in this time; every result is compared."""
    end = time.perf_counter() + seconds
    text = "echo " * 20

    async def one() -> int:
        count = 0
        while time.perf_counter() < end:
            if await echo(text) != text:
                raise RuntimeError("a wrong answer")
            count += 1
        return count

    return sum(await asyncio.gather(*(one() for _ in range(tasks))))


def in_a_process(module: str, *arguments: str) -> list[float]:
    """Return the figures that a module prints when it runs with these arguments."""
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.run(command, check=True, timeout=LIFE, stdout=subprocess.PIPE, cwd=HERE.parent)
    return msgspec.json.decode(process.stdout, type=list[float])


def run() -> list[Figure]:
    floors, accords = take_turns(
        ROUNDS, *(lambda which=which: in_a_process("bench.client", which) for which in ("floor", "accord"))
    )
    return by_tasks("client", floors, accords, AIMS)


def by_tasks(name: str, floors: Rows, accords: Rows, aims: Mapping[int, float | None]) -> list[Figure]:
    """Return a figure for each number of tasks; each row contains all of them."""
    return [
        compare(
            f"{name}, {tasks} {'task' if tasks == 1 else 'tasks'}",
            "µs CPU",
            [row[at] for row in floors],
            [row[at] for row in accords],
            aims[tasks],
        )
        for at, tasks in enumerate(TASKS)
    ]


if __name__ == "__main__":
    os.sched_setaffinity(0, {SERVING})
    figures = {"floor": measure_floor, "accord": measure_accord}[sys.argv[1]]()
    print(msgspec.json.encode(figures).decode())
