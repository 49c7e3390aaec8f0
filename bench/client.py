"""CPU of a client for each `tools/call`, one at a time and by 64 tasks, against the floor of a server.

The floor is the least client on asyncio: a child process, a future for each call, no checks. Each window is measured
in a process of its own: `python -m bench.client floor | accord`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import msgspec

from bench.measure import HERE, LIFE, LOADING, SERVING, Figure, compare, python, take_turns
from bench.wire import META, Answer

ROUNDS, SECONDS, WARM_UP = 7, 0.2, 0.3
TASKS = (1, 64)
AIMS = {1: 60 / 31, 64: 25 / 4.8}
SERVER = python(str(HERE / "floor.py"), "calls", str(LOADING))

Echo = Callable[[str], Awaitable[str]]
Rows = list[list[float]]
"""What each round gave, by the number of tasks."""


class LeastClient:
    """Writes what one step of the loop asks in one go, and reads whole lines."""

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
        os.write(self._in, b"".join(self._unsent))  # less than a pipe holds
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
    """Microseconds of CPU for each call, by the number of tasks."""
    found = []
    for tasks in TASKS:
        await calls(echo, tasks, WARM_UP)
        before = time.process_time()
        made = await calls(echo, tasks, SECONDS)
        found.append((time.process_time() - before) * 1e6 / made)
    return found


async def calls(echo: Echo, tasks: int, seconds: float) -> int:
    """How many calls so many tasks made in that time; every answer is compared."""
    end = time.perf_counter() + seconds
    text = "echo " * 20

    async def one() -> int:
        made = 0
        while time.perf_counter() < end:
            if await echo(text) != text:
                raise RuntimeError("a wrong answer")
            made += 1
        return made

    return sum(await asyncio.gather(*(one() for _ in range(tasks))))


def in_a_process(module: str, *arguments: str) -> list[float]:
    """What a module prints that is run with these arguments."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, check=True, timeout=LIFE, stdout=subprocess.PIPE, cwd=HERE.parent)
    return msgspec.json.decode(done.stdout, type=list[float])


def run() -> list[Figure]:
    floors, accords = take_turns(
        ROUNDS, *(lambda which=which: in_a_process("bench.client", which) for which in ("floor", "accord"))
    )
    return by_tasks("client", floors, accords, AIMS)


def by_tasks(what: str, floors: Rows, accords: Rows, aims: dict[int, float]) -> list[Figure]:
    """A figure for each number of tasks; each row has them all."""
    return [
        compare(
            f"{what}, {tasks} {'task' if tasks == 1 else 'tasks'}",
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
