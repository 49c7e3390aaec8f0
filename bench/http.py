"""CPU of a server for each `tools/call` over HTTP: 1 and 16 connections, both eras, as JSON and as a stream.

The load runs here, on another core where there is one, and looks at every answer. The floor of a stream is one event in
one piece; accord's has an id to come back with, a report of progress and the answer.
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
"""What is called, and the aims by the number of connections."""


class Load:
    """Calls of one tool of one server, over connections that stay."""

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
        """Calls that were answered, all windows together."""
        self._sent: dict[int, int] = {}

    def _of(self, number: int) -> bytes:
        return self._message % ((number,) * self._numbers)

    def run(self, seconds: float) -> float:
        """Microseconds of the server's CPU for each call, with one in flight on each connection all the time."""
        answers: list[tuple[int, bytes]] = []
        with select.epoll() as ready:
            for at in self._lines:
                ready.register(at, select.EPOLLIN)
            before, end = self._site.cpu, time.perf_counter() + seconds
            for at in self._lines:
                self._send(at)
            while self._sent:
                for at, _ in ready.poll():
                    if response := self._lines[at].take():
                        answers.append((self._sent.pop(at), response))
                        if time.perf_counter() < end:
                            self._send(at)
            cpu = self._site.cpu - before
        check(answers)
        self.made += len(answers)
        return cpu * 1e6 / len(answers)

    def _send(self, at: int) -> None:
        self._last += 1
        self._sent[at] = self._last
        self._lines[at].socket.sendall(self._heads[at] + self._of(self._last))


def check(answers: list[tuple[int, bytes]]) -> None:
    """After the window: a load that is slow lets the server sleep, and waking is what it would measure."""
    for number, response in answers:
        answer = answer_in(response)
        if answer.id != number or int(answer.result.content[0].text) != number:
            raise RuntimeError(f"a wrong answer to {number}: {response!r}")


def run() -> list[Figure]:
    os.sched_setaffinity(0, {LOADING})
    return [*of_server("calls", KINDS), *of_server("both", MANY)]


def of_server(declared: str, kinds: list[tuple[str, str, str, dict[int, float | None]]]) -> list[Figure]:
    """One server of each side for all of its figures, so that every window finds it warm."""
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
