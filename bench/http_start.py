"""The start of a server over HTTP: the time until its first response, and its memory at rest."""

from __future__ import annotations

import time

from bench.http_wire import Line, Site, answer_in
from bench.measure import Figure, compare, take_turns
from bench.wire import STATELESS, call

ROUNDS = 7

_CALL = call(STATELESS, "echo", b'{"text":"hello"}') % 1


def run() -> list[Figure]:
    floors, accords = take_turns(
        ROUNDS, lambda: first_answer("http_floor.py"), lambda: first_answer("servers.py", "calls")
    )
    names = ("HTTP: spawn to first answer", "ms"), ("HTTP: memory at rest", "MB")
    return [
        compare(name, unit, [each[at] for each in floors], [each[at] for each in accords], pick=min)
        for at, (name, unit) in enumerate(names)
    ]


def first_answer(*program: str) -> tuple[float, float]:
    """Return the milliseconds from the start of a server to its response to a call, and its memory in megabytes."""
    started = time.perf_counter()
    with Site(*program) as site:
        answer_in(Line(site, STATELESS).ask(_CALL, "tools/call", "echo"))
        return (time.perf_counter() - started) * 1e3, site.memory("VmRSS") / 1e6
