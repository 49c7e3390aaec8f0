"""The memory of 10,000 open sessions over HTTP, and the latency of a ping meanwhile.

A minimal server would store nothing; so these figures are compared with bounds instead of a floor.
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
"""The maximum memory per session; the maximum time until 99 of 100 pings are answered."""

_PING = request(SHAKEN, "ping", b"") % 1


def run() -> list[Figure]:
    os.sched_setaffinity(0, {LOADING})
    with Site("servers.py", "calls", life=LIFE) as site:
        line = Line(site, SHAKEN)
        close(line, sessions(line, WARM_UP))
        memory_before = site.memory("VmRSS")
        ids = sessions(line, COUNT)
        without_streams = site.memory("VmRSS")
        streams = [stream(site, id) for id in ids]
        listening = site.memory("VmRSS")
        slow = quantiles(pings([Line(site, SHAKEN) for _ in range(AT_ONCE)], ids), n=100)[-1] * 1e3
        del streams
    return [
        at_most(f"{COUNT:,} open sessions", "KB each", (without_streams - memory_before) / COUNT / 1e3, KILOBYTES),
        at_most(
            f"{COUNT:,} open sessions with a GET stream",
            "KB each",
            (listening - memory_before) / COUNT / 1e3,
            KILOBYTES,
        ),
        at_most(f"{COUNT:,} open sessions: ping, p99", "ms", slow, MILLISECONDS),
    ]


def at_most(name: str, unit: str, value: float, bound: float) -> Figure:
    """Return a figure compared with its bound."""
    return compare(name, unit, [bound], [value], aim=1)


def sessions(line: Line, count: int) -> list[bytes]:
    """Open sessions one after another, with one request in each, and return their ids."""
    ids = []
    for _ in range(count):
        line.session = b""
        ids.append(line.open().session)
        line.ask(_PING, "ping")
    return ids


def close(line: Line, ids: list[bytes]) -> None:
    """End sessions."""
    for line.session in ids:
        line.pending(line.head("DELETE"))


def stream(site: Site, id: bytes) -> Line:
    """Open the GET stream of a session, and return its connection after the response head."""
    line = Line(site, SHAKEN)
    line.session = id
    line.socket.sendall(line.head("GET"))
    head = line.socket.recv(1 << 16)
    if not head.startswith(b"HTTP/1.1 200 "):
        raise RuntimeError(f"no stream: {head!r}")
    return line


def pings(lines: list[Line], ids: list[bytes]) -> list[float]:
    """Ping each session, with one ping in flight per connection, and return the latencies."""
    latencies, remaining = [], iter(ids)
    sent: dict[int, tuple[Line, float]] = {}
    with select.epoll() as epoll:
        for line in lines:
            epoll.register(line.socket.fileno(), select.EPOLLIN)
            send_ping(line, next(remaining), sent)
        while sent:
            for fd, _ in epoll.poll():
                line, started = sent.pop(fd)
                if not line.take():
                    sent[fd] = line, started
                    continue
                latencies.append(time.perf_counter() - started)
                if (id := next(remaining, None)) is not None:
                    send_ping(line, id, sent)
    return latencies


def send_ping(line: Line, id: bytes, sent: dict[int, tuple[Line, float]]) -> None:
    line.session = id
    sent[line.socket.fileno()] = line, time.perf_counter()
    line.socket.sendall(line.head("POST", len(_PING), "ping") + _PING)
