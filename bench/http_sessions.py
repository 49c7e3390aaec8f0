"""10,000 open sessions over HTTP: what each takes of the server's memory, and how soon a ping is answered meanwhile.

The least that would do the same keeps nothing; so these stand beside what they may take at most, in place of a floor.
"""

from __future__ import annotations

import os
import select
import time
from statistics import quantiles

from bench.http_wire import Line, Site
from bench.measure import LOADING, Figure, compare
from bench.wire import SHAKEN, request

COUNT, WARM_UP, AT_ONCE = 10_000, 200, 64
LIFE = 300.0
KILOBYTES, MILLISECONDS = 40.0, 250.0
"""Of memory for each session; until 99 of 100 pings are answered."""

_PING = request(SHAKEN, "ping", b"") % 1


def run() -> list[Figure]:
    os.sched_setaffinity(0, {LOADING})
    with Site("servers.py", "calls", life=LIFE) as site:
        line = Line(site, SHAKEN)
        close(line, sessions(line, WARM_UP))
        before = site.memory("VmRSS")
        ids = sessions(line, COUNT)
        alone = site.memory("VmRSS")
        streams = [stream(site, id) for id in ids]
        listening = site.memory("VmRSS")
        slow = quantiles(pings([Line(site, SHAKEN) for _ in range(AT_ONCE)], ids), n=100)[-1] * 1e3
        del streams
    return [
        at_most(f"{COUNT:,} open sessions", "KB each", (alone - before) / COUNT / 1e3, KILOBYTES),
        at_most(f"{COUNT:,} open sessions with a GET stream", "KB each", (listening - before) / COUNT / 1e3, KILOBYTES),
        at_most(f"{COUNT:,} open sessions: ping, p99", "ms", slow, MILLISECONDS),
    ]


def at_most(name: str, unit: str, value: float, bound: float) -> Figure:
    """A figure beside its bound."""
    return compare(name, unit, [bound], [value], aim=1)


def sessions(line: Line, count: int) -> list[bytes]:
    """So many sessions, opened one after the other, each of which has made a request."""
    ids = []
    for _ in range(count):
        line.session = b""
        ids.append(line.open().session)
        line.ask(_PING, "ping")
    return ids


def close(line: Line, ids: list[bytes]) -> None:
    """End sessions."""
    for line.session in ids:
        line.exchange(line.head("DELETE"))


def stream(site: Site, id: bytes) -> Line:
    """The GET stream of a session, once its head has come."""
    line = Line(site, SHAKEN)
    line.session = id
    line.socket.sendall(line.head("GET"))
    head = line.socket.recv(1 << 16)
    if not head.startswith(b"HTTP/1.1 200 "):
        raise RuntimeError(f"no stream: {head!r}")
    return line


def pings(lines: list[Line], ids: list[bytes]) -> list[float]:
    """One ping in each session, with one in flight on each connection: how long each took."""
    took, asked = [], iter(ids)
    sent: dict[int, tuple[Line, float]] = {}
    with select.epoll() as ready:
        for line in lines:
            ready.register(line.socket.fileno(), select.EPOLLIN)
            send_ping(line, next(asked), sent)
        while sent:
            for at, _ in ready.poll():
                line, began = sent.pop(at)
                if not line.take():
                    sent[at] = line, began
                    continue
                took.append(time.perf_counter() - began)
                if (id := next(asked, None)) is not None:
                    send_ping(line, id, sent)
    return took


def send_ping(line: Line, id: bytes, sent: dict[int, tuple[Line, float]]) -> None:
    line.session = id
    sent[line.socket.fileno()] = line, time.perf_counter()
    line.socket.sendall(line.head("POST", len(_PING), "ping") + _PING)
