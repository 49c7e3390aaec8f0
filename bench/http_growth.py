"""The memory that each call over HTTP leaves behind: that of the server after 1,000,000 calls, minus that after
100,000.

It takes minutes, so it runs only when it is named. Streams are left out: their events are stored up to a bound that
`tests/server/http/test_load.py` checks.
"""

from __future__ import annotations

import os

from bench.http import KINDS, PLAIN, Load
from bench.http_sessions import at_most
from bench.http_wire import Site
from bench.measure import LOADING, Figure

FIRST, CALLS, CONNECTIONS = 100_000, 1_000_000, 16
SECONDS = 2.0
"""The length of a window, whose responses are stored and checked after it."""
LIFE = 3_600.0
BYTES = 2.0


def run() -> list[Figure]:
    os.sched_setaffinity(0, {LOADING})
    return [growth(f"{name}: {CALLS:,} calls", era) for name, era, tool, _ in KINDS if tool == PLAIN]


def growth(name: str, era: str) -> Figure:
    with Site("servers.py", "calls", life=LIFE) as site:
        load = Load(site, era, PLAIN, CONNECTIONS)
        first, before = until(load, FIRST), site.memory("VmRSS")
        last, after = until(load, CALLS), site.memory("VmRSS")
        return at_most(name, "B per call", (after - before) / (last - first), BYTES)


def until(load: Load, count: int) -> int:
    """Make calls until their total is `count`, and return the total."""
    while load.made < count:
        load.run(SECONDS)
    return load.made
