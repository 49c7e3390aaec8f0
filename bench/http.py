"""The CPU time of a server per `tools/call` over HTTP: 1 and 16 connections, both eras, as JSON and as a stream.

The load runs here, on another core if there is one, and checks every response. The floor of a stream is one event in
one chunk; accord's has an event id, a progress notification and the response.
"""

from __future__ import annotations

import os
import select
import time
from contextlib import ExitStack

from bench.http_wire import Line, Site, answer_in
from bench.measure import LOADING, Figure, compare, take_turns
from bench.wire import SHAKEN, STATELESS, call, request

ROUNDS, SECONDS, WARM_UP = 9, 0.2, 0.5

PLAIN, STREAM = "echo", "count"
KINDS = [
    ("tools/call 2026-07-28", STATELESS, PLAIN, {1: None, 16: 45 / 31}),
    ("tools/call 2025-11-25", SHAKEN, PLAIN, {1: None, 16: 50 / 30.4}),
    ("tools/call 2025-11-25 as a stream", SHAKEN, STREAM, {1: None, 16: 80 / 30.4}),
]
MANY = [(f"{name}, 1,000 tools", era, tool, {16: aims[16]}) for name, era, tool, aims in KINDS[:2]]
"""The tools to call, and the aims by the number of connections."""


class Load:
    """Calls of one tool of one server, over persistent connections."""

    def __init__(self, site: Site, era: str, tool: str, connections: int) -> None:
        text = b'"name":"%b","arguments":{"text":"%%0100d"}' % tool.encode()
        progress = b',"_meta":{"progressToken":%d}' if tool == STREAM else b""
        self._message = (
            request(era, "tools/call", text + progress) if progress else call(era, tool, b'{"text":"%0100d"}')
        )
        self._numbers = self._message.count(b"%")
        self._lines = {line.socket.fileno(): line for line in (Line(site, era).open() for _ in range(connections))}
        length = len(self._of(10**6))
        self._heads = {at: line.head("POST", length, "tools/call", tool) for at, line in self._lines.items()}
        self._site = site
        self._last = 10**6
        self.made: int = 0
        """The number of completed calls of all windows."""
        self._sent: dict[int, int] = {}

    def _of(self, number: int) -> bytes:
        return self._message % ((number,) * self._numbers)

    def run(self, seconds: float) -> float:
        """Return the microseconds of the server's CPU time per call, with one call in flight on each connection."""
        answers: list[tuple[int, bytes]] = []
        with select.epoll() as epoll:
            for fd in self._lines:
                epoll.register(fd, select.EPOLLIN)
            cpu_before, end = self._site.cpu, time.perf_counter() + seconds
            for fd in self._lines:
                self._send(fd)
            while self._sent:
                for fd, _ in epoll.poll():
                    if response := self._lines[fd].take():
                        answers.append((self._sent.pop(fd), response))
                        if time.perf_counter() < end:
                            self._send(fd)
            cpu = self._site.cpu - cpu_before
        check(answers)
        self.made += len(answers)
        return cpu * 1e6 / len(answers)

    def _send(self, fd: int) -> None:
        self._last += 1
        self._sent[fd] = self._last
        self._lines[fd].socket.sendall(self._heads[fd] + self._of(self._last))


def check(answers: list[tuple[int, bytes]]) -> None:
    """Check the responses after the window, because a slow load would let the server sleep and measure its wake-up."""
    for number, response in answers:
        answer = answer_in(response)
        if answer.id != number or int(answer.result.content[0].text) != number:
            raise RuntimeError(f"a wrong answer to {number}: {response!r}")


def run() -> list[Figure]:
    os.sched_setaffinity(0, {LOADING})
    return [*of_server("calls", KINDS), *of_server("both", MANY)]


def of_server(declared: str, kinds: list[tuple[str, str, str, dict[int, float | None]]]) -> list[Figure]:
    """Measure all figures with one server per side, so that every window finds it warm."""
    with ExitStack() as stack:
        sites = [stack.enter_context(site) for site in (Site("http_floor.py"), Site("servers.py", declared))]
        return [
            figure(sites, name, era, tool, connections, aim)
            for name, era, tool, aims in kinds
            for connections, aim in aims.items()
        ]


def figure(sites: list[Site], name: str, era: str, tool: str, connections: int, aim: float | None) -> Figure:
    loads = [Load(site, era, tool, connections) for site in sites]
    for load in loads:
        load.run(WARM_UP)
    floors, accords = take_turns(ROUNDS, *(lambda load=load: load.run(SECONDS) for load in loads))
    kind = "connection" if connections == 1 else "connections"
    return compare(f"{name}, {connections} {kind}", "µs CPU", floors, accords, aim)
