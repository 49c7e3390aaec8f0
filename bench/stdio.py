"""The CPU time of a server per `tools/call` over stdio: sequentially and with 64 in flight, both kinds of tool, both
eras.

The load runs here, on another core if there is one, and checks every response.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack

import msgspec

from bench.measure import HERE, LOADING, Child, Figure, compare, take_turns
from bench.wire import ERAS, Answer, call, shake_hands

ROUNDS, SECONDS, WARM_UP = 9, 0.12, 0.4

AIMS = {
    ("echo", 1): 52 / 31,
    ("echo", 64): 8 / 1.6,
    ("echo_sync", 1): 130 / 31,
    ("echo_sync", 64): 25 / 1.6,
}
"""By tool and number of requests in flight."""


_decode = msgspec.json.Decoder(Answer).decode


class Load:
    """Calls of one tool of one server."""

    def __init__(self, child: Child, era: str, tool: str) -> None:
        self._child = child
        self._request = call(era, tool, b'{"text":"%0100d"}')
        self._last = 0

    def run(self, seconds: float, in_flight: int) -> float:
        """Return the microseconds of the server's CPU time per call, with a fixed number of calls in flight."""
        first, answers = self._last, list[bytes]()
        end = time.perf_counter() + seconds
        cpu_before = self._child.cpu
        self._send(in_flight)
        while len(answers) < self._last - first:
            lines = self._child.lines()
            answers += lines
            if time.perf_counter() < end:
                self._send(len(lines))
        cpu = self._child.cpu - cpu_before
        self._check(answers, first)
        return cpu * 1e6 / len(answers)

    def _send(self, count: int) -> None:
        numbers = range(self._last + 1, self._last + count + 1)
        self._last += count
        self._child.send(b"".join([self._request % (number, number) for number in numbers]))

    def _check(self, lines: list[bytes], first: int) -> None:
        """Check the responses after the window, as a slow load would let the server sleep and measure its wake-up."""
        answers = [_decode(line) for line in lines]
        wrong = [answer for answer in answers if int(answer.result.content[0].text) != answer.id]
        if wrong or {answer.id for answer in answers} != set(range(first + 1, self._last + 1)):
            raise RuntimeError(f"wrong answers: {wrong[:3]}")


def run() -> list[Figure]:
    os.sched_setaffinity(0, {LOADING})
    return [figure for era in ERAS for figure in of_era(era)]


def of_era(era: str) -> list[Figure]:
    """Measure all figures of an era with one server per side, so that every window finds it warm."""
    with ExitStack() as stack:
        floor, accord = (
            stack.enter_context(Child(str(HERE / file), "calls", piece=4096)) for file in ("floor.py", "servers.py")
        )
        for child in (floor, accord):
            shake_hands(child, era)
            for tool in ("echo", "echo_sync"):
                Load(child, era, tool).run(WARM_UP, 16)
        return [of_tool(floor, accord, era, tool, in_flight) for tool, in_flight in AIMS]


def of_tool(floor: Child, accord: Child, era: str, tool: str, in_flight: int) -> Figure:
    loads = [Load(child, era, tool) for child in (floor, accord)]
    floors, accords = take_turns(ROUNDS, *(lambda load=load: load.run(SECONDS, in_flight) for load in loads))
    kind = "sync" if tool == "echo_sync" else "async"
    name = f"tools/call {era}, {kind} tool, {in_flight} in flight"
    return compare(name, "µs CPU", floors, accords, AIMS[tool, in_flight])
